"""The witnesses that run streaming queries on Spark."""

"""The witnesses that run in a streaming query on Spark."""

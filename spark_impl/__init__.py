"""The operators on Spark, for production use."""

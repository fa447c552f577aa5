"""The laws that compare two runs on Spark, or a history and its variant, and so need no oracle."""

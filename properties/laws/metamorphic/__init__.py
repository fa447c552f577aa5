"""The laws that relate two runs on Spark, or a history and its variant: they need no oracle."""

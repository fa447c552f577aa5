"""The laws that relate two runs on Spark, or a history and a variant of it: they need no oracle."""

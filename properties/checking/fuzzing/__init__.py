"""Fuzzing of Spark: draws whole queries, and judges them by the reference of plans and by relations between queries."""

"""Fuzzing of Spark: whole queries are drawn, and judged by the reference of plans and by relations between queries."""

"""Random query plans: trees of Spark's streaming operators, rows for their inputs, and plans as PySpark code."""

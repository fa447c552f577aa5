"""The two witnesses of a chain of operators: the composed reference, and Spark."""

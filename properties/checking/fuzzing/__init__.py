"""The fuzzer of Spark: draws random queries, and compares Spark's rows with the reference and with related queries."""

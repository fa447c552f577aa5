"""Reference models of Spark's own stateful operators: the late rows, and the rows that each micro-batch emits."""

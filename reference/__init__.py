"""The meaning of each operator, in plain Python: the oracle for Spark, DuckDB, Kafka Streams and users' jobs."""

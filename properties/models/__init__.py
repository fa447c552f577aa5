"""Play behaviours of the TLA+ specifications on Spark and Kafka Streams, and races on a Kafka broker."""

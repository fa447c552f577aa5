"""Kafka Streams on a running broker: many histories concurrently under distinct keys, and their stale results."""

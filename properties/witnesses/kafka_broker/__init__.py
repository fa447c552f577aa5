"""Kafka Streams on a running broker: many histories at once under distinct keys, and the results that end stale."""

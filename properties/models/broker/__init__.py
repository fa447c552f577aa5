"""Races of the foreign-key join on a Kafka broker: play histories, and count and shrink stale results."""

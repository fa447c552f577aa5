"""Races of the foreign-key join on a Kafka broker: play histories, count stale results, and shrink histories."""

"""Races of the foreign-key join on a Kafka broker: histories are played, and stale results counted and shrunk."""

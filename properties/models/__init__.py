"""Behaviours of the specifications on the implementations: replays on Spark and on Kafka, and races on a broker."""

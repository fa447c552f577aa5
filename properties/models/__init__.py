"""Behaviours of the specifications on the implementations: replays on Spark and Kafka, and races on a broker."""

"""Spark's own stateful operators as reference models: what is late to them, what they keep, and when they emit."""

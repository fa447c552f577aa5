"""Spark's own stateful operators as reference models: which rows are late, which are kept, and when they emit."""

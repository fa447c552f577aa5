"""Spark's own stateful operators as reference models: late rows, accepted rows, and times of output."""

"""Benchmarks of witnesses: the time, memory and queries that histories take."""

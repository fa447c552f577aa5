"""Benchmarks of witnesses, the systems that run histories: the time, memory and queries that histories need."""

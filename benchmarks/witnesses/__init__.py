"""Benchmarks of witnesses: the time, memory and queries of histories."""

"""Measures streamproof's speed and memory: `python -m benchmarks --list` lists the benchmarks."""

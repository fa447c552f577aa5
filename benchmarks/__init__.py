"""Measures streamproof's speed and memory: `python -m benchmarks --list` names what there is."""

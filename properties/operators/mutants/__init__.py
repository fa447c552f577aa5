"""Mutants: for every law one that it has been seen to catch."""

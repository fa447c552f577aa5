"""Mutants: for every law at least one that it has caught."""

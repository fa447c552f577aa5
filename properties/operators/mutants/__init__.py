"""Mutants: every law catches at least one."""

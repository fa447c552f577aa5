"""Mutants of a user's job, created from its source in memory."""

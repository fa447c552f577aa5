"""Mutants of a user's job, made of its source in memory."""

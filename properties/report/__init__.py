"""Counterexamples and recordings: their text, their files."""

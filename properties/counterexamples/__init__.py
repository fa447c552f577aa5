"""Counterexamples: their contents, their text, and their store."""

"""Counterexamples: their fields, their text, and the folders in which they are saved."""

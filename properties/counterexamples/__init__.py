"""Counterexamples: what they are, their text, and the store that they are saved in."""

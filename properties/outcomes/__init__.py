"""Outcomes of histories: the equality of their values, and their text."""

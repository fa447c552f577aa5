"""Outcomes of histories, the equality of values, and outcomes as text."""

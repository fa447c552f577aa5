"""Outcomes of histories: when their values are equal, and how they are shown."""

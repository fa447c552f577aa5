"""Recordings and reports: their text, their files."""

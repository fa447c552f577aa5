"""Recordings and reports: their text and their files."""

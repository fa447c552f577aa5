"""Counts of how often two witnesses agree, over thousands of histories and more."""

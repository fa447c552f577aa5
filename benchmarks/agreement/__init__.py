"""Counts the agreement of two witnesses over thousands of histories or more."""

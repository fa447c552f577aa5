"""Counts on how many of thousands of histories two witnesses (systems that run histories) disagree."""

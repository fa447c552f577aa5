"""Nexmark's queries by streamproof's operators, and in other forms that users are likely to write."""

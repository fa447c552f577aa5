"""Nexmark's queries, written with streamproof's operators, and in other forms that users are likely to write."""

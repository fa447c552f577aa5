"""Declarations: the definitions of the operators, and their aggregates."""

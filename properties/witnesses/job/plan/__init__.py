"""Reads a job's plan: operators, comparisons, grouping, and use of tables."""

"""Reads facts from a job's plan: operators, comparisons, grouping, and use of tables."""

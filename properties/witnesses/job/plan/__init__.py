"""A job's plan and its facts: operators, comparisons, grouping, and use of tables."""

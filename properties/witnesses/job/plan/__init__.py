"""A job's plan, and the facts read from it: its operators, comparisons, grouping, and its use of tables."""

"""What is read off a job's plan: its operators, comparisons, grouping, and its use of tables."""

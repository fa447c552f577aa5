"""The check of a run in production: reads input and output, compares, finds the smallest example, and reports."""

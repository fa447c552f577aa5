"""Histories, cohorts, witnesses, laws, shrinking, verdicts, and the command line."""

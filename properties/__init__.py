"""The framework that checks operators and jobs: histories, witnesses, laws, checks, reports and the command line."""

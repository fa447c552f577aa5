"""For test suites: the check of a job against the reference of an operator, and its pytest fixture."""

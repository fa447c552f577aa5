"""Functions for test suites: checks of operators, the pytest plugin for checks of jobs, and rechecks of
counterexamples.
"""

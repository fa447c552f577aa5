"""Mutants that show only if definitions, clocks, keys and values are drawn: no fixed profile kills all of them.

Each module has the mutants of one operator as `MUTANTS_OF_DRAWN`. The test
`test_drawn_mutants.py` plays every one of them without Spark, and shows a history on which it differs.
"""

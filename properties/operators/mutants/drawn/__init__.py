"""Mutants that need drawn definitions, clocks, keys and values: no fixed profile kills all of them.

Each module contains one operator's mutants as `MUTANTS_OF_DRAWN`. The test `test_drawn_mutants.py` plays every mutant
without Spark, and shows a history on which it differs.
"""

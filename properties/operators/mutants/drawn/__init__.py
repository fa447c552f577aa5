"""Mutants that need random options, clocks, keys or values: the fixed profiles alone don't kill all of these mutants.

Each module lists one operator's mutants as `MUTANTS_OF_DRAWN`. The test `test_drawn_mutants.py` runs every mutant
without Spark, and shows a history on which the mutant differs.
"""

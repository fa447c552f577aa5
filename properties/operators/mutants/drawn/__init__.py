"""Mutants that only drawn options, clocks, keys and values kill, because no fixed profile kills all of them.

Each module lists one operator's mutants as `MUTANTS_OF_DRAWN`. The test `test_drawn_mutants.py` runs every mutant
without Spark, and shows a history on which the mutant differs.
"""

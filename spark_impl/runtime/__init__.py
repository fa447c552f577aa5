"""Modules that all operators on Spark share: keyed state, columns, stages, checkpoints."""

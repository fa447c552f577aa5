"""Shared modules of the reference models: records, histories, clocks, errors, and `play`, which runs a history on a
model.
"""

"""Runs drawn plans on Spark: rows go in by streams in memory, so that an input may have no new data at all."""

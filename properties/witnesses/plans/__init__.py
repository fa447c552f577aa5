"""Runs drawn plans on Spark. In-memory streams provide the rows, so that an input may have no new data at all."""

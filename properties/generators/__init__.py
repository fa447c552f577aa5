"""Draws random histories, and cohorts (histories that share a query), that cover the coverage goals."""

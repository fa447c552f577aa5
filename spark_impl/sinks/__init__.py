"""Sinks of a changelog: tables that every batch reaches exactly once."""

"""Sinks of a changelog: tables that contain every batch exactly once."""

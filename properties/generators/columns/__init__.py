"""Histories of a job's own columns: its inputs, and how histories are drawn, packed, shrunk and written."""

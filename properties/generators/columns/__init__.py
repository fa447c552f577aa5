"""Histories of a job's own columns: what its inputs hold, and how histories are drawn, packed, shrunk and written."""

"""Histories of a job's columns: how they are drawn, which goals they cover, shrunk and written."""

"""Histories of a job's columns: drawing, coverage goals, shrinking and writing."""

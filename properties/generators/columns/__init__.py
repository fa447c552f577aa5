"""Histories of a job's own columns: its inputs, and drawing, packing, shrinking and writing histories."""

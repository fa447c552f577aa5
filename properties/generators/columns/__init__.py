"""Histories of a job: its inputs and their columns, and drawing, packing, shrinking and writing histories."""

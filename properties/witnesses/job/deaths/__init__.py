"""The death of a process as a check plays it: where it happens, and what it leaves to the next start."""

"""The query of a job: its declaration, start, crashes and times, and the change from an earlier version."""

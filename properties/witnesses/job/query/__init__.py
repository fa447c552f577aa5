"""The query of a job: its declaration, its start, its deaths, its times, and the change from an earlier version."""

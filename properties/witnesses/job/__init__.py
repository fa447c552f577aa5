"""Declares and runs the query of a user's job, moves its watermark, and checks the job's return value."""

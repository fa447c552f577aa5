"""Benchmarks of checks: whole commands, the judging of histories, reports, TLC."""

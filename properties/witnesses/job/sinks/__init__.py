"""Sinks that write their results themselves, and the stores that the check reads at the end."""

"""Sinks, which write their result themselves, and the stores that are read at the end."""

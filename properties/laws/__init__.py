"""The laws: relations that must hold between a history and its output; each law has its own module."""

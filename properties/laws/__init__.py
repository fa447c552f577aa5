"""The laws: relations that must hold between a history and its output, one law a file."""

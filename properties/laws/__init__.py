"""The laws: what must hold between a history and what came out of it, one law a file."""

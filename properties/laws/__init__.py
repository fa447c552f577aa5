"""The laws: relations that must hold between a history and its output, each law in its own file."""

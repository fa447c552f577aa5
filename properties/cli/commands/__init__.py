"""The commands, each in its own file."""

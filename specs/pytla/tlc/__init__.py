"""The program TLC: its location, its process, its output, and the interpretation of its output."""

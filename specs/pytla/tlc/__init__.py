"""The program TLC: its place, its process, its output, and the meaning of its output."""

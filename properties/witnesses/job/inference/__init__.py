"""Infer a script's inputs from the script itself: their columns, event times and keys."""

"""What a script reads, inferred from the script itself: its inputs, their columns, event times and keys."""

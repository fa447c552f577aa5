"""The program TLC: where it is, how it is run, what it prints, and what that means."""

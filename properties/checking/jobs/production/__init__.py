"""The judging of a run in production: what it read and wrote, the comparison, its narrowing, and the message."""

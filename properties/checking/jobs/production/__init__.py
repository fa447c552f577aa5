"""The judging of a run in production: its input and output, the comparison, the narrowing, and the message."""

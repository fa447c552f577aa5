"""Notes on rows that a job's plan drops, delays or keeps in state, each with a history; notes need no oracle."""

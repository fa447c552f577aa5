"""Random histories: their draws, their cohorts, and the goals that they cover."""

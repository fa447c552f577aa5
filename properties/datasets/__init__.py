"""Real data sets: load a data set, and compare witnesses on it."""

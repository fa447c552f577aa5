"""Real data sets: load a data set, and compare witnesses (systems that run histories) on it."""

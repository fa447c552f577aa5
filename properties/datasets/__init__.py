"""Real data: loading it, and comparing witnesses on it."""

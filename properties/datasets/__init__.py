"""Real data: loading, and comparing witnesses on it."""

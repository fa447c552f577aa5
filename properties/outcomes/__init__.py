"""What came out of a history: outcomes, when their values are equal, and how they are shown."""

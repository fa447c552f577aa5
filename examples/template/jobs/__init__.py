"""The streaming jobs of this repository."""

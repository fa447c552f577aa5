"""The installed software: the Python packages, Spark and its version, and other environments."""

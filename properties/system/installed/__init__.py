"""What is installed: the Python packages, Spark and its version, and other environments."""

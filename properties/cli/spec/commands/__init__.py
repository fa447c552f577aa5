"""The commands of `spec`, each in its own file."""

"""The witnesses: systems that run histories and return their outcomes."""

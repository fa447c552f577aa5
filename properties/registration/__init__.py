"""What an operator declares to the framework, and the registry of the operators."""

"""The registration of an operator with the framework, and the registry of the operators."""

"""The registration of operators with the framework, and the registry of the operators."""

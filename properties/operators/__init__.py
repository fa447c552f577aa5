"""What each operator declares to the framework: one module an operator."""

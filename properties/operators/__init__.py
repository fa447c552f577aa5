"""The registrations of the operators: one module an operator."""

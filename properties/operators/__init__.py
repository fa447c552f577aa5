"""The registrations of the operators: one module per operator."""

"""The registrations of operators: everything that the framework knows about each operator."""

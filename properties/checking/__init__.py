"""The check of an operator: draws and runs histories, judges laws, and shrinks a history that breaks a law."""

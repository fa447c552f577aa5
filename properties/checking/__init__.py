"""The check: draws histories, runs them, lets the laws judge, and shrinks a history that breaks a law."""

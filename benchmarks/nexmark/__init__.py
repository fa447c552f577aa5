"""The queries of Nexmark, by the operators and in the forms that a user would pick."""

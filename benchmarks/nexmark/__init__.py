"""The queries of Nexmark, by the operators and in a user's likely forms."""

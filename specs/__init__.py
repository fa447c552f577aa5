"""TLA+ specifications, and the tools that run them."""

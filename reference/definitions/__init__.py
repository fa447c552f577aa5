"""What can be declared: the definitions of the operators, and their aggregates."""

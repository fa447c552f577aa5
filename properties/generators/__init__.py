"""Random histories: how they are drawn, their cohorts, and their coverage goals."""

"""Random histories: drawing histories, cohorts of histories, and coverage goals."""

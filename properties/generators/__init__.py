"""Random histories: what is drawn, in which cohorts it is run, and what it covers."""

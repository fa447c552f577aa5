"""How a counterexample of a job reads: its rows as tables, and a timeline."""

"""Proofs by induction: a TLA+ module as terms of the solver z3, and the conditions of a proof."""

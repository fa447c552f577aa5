"""Proofs by induction: what a TLA+ module says, as terms of the solver z3, and the conditions of a proof."""

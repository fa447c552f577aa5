"""Notes on a job's plan, without an oracle: which rows the plan drops, delays or keeps in state, each with a
history.
"""

"""Notes on a plan, which need no oracle: the rows that it drops, holds back or keeps in state, each with a history."""

"""Notes on a plan without an expectation: which rows it drops, holds back or remembers, each shown by a history."""

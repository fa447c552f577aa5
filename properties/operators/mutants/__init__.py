"""The mutants of operators; every law kills at least one mutant."""

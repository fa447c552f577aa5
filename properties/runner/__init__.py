"""The runner: draws, runs, judges, shrinks."""

"""Judge sinks: compare the promise of each sink's documentation with its behaviour under every fault."""

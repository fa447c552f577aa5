"""Judge sinks: each sink's promises, and its observed behaviour under every fault."""

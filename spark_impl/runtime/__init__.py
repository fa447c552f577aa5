"""What the operators on Spark share: keyed state, columns, stages, checkpoints."""

"""What a job should emit: oracles, the rules of Spark's own operators, and the comparison with what it emits."""

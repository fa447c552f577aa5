"""The expected output of a job: oracles, the rules of Spark's own operators, and the comparison with the output."""

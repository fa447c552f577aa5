"""The replays of each specification's behaviours: one file per module, named after its operator."""

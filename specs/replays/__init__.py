"""The replays of each specification's behaviours: a file a module, by its operator's name."""

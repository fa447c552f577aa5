"""How the behaviours of each specification are replayed: a file a module, by its operator's name."""

"""Parts that have nothing to do with streams: files, signals, consoles, work folders."""

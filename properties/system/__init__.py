"""What is not about streams: files, signals, consoles, work folders."""

"""Parts unrelated to streams: files, signals, consoles, work folders."""

"""Modules that don't depend on streams: files, locks, signals, standard streams, work folders, installed software."""

"""Modules that don't concern stream processing: files, locks, signals, standard streams, work folders, installed
software.
"""

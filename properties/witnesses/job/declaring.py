"""The locks that are held while code of the user's runs for which Spark's classes may be patched."""

from __future__ import annotations

import threading

DECLARING = threading.RLock()
"""One thread at a time declares a job: what patches Spark's classes for it would meet the jobs of other threads."""

PATCHING = threading.RLock()
"""Held while a script runs, and while a sink's function writes a batch. Each patches the classes of writers, and Spark
may call the function before the script that started the query has ended."""

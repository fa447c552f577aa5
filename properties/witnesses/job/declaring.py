"""The lock that is held while a user's function is called, for which Spark's classes may be patched."""

from __future__ import annotations

import threading

DECLARING = threading.RLock()
"""One thread at a time declares a job: what patches Spark's classes for it would meet the jobs of other threads."""

"""The keys of the histories that share a query (a cohort): each history's keys have a prefix of their own. Rows of a
reserved key, which belongs to no history, move the watermark.
"""

from __future__ import annotations

from ...reference.core.records import Key

WATERMARK_DRIVER = "~clock"
"""The reserved key, which belongs to no history: its rows move the watermark."""


def prefixed_key(index: int, key: Key) -> Key:
    """Return a history's key with a prefix, which is the history's index in the cohort."""
    return f"{index:05d}|{key}"


def owner(key: str) -> tuple[int, str] | None:
    """Return the index of the history of a cohort's key, and the key without prefix; None for the reserved key."""
    if key == WATERMARK_DRIVER:
        return None
    index, own = key.split("|", 1)
    return int(index), own

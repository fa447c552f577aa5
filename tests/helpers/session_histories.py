"""Histories of session windows in the words of `notation`, and their changelogs without timestamps."""

from __future__ import annotations

from typing import Any

from notation import lines_of
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Accepted, Change, Dropped, Output, Record


def history_of(text: str, clock: str = "stream_time", **options: Any) -> History:
    return History("session_windows", {"gap_ms": 10, **options}, tuple(lines_of(text)), clock)


def shown(output: Output) -> str:
    match output:
        case Dropped(key, reason):
            return f"{key or '-'} dropped: {reason}"
        case Change(key, (start, end), value, _):
            value = ",".join(map(str, value)) if isinstance(value, list) else value
            return f"{key}[{start},{end}]={'∅' if value is None else value}"
    raise AssertionError(output)


def changelog(text: str, clock: str = "stream_time", **options: Any) -> str:
    return " ".join(shown(entry.output) for entry in play(history_of(text, clock, **options)).entries)


def accepted(*records: tuple[str, int, int]) -> list[Accepted]:
    return [Accepted(Record("events", key, timestamp, timestamp), clock) for key, timestamp, clock in records]

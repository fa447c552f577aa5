"""Histories and changelogs of session windows as one writes them on a blackboard; tests of several files use them."""

from __future__ import annotations

from typing import Any

from streamproof.reference.core.history import CUT, ClockAdvance, History, Line
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Accepted, Change, Dropped, Output, Record


def lines_of(text: str) -> list[Line]:
    """`k@5` is a record of key k at 5, `k=v@5` has a value, `-@5` no key; `~5` is a clock advance, `|` a cut."""
    lines: list[Line] = []
    for word in text.split():
        if word == "|":
            lines.append(CUT)
        elif word.startswith("~"):
            lines.append(ClockAdvance(int(word[1:])))
        else:
            who, timestamp = word.split("@")
            key, _, value = who.partition("=")
            given_value = int(value) if value.isdigit() else None if value == "null" else value
            lines.append(Record("events", None if key == "-" else key, given_value, int(timestamp)))
    return lines


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

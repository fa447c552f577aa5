"""Format values, rows and durations as text for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from ...system.visible import visible
from .forms.rows import Row

LONGEST = 60
"""The largest number of characters of a value in a table; the saved history contains the full value."""
_UNITS: Sequence[tuple[str, str, int]] = (
    ("d", "day", 86_400_000_000),
    ("h", "hour", 3_600_000_000),
    ("m", "minute", 60_000_000),
    ("s", "second", 1_000_000),
    ("ms", "ms", 1_000),
    ("µs", "µs", 1),
)
"""The units of time, each with abbreviation, word and length in microseconds."""


def shown_row(row: Row) -> str:
    """Return a row as text: `user a, total 3`."""
    return ", ".join(f"{visible(name)} {cell(value)}" for name, value in row.items()) or "a row without columns"


def typed_row(row: Row) -> str:
    """Return a row as text with the types of its values, because values of different types may print alike."""
    return ", ".join(f"{visible(name)} {cell(value)} ({type(value).__name__})" for name, value in row.items())


def cell(value: Any) -> str:
    """Return a value as text; a long text is truncated."""
    return shortened(shown(value))


def shortened(text: str) -> str:
    """Return a text; a long text is truncated."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]}… ({len(text):,} characters)"


def shown(value: Any) -> str:
    """Return a value as text that distinguishes null, text and numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(" ", "microseconds" if value.microsecond % 1000 else "milliseconds")
        return text.removesuffix(".000") + ("Z" if value.tzinfo else "")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {shown(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value) if isinstance(value, Decimal) else repr(value)


def elapsed(time_us: int) -> str:
    """Return a duration as text, with all nonzero units: `+32m 1ms`."""
    sign, rest, parts = "-" if time_us < 0 else "+", abs(time_us), []
    for unit, _, size in _UNITS:
        count, rest = divmod(rest, size)
        parts += [f"{count}{unit}"] * (count > 0)
    return sign + (" ".join(parts) or "0")


def duration(time_us: int) -> str:
    """Return a duration in words, such as `10 minutes`, in the largest unit that divides the duration."""
    unit, size = next((unit, size) for _, unit, size in _UNITS if time_us % size == 0)
    return f"{time_us // size} {unit}{'s' * (time_us != size and unit not in ('ms', 'µs'))}"

"""Durations as Spark's SQL writes them, such as "1 hour 30 minutes".

Source: `IntervalUtils.stringToInterval`, which defines the units and signs. Like Spark's windows
(`TimeWindow.parseExpression`), this module refuses months and years, which have no fixed length.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import TypeAlias

from .errors import BadInput

Duration: TypeAlias = str | timedelta

UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""The length (microseconds) of each unit, by the unit's singular name."""
LONGEST_DAYS = 3_650
"""The longest duration (days): Python and Spark can represent a history's times plus several of these durations."""
_TERM = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d{0,9})?|\.\d{1,9})\s+([a-z]+)(?=\s|$)", re.IGNORECASE)
_REMEDY = 'write it as "10 minutes", "1 hour 30 minutes" or "250 milliseconds", or give a timedelta'


def microseconds_of(name: str, duration: object) -> int:
    """Return a duration in microseconds; `name` is the option's name in messages.

    Raises:
        BadInput: The text isn't a duration, or the duration has a unit without fixed length, isn't a whole number of
            microseconds or is too long.
    """
    if isinstance(duration, timedelta):
        duration_us = duration // timedelta(microseconds=1)
    elif isinstance(duration, str):
        duration_us = _of_text(name, duration)
    else:
        raise BadInput(f"{name} is {duration!r}, which isn't a duration: {_REMEDY}")
    if abs(duration_us) > LONGEST_DAYS * UNITS_US["day"]:
        raise BadInput(f"{name} is {duration!r}: give {LONGEST_DAYS:,} days or less")
    return duration_us


def _of_text(name: str, duration: str) -> int:
    text = re.sub(r"(?i)^\s*interval\s+", "", duration).rstrip()
    position, total = 0, Decimal(0)
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise BadInput(f"{name} is {duration!r}, which isn't a duration: {_REMEDY}")
        sign, number, unit = term.groups()
        unit = unit.lower().removesuffix("s")
        if unit in ("month", "year"):
            raise BadInput(f"{name} is {duration!r}, and a {unit} has no fixed length: write it in days")
        if unit not in UNITS_US:
            raise BadInput(f"{name} is {duration!r}, and {term[3]!r} isn't a unit: {_REMEDY}")
        if "." in number and unit != "second":
            raise BadInput(f"{name} is {duration!r}, and only seconds have fractions: write a smaller unit")
        total += Decimal(f"{sign}{number}") * UNITS_US[unit]
        position = term.end()
    if not text:
        raise BadInput(f"{name} is empty: {_REMEDY}")
    if total != int(total):
        raise BadInput(f"{name} is {duration!r}, which isn't a whole number of microseconds: round it")
    return int(total)

"""Durations in Spark's syntax, such as "5 minutes", or as a timedelta."""

from __future__ import annotations

import re
from datetime import timedelta

from ...reference.core.errors import BadInput

Duration = str | timedelta


def milliseconds(name: str, duration: Duration) -> int:
    """Return a duration in whole milliseconds; `name` is the option's name in messages.

    Raises:
        BadInput: The duration can't be parsed, has no unit, or isn't a whole number of milliseconds.
    """
    import pandas as pd  # a lazy import halves the start-up time of Spark's Python workers

    remedy = 'write it as "5 minutes", "1 hour 30 minutes" or "250 ms", or give a timedelta'
    if isinstance(duration, timedelta):
        whole, rest = divmod(duration, timedelta(milliseconds=1))
        if rest:
            raise BadInput(f"{name} is {duration!r}, which isn't a whole number of milliseconds: round it")
        return whole
    if not isinstance(duration, str):
        raise BadInput(f"{name} is {duration!r}, which isn't a duration: {remedy}")
    text = re.sub(r"(?i)^\s*interval\b|\s+$", "", duration).strip()
    text = re.sub(r"(?i)\bweeks?\b", "W", text)
    if re.fullmatch(r"[+-]?\d+(\.\d+)?", text):
        raise BadInput(f"{name} is {duration!r}, without a unit: {remedy}")
    try:
        parsed = pd.Timedelta(text)
    except ValueError:
        parsed = pd.NaT
    if pd.isna(parsed):
        raise BadInput(f"{name} is {duration!r}, which isn't a duration: {remedy}")
    whole, rest_ns = divmod(parsed.value, 1_000_000)
    if rest_ns:
        raise BadInput(f"{name} is {duration!r}, which isn't a whole number of milliseconds: round it")
    return int(whole)

"""Durations as data engineers write them: "5 minutes", or a timedelta."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd

from ..reference.errors import BadInput

Duration = str | timedelta


def milliseconds(name: str, duration: Duration) -> int:
    """Turn a duration into whole milliseconds; `name` is what messages call it.

    Raises:
        BadInput: It can't be parsed, has no unit, or is no whole number of milliseconds.
    """
    remedy = 'write it as "5 minutes", "1 hour 30 minutes" or "250 ms", or give a timedelta'
    if isinstance(duration, str):
        text = duration.strip().removeprefix("interval").strip()
        if text.replace(".", "").lstrip("+-").isdigit():
            raise BadInput(f"{name} is {duration!r}, without a unit: {remedy}")
        try:
            parsed = pd.Timedelta(text)
        except ValueError:
            raise BadInput(f"{name} is {duration!r}, which is no duration: {remedy}") from None
    elif isinstance(duration, timedelta):
        parsed = pd.Timedelta(duration)
    else:
        raise BadInput(f"{name} is {duration!r}, which is no duration: {remedy}")
    if pd.isna(parsed):
        raise BadInput(f"{name} is {duration!r}, which is no duration: {remedy}")
    whole, rest = divmod(parsed.value, 1_000_000)
    if rest:
        raise BadInput(f"{name} is {duration!r}, which is no whole number of milliseconds: round it")
    return int(whole)

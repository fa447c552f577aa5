"""The formats of event times that aren't timestamps: numbers since 1970, text, dates.

A history contains each event time as a timestamp, truncated to the format's precision; the job gets the time in the
format.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from math import copysign, inf, nextafter
from typing import Any

import pyarrow as pa

from .....reference.core.errors import BadInput
from .rows import from_microseconds, microseconds

UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""The units of numbers since 1970 (µs)."""
DAY_US = 86_400_000_000
TIMESTAMP = pa.timestamp("us", "UTC")
"""The type of event times in histories whose source has no timestamp."""
_GRAINS_US = (1, 1_000_000, 60_000_000, 3_600_000_000, DAY_US)
"""The precisions of a text pattern (µs): from microseconds to days."""
_PROBES = (datetime(2024, 10, 27, 13, 32, 47, 123_456, UTC), datetime(2025, 1, 5, 1, 2, 3, 4, UTC))
_LATEST = datetime(2030, 1, 1, tzinfo=UTC)
UNITS = 'time_format="s", "ms" or "us" since 1970'


@dataclass(frozen=True)
class TimeForm:
    """The format of an event time that isn't a timestamp.

    Attributes:
        kind: The type of the column in the job's input.
        format: The unit of a number since 1970, or a pattern of `strftime`; None for a date, and for ISO 8601 text.
        grain_us: The precision (µs): each event time is a multiple of it.
    """

    kind: pa.DataType
    format: str | None
    grain_us: int

    def of(self, time: datetime | None) -> Any:
        """Return a time in the format."""
        if time is None:
            return None
        if pa.types.is_date(self.kind):
            return time.date()
        if self.format in UNITS_US:
            return self._number(microseconds(time), UNITS_US[self.format])
        return time.strftime(self.format) if self.format else iso_text(time)

    def time(self, value: Any) -> datetime | None:
        """Return the time of a value in the format; None if the value isn't a time."""
        try:
            if value is None or pa.types.is_date(self.kind):
                return value and datetime(value.year, value.month, value.day, tzinfo=UTC)
            if self.format in UNITS_US:
                return from_microseconds(int(Decimal(str(value)) * UNITS_US[self.format]))
            found = datetime.strptime(value, self.format) if self.format else datetime.fromisoformat(value)
        except (ValueError, ArithmeticError):
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def _number(self, time_us: int, unit_us: int) -> Any:
        if pa.types.is_floating(self.kind):
            number = time_us / unit_us
            # Spark's cast to a timestamp truncates, so a number slightly too small would lose a microsecond.
            return number if int(number * unit_us) == time_us else nextafter(number, copysign(inf, number))
        if pa.types.is_decimal(self.kind):
            digits = Context(prec=38, rounding=ROUND_FLOOR)
            return digits.quantize(Decimal(time_us) / unit_us, Decimal(1).scaleb(-self.kind.scale))
        return str(time_us // unit_us) if pa.types.is_string(self.kind) else time_us // unit_us


def iso_text(time: datetime) -> str:
    """Return a time as ISO 8601 text, with microseconds, and `Z` if the time has a zone."""
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + ("Z" if time.tzinfo else "")


def time_form(column: str, kind: pa.DataType, time_format: str | None) -> TimeForm | None:
    """Return the format of an event time; None for a timestamp column.

    Args:
        column: The column's name.
        kind: Its type.
        time_format: The user's `time_format`.

    Raises:
        BadInput: The column can't contain an event time, or the format is missing or invalid for the column.
    """
    where = f"the event time {column!r}"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        if time_format is not None:
            raise BadInput(f"{where} is a {kind}, but time_format is {time_format!r}: leave time_format out")
        return TimeForm(kind, None, DAY_US) if pa.types.is_date(kind) else None
    if pa.types.is_string(kind):
        return TimeForm(kind, time_format, _grain_of_text_us(where, time_format))
    if not (pa.types.is_integer(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind)):
        raise BadInput(
            f"{where} is {kind}, which is no type of an event time: declare a timestamp, a date, text, or a "
            "bigint, double or decimal since 1970"
        )
    if time_format not in UNITS_US:
        given = f"time_format is {time_format!r}" if time_format else "its unit isn't known"
        raise BadInput(f"{where} is {kind}, and {given}: give {UNITS}")
    unit_us = UNITS_US[time_format]
    grain_us = unit_us
    if pa.types.is_floating(kind) and time_format == "s":
        grain_us = 1  # until 2038, a double of seconds is exact to 1 µs
    elif pa.types.is_decimal(kind):
        grain_us = max(1, unit_us // 10 ** min(kind.scale, 6))
    form = TimeForm(kind, time_format, grain_us)
    try:
        pa.array([form.of(_LATEST)], kind)
    except (pa.ArrowException, ArithmeticError):
        raise BadInput(f"{where} is {kind}, which is too small for {time_format} since 1970: use a bigint") from None
    return form


def _grain_of_text_us(where: str, pattern: str | None) -> int:
    """Return the precision of times in a text pattern (µs)."""
    if pattern is None:
        return 1
    if pattern in UNITS_US:
        return UNITS_US[pattern]
    for grain_us in _GRAINS_US:
        if all(_is_whole(pattern, _cut(time, grain_us)) for time in _PROBES) and (
            _PROBES[0].strftime(pattern) == _cut(_PROBES[0], grain_us).strftime(pattern)
        ):
            return grain_us
    raise BadInput(
        f'{where} is text, and time_format is {pattern!r}: give "s", "ms" or "us" since 1970, or a pattern of strftime '
        'that says the whole time in UTC, such as "%Y-%m-%d %H:%M:%S"; without, it is ISO 8601'
    )


def _is_whole(pattern: str, time: datetime) -> bool:
    try:
        return datetime.strptime(time.strftime(pattern), pattern).replace(tzinfo=UTC) == time
    except ValueError:
        return False


def _cut(time: datetime, grain_us: int) -> datetime:
    return time - timedelta(microseconds=microseconds(time) % grain_us)

"""A row: a mapping from column names to Python values; timestamps are `datetime`s in UTC, with microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from .....reference.spark.aggregates import Row as Row

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(time: datetime) -> int:
    """Return a time in microseconds since 1970; a time without a zone is in UTC."""
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def from_microseconds(time_us: int) -> datetime:
    """Return the time at a number of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=time_us)

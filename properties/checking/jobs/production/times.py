"""The times of rows: by them rows of a key are told apart, and it is said where the expected rows aren't certain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from ....generators.columns.forms.rows import Row, microseconds
from ....outcomes.equality import comparable

Span: TypeAlias = tuple[int, int] | None
"""A first and a last time, in milliseconds since 1970; None: any time."""


class Uncertain:
    """The times, by key, at which it isn't certain what is expected, because rows may count or be late.

    Args:
        key_columns: Returns the columns of the key in a row of the output; none if it doesn't have them.
    """

    def __init__(self, key_columns: Callable[[Row], Sequence[str]]) -> None:
        self.key_columns = key_columns
        self.spans: dict[Any, list[Span]] = {}
        self.until_ms: int | None = None
        """Up to this time no key is certain; None: there is no such time."""

    def add(self, row: Row, around_ms: int = 0) -> None:
        """Add the times of a row, and those around them."""
        span = span_of(row)
        for key in {self._key(row), comparable([])}:
            self.spans.setdefault(key, []).append(span and (span[0] - around_ms, span[1] + around_ms))

    def has(self, row: Row) -> bool:
        """Whether the times of a row of the output overlap with them; a row without times overlaps with all."""
        span = span_of(row)
        return self.is_before(row) or any(_overlap(span, other) for other in self.spans.get(self._key(row), []))

    def is_before(self, row: Row) -> bool:
        """Whether a row of the output is of the times at which no key is certain; a row without times is."""
        span = span_of(row)
        return self.until_ms is not None and (span is None or span[0] <= self.until_ms)

    def _key(self, row: Row) -> Any:
        return comparable([row[column] for column in self.key_columns(row)])


def place_of(row: Row) -> Any:
    """Return the times of a row, by which it is told from the other rows of its key."""
    return comparable({name: value for name, value in row.items() if isinstance(value, datetime)})


def span_of(row: Row) -> Span:
    """Return the first and the last time of a row, in milliseconds since 1970; None if it has none."""
    times = [microseconds(value) // 1_000 for value in values_of(row) if isinstance(value, datetime)]
    return (min(times), max(times)) if times else None


def _overlap(one: Span, other: Span) -> bool:
    """Whether two spans overlap, as windows do; one that ends where the other begins doesn't, unless one is a point."""
    if one is None or other is None:
        return True
    first, last = max(one[0], other[0]), min(one[1], other[1])
    return first < last or (first == last and (one[0] == one[1] or other[0] == other[1]))


def values_of(row: Row) -> Iterator[Any]:
    """Yield the values of a row, and those within its structs."""
    for value in row.values():
        yield from values_of(value) if isinstance(value, Mapping) else [value]

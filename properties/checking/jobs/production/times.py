"""The times of a row, by which it is told from the other rows of its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ....generators.columns.forms.rows import Row
from ....outcomes.equality import comparable


def place_of(row: Row) -> Any:
    """Return the times of a row, by which it is told from the other rows of its key."""
    return comparable({name: value for name, value in row.items() if isinstance(value, datetime)})


def values_of(row: Row) -> Iterator[Any]:
    """Yield the values of a row, and those within its structs."""
    for value in row.values():
        yield from values_of(value) if isinstance(value, Mapping) else [value]

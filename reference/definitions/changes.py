"""Change events of a table's rows, and the declarations of the dimensions that they update."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..core.errors import BadInput
from ..core.records import Record
from .declarations import Definition, field_of, is_whole, not_negative

OPEN = 253_402_300_799_999
"""The end of a current version: the last millisecond of the year 9999."""

_text = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True, repr=False)
class Kept:
    """A dimension's row.

    Attributes:
        value: Its value.
        same: The row's identity, which is compared in place of the value, because 1 and True are equal values in
            Python.
    """

    value: Any = field(compare=False)
    same: Any

    def __repr__(self) -> str:
        return repr(self.value)


class Event(NamedTuple):
    """A change event of a row.

    Attributes:
        key: The row's key.
        sequence: The event's position among the events of its key: the largest is the newest.
        order: The tie-breaker between events of equal sequence: the event with the largest order is the newest.
        row: The row after the change; None if the change deletes the row.
    """

    key: Any
    sequence: Any
    order: Any
    row: Kept | None

    @property
    def value(self) -> Any:
        """The row's value; None if the change deletes the row."""
        return None if self.row is None else self.row.value


def decisive(events: Collection[Event]) -> Event:
    """Return the newest of several events of a key; identical events may repeat.

    Raises:
        BadInput: Two different events have equal sequence and order.
    """
    newest = max(events, key=lambda event: (event.sequence, event.order))
    for event in events:
        if event[:3] == newest[:3] and event.row != newest.row:
            raise BadInput(
                f"two events of the key {event.key!r} have the sequence {event.sequence!r} and differ, "
                f"{_shown(event)} and {_shown(newest)}: "
                "name a field that orders them with ties, or give each event of a key its own sequence"
            )
    return newest


def _shown(event: Event) -> str:
    return "a delete" if event.row is None else repr(event.row)


def _columns(option: Any) -> tuple[str, ...]:
    if not isinstance(option, list | tuple) or not option or not all(isinstance(name, str) for name in option):
        raise BadInput(f'the fields are {option!r}: give a list of their names, such as ["name"]')
    return tuple(option)


def _deletes(option: Any) -> Mapping[str, Any]:
    if not isinstance(option, Mapping) or len(option) != 1:
        raise BadInput(f'deletes is {option!r}: give a field and its value, such as {{"op": "D"}}')
    return option


@dataclass(frozen=True)
class Scd1(Definition):
    """A dimension of type 1: the newest version of each row.

    Attributes:
        sequence_by: The field that contains an event's sequence (ms); by default the sequence is the record's
            timestamp.
        deletes: The field and the field's value that mark a delete event; a record with a null value also deletes its
            row.
        columns: The fields of the value object that the row contains; all fields by default.
        ties: The field, a whole number, that orders events of equal sequence; if None, different events of equal
            sequence are refused.
        tombstone_ms: The time for which a deleted key is remembered; records further behind the clock are dropped. If
            None, a deleted key is never forgotten, and no record is late.

    Raises:
        BadInput: `tombstone_ms` is negative, or is set although the sequence isn't the timestamp.
    """

    sequence_by: str | None = None
    deletes: Mapping[str, Any] | None = field(default=None, metadata={"read": _deletes})
    columns: tuple[str, ...] | None = field(default=None, metadata={"read": _columns})
    ties: str | None = None
    tombstone_ms: int | None = None

    def __post_init__(self) -> None:
        """Check the declaration."""
        if self.tombstone_ms is not None:
            not_negative(self, "tombstone_ms")
            if self.sequence_by is not None:
                raise BadInput(
                    "tombstone_ms is measured in timestamps, but events are ordered by "
                    f"{self.sequence_by!r}: a deleted key could come back; leave one of the two out"
                )

    def edge(self, clock: int) -> int:
        """Return the timestamp (ms) before which records are dropped and tombstones are forgotten, at a clock (ms)."""
        return 0 if self.tombstone_ms is None else clock - self.tombstone_ms

    def is_nothing(self, record: Record) -> bool:
        """Return whether a record is dropped because its null value lacks the field of the sequence or tie-breaker."""
        return record.value is None and (self.sequence_by or self.ties) is not None

    def event(self, record: Record) -> Event:
        """Convert a record to a change event.

        Raises:
            BadInput: The value lacks a field, or its sequence isn't a whole number.
        """
        sequence = record.timestamp if self.sequence_by is None else _number(record.value, self.sequence_by, "sequence")
        order = 0 if self.ties is None else _number(record.value, self.ties, "order of events of equal sequence")
        return Event(record.key, sequence, order, self._row(record.value))

    def _row(self, value: Any) -> Kept | None:
        if value is None:
            return None
        if self.deletes is not None and any(
            field_of(value, name, "the kind of the change") == of_delete for name, of_delete in self.deletes.items()
        ):
            return None
        kept = value if self.columns is None else {name: field_of(value, name, "a column") for name in self.columns}
        return Kept(kept, _text(kept))

    def check(self, record: Record) -> None:
        """Refuse a value without the declared fields."""
        if record.key is not None and not self.is_nothing(record):
            self.event(record)


@dataclass(frozen=True)
class Scd2(Scd1):
    """A dimension of type 2: every version of each row, with its interval.

    Attributes:
        track: The fields whose change starts a new version; changes of other fields update the current version. All
            fields by default.
    """

    track: tuple[str, ...] | None = field(default=None, metadata={"read": _columns})

    def tracked(self, row: Kept) -> Any:
        """Return the tracked fields of a row; a change of them starts a new version."""
        if self.track is None:
            return row.same
        return _text([field_of(row.value, name, "a tracked column") for name in self.track])

    def check(self, record: Record) -> None:
        """Refuse a value without the declared fields."""
        super().check(record)
        if record.key is not None and not self.is_nothing(record) and (row := self.event(record).row) is not None:
            self.tracked(row)


def _number(value: Any, name: str, what: str) -> int:
    found = field_of(value, name, f"the {what}", f"give each event its {what}")
    if not is_whole(found) or found < 0:
        raise BadInput(f"the field {name!r} holds {found!r}: the {what} is a whole number, 0 or more")
    assert isinstance(found, int)
    return found

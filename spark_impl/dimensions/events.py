"""Change events of `scd1` and `scd2`: the columns of an event, and the logic of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from ...reference.definitions.changes import Scd1
from ..runtime.codec import encode
from ..runtime.columns import WHOLE_NUMBERS, ColumnLike, bare, resolve
from ..runtime.durations import Duration, milliseconds
from ..runtime.inputs import OperatorInput, resolved
from ..runtime.logic import Arrived, Key, Logic, LogicOutput, dropped


class PlacedEvent(NamedTuple):
    """A change event of a row.

    Attributes:
        sequence: The event's position among the events of its key: the largest is the newest.
        tie: The tie-breaker between events of equal sequence: the event with the largest `tie` is the newest.
        row: The row after the change; None if the change deletes the row.
        tracked: The tracked columns of the row, or their hash; equal within a version.
    """

    sequence: int
    tie: int
    row: Any
    tracked: Any = None


STORED = T.StructType().add("sequence", "long").add("tie", "long")
"""The first fields of an event, both on arrival and in the state."""


class ChangeEvents(NamedTuple):
    """The resolved columns of change events.

    Attributes:
        rows: The input; a value contains the fields of `STORED`, the row, and the tracked columns.
        row: The type of a row.
        options: The options of the dimension's definition.
        deletes: The name of the delete condition, for the declaration.
    """

    rows: OperatorInput
    row: T.DataType
    options: dict[str, Any]
    deletes: str | None


def change_events(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    sequence_by: ColumnLike | None,
    deletes: ColumnLike | None,
    ties: ColumnLike | None,
    tombstones: Duration | None,
    order: ColumnLike | None,
    tracked: Sequence[tuple[Column, T.StructField]] = (),
) -> ChangeEvents:
    """Resolve the columns of change events; the arguments are those of `scd1`, and the tracked columns.

    Raises:
        BadInput: A column is missing or of the wrong type; the message names the parameter, the column and the remedy.
    """
    one = resolved(events, key=key, timestamp=timestamp, value=value, order=order)
    sequence, tie = (_whole(events, *named) for named in (("sequence_by", sequence_by), ("ties", ties)))
    deletes_row, condition = _condition(events, deletes)
    row = F.when(~deletes_row, one.value).alias("row")
    common = F.struct(*(column for column, _ in tracked)) if tracked else F.lit(None).cast("int")
    common_type = T.StructType([field for _, field in tracked]) if tracked else T.IntegerType()
    columns = (sequence[0].alias("sequence"), tie[0].alias("tie"), row, common.alias("tracked"))
    return ChangeEvents(
        one._replace(
            value=F.struct(*columns),
            value_type=T.StructType([*STORED, T.StructField("row", one.value_type)]).add("tracked", common_type),
            as_tuples=1,
        ),
        one.value_type,
        {
            "sequence_by": sequence[1],
            "ties": tie[1],
            "tombstone_ms": None if tombstones is None else milliseconds("tombstones", tombstones),
        },
        condition,
    )


def _whole(frame: DataFrame, parameter: str, column: ColumnLike | None) -> tuple[Column, str | None]:
    """Return a column that orders events as whole numbers, and its name; null and None without a column."""
    if column is None:
        return F.lit(None).cast("bigint"), None
    found, field = resolve(frame, parameter, column)
    if isinstance(field.dataType, WHOLE_NUMBERS):
        return found.cast("bigint"), field.name
    if isinstance(field.dataType, T.TimestampType | T.TimestampNTZType):
        return F.unix_millis(found.cast("timestamp")), field.name
    raise BadInput(
        f"{parameter}: the column {field.name!r} is {field.dataType.simpleString()}: it must be a whole number or a "
        "timestamp; cast it"
    )


def _condition(frame: DataFrame, deletes: ColumnLike | None) -> tuple[Column, str | None]:
    """Return the condition for deletes, which is never null, and its name."""
    if deletes is None:
        return F.lit(False), None
    found, field = resolve(frame, "deletes", deletes)
    if not isinstance(field.dataType, T.BooleanType):
        raise BadInput(
            f"deletes: {field.name!r} is {field.dataType.simpleString()}: give a condition, such as F.col('op') == 'D'"
        )
    return F.coalesce(found, F.lit(False)), field.name


class ChangesLogic(Logic[list[PlacedEvent]]):
    """The logic of a row; the state contains the events that can still affect the table, ordered by sequence."""

    def __init__(self, changes: Scd1) -> None:
        self.changes = changes

    def empty(self) -> list[PlacedEvent]:
        """No event."""
        return []

    def take(self, key: Key, state: list[PlacedEvent], row: Arrived, clock: int) -> list[LogicOutput]:
        """Store an event, unless it changes nothing or is late; return the changes of the table."""
        event = self.event(row)
        if event is None:
            return [dropped(row, "null value" if row.value[2] is None else "null sequence")]
        if self.is_late(row, clock):
            return [dropped(row, "late")]
        return self.store(key, state, row, event)

    def event(self, row: Arrived) -> PlacedEvent | None:
        """Convert an arrived row to an event; None if the row lacks its sequence or tie-breaker."""
        sequence, tie, kept, tracked = row.value
        sequence = row.timestamp if self.changes.sequence_by is None else sequence
        tie = 0 if self.changes.ties is None else tie
        return None if sequence is None or tie is None else PlacedEvent(sequence, tie, kept, tracked)

    def is_late(self, row: Arrived, clock: int) -> bool:
        """Return whether a row is so late that a newer delete may already be forgotten."""
        assert row.timestamp is not None
        return row.timestamp < self.edge(clock)

    def edge(self, clock: int) -> float:
        """Return the time (ms) before which events are late, and deleted keys are forgotten."""
        kept = self.changes.tombstone_ms
        return float("-inf") if kept is None else clock - kept

    def is_newer(self, key: Key, event: PlacedEvent, old: PlacedEvent) -> bool:
        """Return whether an event is newer than an earlier event of its key.

        Raises:
            BadInput: The order of the two events is undefined.
        """
        if event[:2] == old[:2] and encode(event.row) != encode(old.row):
            raise BadInput(
                f"two events of the key {bare(key)!r} have the sequence {event.sequence!r} and differ: name a field "
                "that orders them with ties, or give each event of a key its own sequence"
            )
        return event[:2] > old[:2]

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        """Insert an event; return the changes of the table."""
        raise NotImplementedError

    def keep(self, state: list[PlacedEvent], emitted: int, clock: int) -> list[PlacedEvent]:
        """Return the events, after merging those that are older than any event that can still be accepted."""
        edge = self.edge(clock)
        past = [event for event in state if event.sequence < edge]
        return [*self.merged(past), *state[len(past) :]]

    def merged(self, past: list[PlacedEvent]) -> list[PlacedEvent]:
        """Merge past events (older than any event still to come) into their newest event, or into none if that is a
        delete.
        """
        return past[-1:] if past and past[-1].row is not None else []

    def due(self, state: list[PlacedEvent], clock: int) -> int | None:
        """Return the time (ms) at which a deleted key is forgotten, or None."""
        kept = self.changes.tombstone_ms
        return None if kept is None or not state or state[-1].row is not None else state[-1].sequence + kept + 1

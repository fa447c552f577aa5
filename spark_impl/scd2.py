"""Slowly changing dimensions of type 2 on Spark: every version of each row with its interval, from change events.

Source: Kimball, "The Data Warehouse Toolkit", type 2; order, deletes and tracked columns as in AUTO CDC of Spark's
Declarative Pipelines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from ..reference.definitions.changes import OPEN, Scd2
from .dimensions.events import STORED, ChangesLogic, PlacedEvent, change_events
from .runtime.codec import digest_of, encode
from .runtime.columns import ColumnLike
from .runtime.durations import Duration
from .runtime.keyed import InitialState, declaration_of, keyed
from .runtime.logic import Arrived, Key, LogicOutput, changed
from .runtime.stages import named_columns


def scd2(
    events: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    track: ColumnLike | Sequence[ColumnLike] | None = None,
    sequence_by: ColumnLike | None = None,
    deletes: ColumnLike | None = None,
    ties: ColumnLike | None = None,
    tombstones: Duration | None = None,
    order: ColumnLike | None = None,
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[Scd2], Scd2Logic] | None = None,
) -> DataFrame:
    """Keep every version of each row from its change events, and return the changelog of the versions.

    A version is valid from the sequence of its first event to the sequence of the next version or delete. A late event
    can split an interval.

    Args:
        events: As in `scd1`.
        key: As in `scd1`.
        timestamp: As in `scd1`.
        value: As in `scd1`.
        track: One or several columns whose change starts a new version; changes of other columns update the version's
            row. The default is the whole `value`.
        sequence_by: As in `scd1`; the sequence is a time, because a version is valid between two times.
        deletes: As in `scd1`.
        ties: As in `scd1`.
        tombstones: As in `scd1`. With `tombstones`, versions that no event can change any more leave the state.
        order: As in `scd1`.
        report_dropped: As in `scd1`.
        state_groups: As in `keyed`. The state contains all events of different sequences, except with `tombstones`.
        initial_state: As in `keyed`.
        logic: Makes the logic that processes a key's rows, by default `Scd2Logic`; mutation testing passes logic with a
            bug.

    Returns:
        The columns of `keyed`'s changelog, with the version's interval as the window, whose end is exclusive; the
        current version ends at the end of the year 9999. The timestamp is the version's start. A version whose interval
        changes emits a tombstone, and an update under the new interval. A streaming result is in append mode.

    Raises:
        BadInput: As `scd1`.

    Source: Kimball, "The Data Warehouse Toolkit"; AUTO CDC of Spark's Declarative Pipelines.
    """
    tracked = () if track is None else named_columns(events, "track", track)
    given = change_events(
        events,
        key=key,
        timestamp=timestamp,
        value=value,
        sequence_by=sequence_by,
        deletes=deletes,
        ties=ties,
        tombstones=tombstones,
        order=order,
        tracked=tracked,
    )
    declared = Scd2(**given.options, track=tuple(field.name for _, field in tracked) or None)
    event = T.StructType([*STORED, T.StructField("row", given.row)]).add("tracked", "binary")
    return keyed(
        [given.rows],
        (logic or Scd2Logic)(declared),
        state_type=T.StructType().add("events", T.ArrayType(event)),
        value_type=given.row,
        state_groups=state_groups,
        initial_state=initial_state,
        report_dropped=report_dropped,
        timed=declared.tombstone_ms is not None,
        declaration=declaration_of("scd2", declared, deletes=given.deletes),
    )


class RowVersion(NamedTuple):
    """A version of a row, valid from `start` to `end` (ms, exclusive)."""

    start: int
    end: int
    row: Any


_sequence = attrgetter("sequence")


class Scd2Logic(ChangesLogic):
    """The logic of a row; the state contains the row's events, one per sequence, including deletes."""

    changes: Scd2

    def pack(self, state: list[PlacedEvent]) -> tuple[Any, ...] | None:
        """Pack the events, if any."""
        return (state,) if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[PlacedEvent]:
        """The events again."""
        return [PlacedEvent(*event) for event in fields[0]]

    def event(self, row: Arrived) -> PlacedEvent | None:
        """Return an arrived row as an event, with the hash of its tracked columns."""
        event = super().event(row)
        if event is None:
            return None
        return event._replace(tracked=digest_of(event.row if self.changes.track is None else event.tracked))

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        """Insert an event; emit tombstones for removed versions, then the new versions."""
        at = bisect_left(state, event.sequence, key=_sequence)
        same = at < len(state) and state[at].sequence == event.sequence
        if same and not self.is_newer(key, event, state[at]):
            return []
        first, last = self.around(state, at, at + same)
        before = self.versions(state, first, last)
        state[at : at + same] = [event]
        return self.emit(row, before, self.versions(state, first, last + 1 - same))

    def around(self, state: list[PlacedEvent], first: int, last: int) -> tuple[int, int]:
        """Return the events `first` to `last` (exclusive) with the neighbouring versions, which may change too."""
        first = max(first - 1, 0)
        while not self.begins(state, first):
            first -= 1
        last = min(last + 1, len(state))
        while last < len(state) and not self.begins(state, last):
            last += 1
        return first, last

    def begins(self, state: list[PlacedEvent], at: int) -> bool:
        """Return whether an event starts a version, or is a delete."""
        if at == 0 or state[at].row is None or state[at - 1].row is None:
            return True
        return self.differs(state[at - 1], state[at])

    def differs(self, event: PlacedEvent, after: PlacedEvent) -> bool:
        """Return whether `after`, the event after `event`, starts a new version."""
        return bool(event.tracked != after.tracked)

    def versions(self, state: list[PlacedEvent], first: int, last: int) -> list[RowVersion]:
        """Return the versions of the events `first` to `last` (exclusive), where the next version starts."""
        starts = [at for at in range(first, last) if self.begins(state, at)]
        return [
            self.version(state[at:after], state[after] if after < len(state) else None)
            for at, after in pairwise([*starts, last])
            if state[at].row is not None
        ]

    def version(self, events: list[PlacedEvent], after: PlacedEvent | None) -> RowVersion:
        """Return the version of consecutive events; the version ends at the event `after`, if any."""
        return RowVersion(events[0].sequence, OPEN if after is None else after.sequence, events[-1].row)

    def emit(self, row: Arrived, before: list[RowVersion], after: list[RowVersion]) -> list[LogicOutput]:
        """Return tombstones for removed versions, then the versions that are new or have another row."""
        rows = {one[:2]: encode(one.row) for one in before}
        kept = {one[:2] for one in after}
        gone = [changed(row, None, one.start, one[:2]) for one in before if one[:2] not in kept]
        new = [one for one in after if rows.get(one[:2]) != encode(one.row)]
        return [*gone, *(changed(row, one.row, one.start, one[:2]) for one in new)]

    def merged(self, past: list[PlacedEvent]) -> list[PlacedEvent]:
        """Merge past events into one event at the start of their last version, or into none if the last event is a
        delete.
        """
        left = super().merged(past)
        first = len(past) - 1
        while left and not self.begins(past, first):
            first -= 1
        return [one._replace(sequence=past[first].sequence) for one in left]

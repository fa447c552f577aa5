"""Bugs that mutants of both dimensions share: in the choice of events, and in their storage."""

from __future__ import annotations

from typing import Any

from .....spark_impl.dimensions.events import ChangesLogic, PlacedEvent
from .....spark_impl.runtime.logic import Arrived, Key, LogicOutput, dropped
from .common import is_falsy, plain


class TiesByArrival(ChangesLogic):
    """Of several events with equal sequence, the last arrival counts."""

    def is_newer(self, key: Key, event: PlacedEvent, old: PlacedEvent) -> bool:
        return event.sequence >= old.sequence


class TiesBySmallest(ChangesLogic):
    """Of several events with equal sequence, the event with the smallest value counts."""

    def is_newer(self, key: Key, event: PlacedEvent, old: PlacedEvent) -> bool:
        return (event.sequence, -event.tie) > (old.sequence, -old.tie)


class TiesIgnored(ChangesLogic):
    """Of several events with equal sequence, the first arrival counts."""

    def is_newer(self, key: Key, event: PlacedEvent, old: PlacedEvent) -> bool:
        return event.sequence > old.sequence


class SequencedByTime(ChangesLogic):
    """Events are ordered by timestamp, regardless of their sequence."""

    def event(self, row: Arrived) -> PlacedEvent | None:
        event = super().event(row)
        return event if event is None or row.timestamp is None else event._replace(sequence=row.timestamp)


class SequencedByArrival(ChangesLogic):
    """An event that is older than its key's newest event counts as if it had the newest event's sequence."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        newest = max((one.sequence for one in state), default=event.sequence)
        return super().store(key, state, row, event._replace(sequence=max(event.sequence, newest + 1)))


class DeletesIgnored(ChangesLogic):
    """A delete leaves its row in the table."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        return [] if event.row is None else super().store(key, state, row, event)


class NullsIgnored(ChangesLogic):
    """A null event with a sequence deletes nothing."""

    def take(self, key: Key, state: list[PlacedEvent], row: Arrived, clock: int) -> list[LogicOutput]:
        return [dropped(row, "null value")] if row.value[2] is None else super().take(key, state, row, clock)


class NullsSilent(ChangesLogic):
    """A null value without a sequence is dropped, and not reported as dropped."""

    def take(self, key: Key, state: list[PlacedEvent], row: Arrived, clock: int) -> list[LogicOutput]:
        return [] if self.event(row) is None else super().take(key, state, row, clock)


class NullsDelete(ChangesLogic):
    """A null value without a sequence deletes the row at its timestamp."""

    def event(self, row: Arrived) -> PlacedEvent | None:
        assert row.timestamp is not None
        return super().event(row) or PlacedEvent(row.timestamp, 0, None)


class LateTaken(ChangesLogic):
    """No event is late."""

    def is_late(self, row: Arrived, clock: int) -> bool:
        return False


class LateAtTheEdge(ChangesLogic):
    """An event exactly at the edge of lateness is late."""

    def is_late(self, row: Arrived, clock: int) -> bool:
        assert row.timestamp is not None
        return row.timestamp <= self.edge(clock)


class LateByTheBatch(ChangesLogic):
    """An event that is older than its key's newest event is late, if deleted keys are forgotten."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        is_old = self.changes.tombstone_ms is not None and any(event.sequence < one.sequence for one in state)
        return [dropped(row, "late")] if is_old else super().store(key, state, row, event)


class TombstonesNotSaved(ChangesLogic):
    """A deleted key isn't saved between batches."""

    def pack(self, state: list[PlacedEvent]) -> tuple[Any, ...] | None:
        return None if not state or state[-1].row is None else super().pack(state)


class TombstonesForgottenByRows(ChangesLogic):
    """The next batch with an event of a deleted key makes the state forget the deletion."""

    def keep(self, state: list[PlacedEvent], emitted: int, clock: int) -> list[PlacedEvent]:
        return [event for event in super().keep(state, emitted, clock) if event.row is not None or clock == 0]


class RowsForgotten(ChangesLogic):
    """Rows that are older than the retention of deleted keys are removed from the state too."""

    def merged(self, past: list[PlacedEvent]) -> list[PlacedEvent]:
        return []


class NothingSaved(ChangesLogic):
    """No event is saved between batches."""

    def pack(self, state: list[PlacedEvent]) -> tuple[Any, ...] | None:
        return None


class StampedByArrival(ChangesLogic):
    """A change has its event's timestamp instead of its sequence."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        return [one._replace(timestamp=row.timestamp) for one in super().store(key, state, row, event)]


class FalsyRowsDelete(ChangesLogic):
    """A row that is false, 0 or empty is treated as a delete."""

    def event(self, row: Arrived) -> PlacedEvent | None:
        event = super().event(row)
        return event._replace(row=None) if event is not None and is_falsy(event.row) else event


class FalsyRowsNotSaved(ChangesLogic):
    """Between batches, a row that is false, 0 or empty is saved as a delete."""

    def pack(self, state: list[PlacedEvent]) -> tuple[Any, ...] | None:
        return super().pack([one._replace(row=None) if is_falsy(one.row) else one for one in state])


class EqualRowsSilent(ChangesLogic):
    """A row isn't changed to a value that is equal in Python, for example from 1 to true."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        known = [one.row for one in state if one.row is not None and plain(one.row) == plain(event.row)]
        return super().store(key, state, row, event._replace(row=known[0]) if known else event)


class ZeroSequenceDropped(ChangesLogic):
    """An event with the sequence 0 is treated as an event without a sequence."""

    def event(self, row: Arrived) -> PlacedEvent | None:
        event = super().event(row)
        return None if event is not None and event.sequence == 0 else event


class ZeroTimeNotSaved(ChangesLogic):
    """An event with the sequence 0 isn't saved between batches."""

    def pack(self, state: list[PlacedEvent]) -> tuple[Any, ...] | None:
        return super().pack([one for one in state if one.sequence])

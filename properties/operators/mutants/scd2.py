"""Mutants of the dimension of type 2 on Spark."""

from __future__ import annotations

from ....reference.definitions.changes import OPEN
from ....spark_impl.dimensions.events import PlacedEvent
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ....spark_impl.scd2 import RowVersion, Scd2Logic
from ...registration.mutants import mutants_of
from .drawn import dimensions as bugs
from .making import SharingState, logics_in, mixed, returning

LastArrivalCounts = mixed(Scd2Logic, bugs.SequencedByArrival, "Events are ordered by arrival")
SequencedByTime = mixed(Scd2Logic, bugs.SequencedByTime)
TiesByArrival = mixed(Scd2Logic, bugs.TiesByArrival)
TiesBySmallest = mixed(Scd2Logic, bugs.TiesBySmallest)
TiesIgnored = mixed(Scd2Logic, bugs.TiesIgnored)
DeletesIgnored = mixed(Scd2Logic, bugs.DeletesIgnored)
NullsIgnored = mixed(Scd2Logic, bugs.NullsIgnored)
NullsDelete = mixed(Scd2Logic, bugs.NullsDelete)
NullsSilent = mixed(Scd2Logic, bugs.NullsSilent)
LateTaken = mixed(Scd2Logic, bugs.LateTaken)
LateAtTheEdge = mixed(Scd2Logic, bugs.LateAtTheEdge)
LateByTheBatch = mixed(Scd2Logic, bugs.LateByTheBatch)
TombstonesNotSaved = mixed(Scd2Logic, bugs.TombstonesNotSaved)
RowsForgotten = mixed(Scd2Logic, bugs.RowsForgotten)
NothingSaved = mixed(Scd2Logic, bugs.NothingSaved)
StateOfAnotherKey = mixed(Scd2Logic, SharingState)
EveryEventIsAVersion = returning(
    Scd2Logic, "Consecutive events with equal rows are separate versions", differs=lambda found: True
)
AllRowsAreOneVersion = returning(Scd2Logic, "A change of a row starts no new version", differs=lambda found: False)
IntervalsOverlap = returning(
    Scd2Logic,
    "A version ends 1 ms after the next version starts",
    version=lambda found: found if found.end == OPEN else found._replace(end=found.end + 1),
)
VersionsNeverEnd = returning(Scd2Logic, "No version ends", version=lambda found: found._replace(end=OPEN))


class DeletesEndNothing(Scd2Logic):
    """A version whose row is deleted doesn't end."""

    def version(self, events: list[PlacedEvent], after: PlacedEvent | None) -> RowVersion:
        return super().version(events, None if after is not None and after.row is None else after)


class FirstRowOfVersion(Scd2Logic):
    """A version has the row of its first event."""

    def version(self, events: list[PlacedEvent], after: PlacedEvent | None) -> RowVersion:
        return super().version(events, after)._replace(row=events[0].row)


class StartOfLastEvent(Scd2Logic):
    """A version starts with its last event."""

    def version(self, events: list[PlacedEvent], after: PlacedEvent | None) -> RowVersion:
        return super().version(events, after)._replace(start=events[-1].sequence)


class OlderEventsIgnored(Scd2Logic):
    """An event that is older than the newest event splits no version."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        return [] if state and event.sequence < state[-1].sequence else super().store(key, state, row, event)


class OlderDeletesIgnored(Scd2Logic):
    """A delete that is older than the newest event ends no version."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        is_old = bool(state) and event.sequence < state[-1].sequence and event.row is None
        return [] if is_old else super().store(key, state, row, event)


class DeletesForgotten(Scd2Logic):
    """A delete ends a version and is then forgotten, so a version of an older event doesn't end at the delete."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        emitted = super().store(key, state, row, event)
        state[:] = [one for one in state if one.row is not None or one is not event]
        return emitted


class OldVersionsStay(Scd2Logic):
    """A version whose interval changes also stays in the table."""

    def emit(self, row: Arrived, before: list[RowVersion], after: list[RowVersion]) -> list[LogicOutput]:
        return [one for one in super().emit(row, before, after) if one.value is not None]


class NewVersionsFirst(Scd2Logic):
    """New versions are emitted before the tombstones of old versions."""

    def emit(self, row: Arrived, before: list[RowVersion], after: list[RowVersion]) -> list[LogicOutput]:
        return sorted(super().emit(row, before, after), key=lambda one: one.value is None)


class UnchangedVersionsEmitted(Scd2Logic):
    """An unchanged version is emitted again."""

    def emit(self, row: Arrived, before: list[RowVersion], after: list[RowVersion]) -> list[LogicOutput]:
        return super().emit(row, [one for one in before if one not in after], after)


class StampedByEnd(Scd2Logic):
    """The timestamp of an ended version is its end."""

    def emit(self, row: Arrived, before: list[RowVersion], after: list[RowVersion]) -> list[LogicOutput]:
        return [one if one.end == OPEN else one._replace(timestamp=one.end) for one in super().emit(row, before, after)]


class OneVersionRevised(Scd2Logic):
    """Of the versions around an event, only the version that contains the event is recomputed."""

    def around(self, state: list[PlacedEvent], first: int, last: int) -> tuple[int, int]:
        first, last = super().around(state, first, last)
        return first, last if first == 0 else max(first, last - 1)


MUTANTS = mutants_of(
    "scd2",
    Scd2Logic,
    "timestamps",
    logics_in(globals(), Scd2Logic),
    {
        "fields": (SequencedByTime, NullsDelete, NullsSilent),
        "ties": (TiesByArrival, TiesBySmallest, TiesIgnored),
        "tombstones": (LateTaken, LateAtTheEdge, LateByTheBatch, RowsForgotten),
        "tracked": (FirstRowOfVersion,),
    },
)

"""Mutants of the dimension of type 1 on Spark."""

from __future__ import annotations

from ....spark_impl.dimensions.events import PlacedEvent
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput, changed
from ....spark_impl.scd1 import Scd1Logic
from ...registration.mutants import mutants_of
from .drawn import dimensions as bugs
from .making import SharingState, logics_in, mixed

LastArrivalCounts = mixed(Scd1Logic, bugs.SequencedByArrival, "The event that arrives last counts")
SequencedByTime = mixed(Scd1Logic, bugs.SequencedByTime)
TiesByArrival = mixed(Scd1Logic, bugs.TiesByArrival)
TiesBySmallest = mixed(Scd1Logic, bugs.TiesBySmallest)
TiesIgnored = mixed(Scd1Logic, bugs.TiesIgnored)
DeletesIgnored = mixed(Scd1Logic, bugs.DeletesIgnored)
NullsIgnored = mixed(Scd1Logic, bugs.NullsIgnored)
NullsDelete = mixed(Scd1Logic, bugs.NullsDelete)
NullsSilent = mixed(Scd1Logic, bugs.NullsSilent)
LateTaken = mixed(Scd1Logic, bugs.LateTaken)
LateAtTheEdge = mixed(Scd1Logic, bugs.LateAtTheEdge)
LateByTheBatch = mixed(Scd1Logic, bugs.LateByTheBatch)
TombstonesNotSaved = mixed(Scd1Logic, bugs.TombstonesNotSaved)
RowsForgotten = mixed(Scd1Logic, bugs.RowsForgotten)
NothingSaved = mixed(Scd1Logic, bugs.NothingSaved)
StampedByArrival = mixed(Scd1Logic, bugs.StampedByArrival)
StateOfAnotherKey = mixed(Scd1Logic, SharingState)


class FirstArrivalCounts(Scd1Logic):
    """The event that arrives first counts."""

    def is_newer(self, key: Key, event: PlacedEvent, old: PlacedEvent) -> bool:
        return False


class TombstonesNotKept(Scd1Logic):
    """A deleted key is forgotten at once, so an older event restores it."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        emitted = super().store(key, state, row, event)
        state[:] = [one for one in state if one.row is not None]
        return emitted


class MissingDeletesEmitted(Scd1Logic):
    """The delete of a missing row is emitted."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        emitted = super().store(key, state, row, event)
        return emitted or [changed(row, None, event.sequence)] if event.row is None else emitted


class RepeatsEmitted(Scd1Logic):
    """A repeated event is emitted again."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        again = [changed(row, event.row, event.sequence) for one in state if one[:3] == event[:3] and event.row]
        return super().store(key, state, row, event) or again


class EqualRowsNotStamped(Scd1Logic):
    """A newer event with the same row isn't emitted, so the row's timestamp stays."""

    def store(self, key: Key, state: list[PlacedEvent], row: Arrived, event: PlacedEvent) -> list[LogicOutput]:
        before = [one.row for one in state]
        emitted = super().store(key, state, row, event)
        return [] if event.row in before else emitted


MUTANTS = mutants_of(
    "scd1",
    Scd1Logic,
    "timestamps",
    logics_in(globals(), Scd1Logic),
    {
        "fields": (SequencedByTime, NullsDelete, NullsSilent, StampedByArrival),
        "ties": (TiesByArrival, TiesBySmallest, TiesIgnored),
        "tombstones": (LateTaken, LateAtTheEdge, LateByTheBatch, RowsForgotten),
    },
)

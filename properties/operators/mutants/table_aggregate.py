"""Mutants of the table aggregate on Spark."""

from __future__ import annotations

from typing import Any

from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput
from ....spark_impl.table_aggregate import GroupLogic, InGroup, RowLogic, table_aggregate_stages
from ...registration.mutants import mutants_of
from .making import SharingState, logics_in, returning


class OldStays(RowLogic):
    """The old value isn't subtracted."""

    def sends(self, row: Arrived, old: InGroup | None, new: InGroup | None) -> list[LogicOutput]:
        return super().sends(row, None, new)


class TwoUpdatesOfOneGroup(RowLogic):
    """A row that stays in its group causes two changes, the first without the row."""

    def sends(self, row: Arrived, old: InGroup | None, new: InGroup | None) -> list[LogicOutput]:
        return [*super().sends(row, old, None), *super().sends(row, None, new)]


class DeletionSilent(RowLogic):
    """A deleted row stays in its group."""

    def take(self, key: Key, state: list[InGroup], row: Arrived, clock: int) -> list[LogicOutput]:
        old = list(state)
        emitted = super().take(key, state, row, clock)
        if self.in_group(row) is None:
            state[:] = old
            return []
        return emitted


ForgetsOldValues = returning(RowLogic, "Old values are not saved between batches", pack=lambda found: None)


class LatestTimestamp(GroupLogic):
    """A group has the timestamp of the last row instead of the largest timestamp."""

    def stamp(self, largest: int, timestamp: int) -> int:
        return timestamp


EmptyGroupForgotten = returning(
    GroupLogic,
    "An emptied group emits a tombstone",
    take=lambda found: [one._replace(value=None) if one.value == 0 else one for one in found],
)


class CountsOnce(GroupLogic):
    """A second member isn't added."""

    def added(self, key: Key, value: Any, member: Any) -> Any:
        # Lists keep all members, because a list couldn't subtract a member that was never added.
        listed = self.groups.aggregate.name == "list"
        return super().added(key, value, member) if listed else max(value, super().added(key, 0, member))


class StateOfAnotherKey(SharingState, GroupLogic):
    """A row is processed with the state of the previous row's key."""

    def subtracted(self, key: Key, value: Any, member: Any) -> Any:
        missing = self.groups.aggregate.name == "list" and repr(member) not in map(repr, value)
        return value if missing else super().subtracted(key, value, member)


MUTANTS = mutants_of("table_aggregate", table_aggregate_stages, "count", logics_in(globals(), RowLogic, GroupLogic))

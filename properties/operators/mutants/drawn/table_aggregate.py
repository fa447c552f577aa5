"""Mutants of the table aggregate that need drawn definitions, keys and values."""

from __future__ import annotations

from typing import Any

from .....spark_impl.runtime.logic import TOMBSTONE, Arrived, Key, LogicOutput
from .....spark_impl.table_aggregate import Aggregated, GroupLogic, InGroup, RowLogic, table_aggregate_stages
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, returning
from . import aggregates
from .common import (
    DroppingEmptyKeys,
    MistakingCauses,
    is_empty_key,
    is_empty_text,
    key_after_bug,
    lower_case,
    normalised,
    plain,
    same,
    stripped,
)

EmptyGroupIsNone = returning(
    RowLogic,
    "A row whose group is the empty text has no group",
    in_group=lambda found: None if found is None or is_empty_key(found.group) else found,
)
GroupsInLowerCase = returning(
    RowLogic,
    "A group is emitted in lower case",
    in_group=lambda found: found and found._replace(group=key_after_bug(found.group, lower_case)),
)
GroupsStripped = returning(
    RowLogic,
    "A group loses the spaces around it",
    in_group=lambda found: found and found._replace(group=key_after_bug(found.group, stripped)),
)
GroupsNormalised = returning(
    RowLogic,
    "A group is emitted with recomposed characters",
    in_group=lambda found: found and found._replace(group=key_after_bug(found.group, normalised)),
)


class MoveWithinCaseSilent(RowLogic):
    """A row that moves to a group that differs only in case stays in its group."""

    def take(self, key: Key, state: list[InGroup], row: Arrived, clock: int) -> list[LogicOutput]:
        old, new = (state[0] if state else None), self.in_group(row)
        if old and new and key_after_bug(old.group, lower_case) == key_after_bug(new.group, lower_case):
            row = row._replace(value=(*old.group, new.member))
        return super().take(key, state, row, clock)


class EqualMemberStays(RowLogic):
    """A row isn't changed to a value that is equal in Python, for example from 1 to true."""

    def take(self, key: Key, state: list[InGroup], row: Arrived, clock: int) -> list[LogicOutput]:
        old, new = (state[0] if state else None), self.in_group(row)
        kept = old is not None and new is not None and old.group == new.group and same(old.member, new.member)
        if kept and old is not None:
            row = row._replace(value=(*row.value[:-1], old.member))
        return super().take(key, state, row, clock)


class EmptyTextNotSubtracted(RowLogic):
    """A member that is the empty text stays in its group's list."""

    def message(self, row: Arrived, group: Key, old: InGroup | None, new: InGroup | None) -> LogicOutput:
        stays = old is not None and is_empty_text(old.member)
        return super().message(row, group, None if stays else old, new)


EmptyKeyDropped = mixed(RowLogic, DroppingEmptyKeys)


class FalsyMembersNotSaved(RowLogic):
    """A row's old value isn't saved between batches if it is false, 0 or empty."""

    def pack(self, state: list[InGroup]) -> tuple[Any, ...] | None:
        falsy = bool(state) and state[0].member is not None and not plain(state[0].member)
        return None if falsy else super().pack(state)


class RowsWithoutGroupStored(RowLogic):
    """A key without a group stays in the state as null."""

    def pack(self, state: list[InGroup]) -> tuple[Any, ...] | None:
        return super().pack(state) or (None, None)

    def unpack(self, fields: tuple[Any, ...]) -> list[InGroup]:
        return [] if fields[0] is None else super().unpack(fields)


SumThroughFloat = aggregates.sum_through_float.in_logic(GroupLogic)
SumNotBelowZero = aggregates.sum_not_below_zero.in_logic(GroupLogic)
SumRounded = aggregates.sum_rounded.in_logic(GroupLogic)


class NullsNotListed(GroupLogic):
    """A list omits nulls."""

    def added(self, key: Key, value: Any, member: Any) -> Any:
        listed = self.groups.aggregate.name == "list"
        return value if listed and plain(member) is None else super().added(key, value, member)

    def subtracted(self, key: Key, value: Any, member: Any) -> Any:
        listed = self.groups.aggregate.name == "list"
        return value if listed and plain(member) is None else super().subtracted(key, value, member)


class SubtractsWhatIsEqual(GroupLogic):
    """A list removes the first member that is equal in Python, for example 1 for true."""

    def subtracted(self, key: Key, value: Any, member: Any) -> Any:
        if self.groups.aggregate.name != "list":
            return super().subtracted(key, value, member)
        index = next(index for index, one in enumerate(value) if same(one, member))
        return [*value[:index], *value[index + 1 :]]


class ZeroAggregateNotSaved(GroupLogic):
    """A group whose aggregate is 0 or empty isn't saved between batches."""

    def pack(self, state: list[Aggregated]) -> tuple[Any, ...] | None:
        return super().pack([one for one in state if one.value])


CauseOfMessageBefore = mixed(GroupLogic, MistakingCauses)
EmptiedIsTombstone = returning(
    GroupLogic,
    "The change of a group to 0 or empty is labelled a tombstone",
    take=lambda found: [one if one.value or one.reason else one._replace(change=TOMBSTONE) for one in found],
)


class StampStartsAnew(GroupLogic):
    """A group's timestamp starts again once its aggregate is 0 or empty."""

    def take(self, key: Key, state: list[Aggregated], row: Arrived, clock: int) -> list[LogicOutput]:
        state[:] = [one if one.value else one._replace(largest=0) for one in state]
        return super().take(key, state, row, clock)


MUTANTS_OF_DRAWN = mutants_of(
    "table_aggregate",
    table_aggregate_stages,
    "count",
    logics_in(globals(), RowLogic, GroupLogic),
    {
        "list": (EqualMemberStays, EmptyTextNotSubtracted, FalsyMembersNotSaved, NullsNotListed, SubtractsWhatIsEqual),
        "sum": (SumThroughFloat, SumNotBelowZero, SumRounded),
    },
)

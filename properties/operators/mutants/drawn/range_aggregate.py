"""Mutants of range aggregates that need drawn definitions, keys and values."""

from __future__ import annotations

from typing import Any

from .....spark_impl.range_aggregate import RangeLogic, Retained
from .....spark_impl.runtime.logic import DROPPED, Arrived, Key, LogicOutput
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, redeclaring
from . import aggregates
from .common import DroppingEmptyKeys, MistakingCauses, is_falsy, mistaking_keys, normalised, same

AverageInWholeNumbers = aggregates.average_in_whole_numbers.in_logic(RangeLogic)
MaxFromZero = aggregates.max_from_zero.in_logic(RangeLogic)
MinOfSizes = aggregates.min_of_sizes.in_logic(RangeLogic)
ComparedAsText = aggregates.compared_as_text.in_logic(RangeLogic)
SumThroughFloat = aggregates.sum_through_float.in_logic(RangeLogic)
SumRounded = aggregates.sum_rounded.in_logic(RangeLogic)
EqualsListedOnce = aggregates.equals_listed_once.in_logic(RangeLogic)
NullsNotListed = aggregates.nulls_not_listed.in_logic(RangeLogic)
KeysNormalised = mistaking_keys(RangeLogic, "Keys that differ only in Unicode composition share their rows", normalised)
EmptyKeyDropped = mixed(RangeLogic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(RangeLogic, MistakingCauses, "A result names the previous row as its cause")
LongRangeCut = redeclaring(
    RangeLogic,
    "A range longer than 10 ms is cut to 10 ms",
    lambda ranges: {"preceding_ms": min(ranges.preceding_ms, 10)},
)
RangeOfOneEmpty = redeclaring(
    RangeLogic,
    "A range of 1 ms contains only the rows of its own timestamp",
    lambda ranges: {"preceding_ms": 0 if ranges.preceding_ms == 1 else ranges.preceding_ms},
)


class TiesUnpackedReversed(RangeLogic):
    """Rows with the same timestamp are read from the state in reverse order."""

    def unpack(self, fields: tuple[Any, ...]) -> list[Retained]:
        rows = super().unpack(fields)
        rows.reverse()
        rows.sort(key=lambda row: row.timestamp)
        return rows


class FalsyRowsNotSaved(RangeLogic):
    """A row of false, 0 or the empty text isn't saved between batches."""

    def pack(self, state: list[Retained]) -> tuple[Any, ...] | None:
        return super().pack([row for row in state if not is_falsy(row.value)])


class RowAtZeroNotSaved(RangeLogic):
    """A row with timestamp 0 isn't saved between batches."""

    def pack(self, state: list[Retained]) -> tuple[Any, ...] | None:
        return super().pack([row for row in state if row.timestamp])


class FewRowsSaved(RangeLogic):
    """Only the last four rows of a key are saved between batches."""

    def pack(self, state: list[Retained]) -> tuple[Any, ...] | None:
        return super().pack(state[-4:])


class EqualRowsOfOneTime(RangeLogic):
    """If two rows with the same timestamp are equal in Python, for example 1 and true, the first row counts twice."""

    def hold(self, state: list[Retained], row: Retained) -> None:
        equal = [one for one in state if one.timestamp == row.timestamp and same(one.value, row.value)]
        super().hold(state, equal[0] if equal else row)


class AnsweredAsDropped(RangeLogic):
    """The result of a row far behind the clock is labelled as dropped."""

    def take(self, key: Key, state: list[Retained], row: Arrived, clock: int) -> list[LogicOutput]:
        late = row.timestamp is not None and row.timestamp < clock - 2 * self.ranges.preceding_ms
        emitted = super().take(key, state, row, clock)
        return [one._replace(change=DROPPED) if late else one for one in emitted]


MUTANTS_OF_DRAWN = mutants_of(
    "range_aggregate",
    RangeLogic,
    "list",
    logics_in(globals(), RangeLogic),
    elsewhere={
        "average": (AverageInWholeNumbers,),
        "max": (MaxFromZero, ComparedAsText),
        "sum": (SumThroughFloat, SumRounded),
    },
)

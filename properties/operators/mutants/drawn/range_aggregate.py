"""Mutants of range aggregates that show on drawn definitions, keys and values."""

from __future__ import annotations

from typing import Any

from .....reference.definitions.windows import RangeAggregate
from .....spark_impl.range_aggregate import Held, RangeLogic
from .....spark_impl.runtime.logic import DROPPED, Arrived, Emitted, Key
from ....registration.mutants import logics_in, mutants_of, redeclared
from .aggregates import (
    Misaggregating,
    average_in_whole_numbers,
    compared_as_text,
    equals_listed_once,
    max_from_zero,
    min_of_sizes,
    nulls_not_listed,
    sum_rounded,
    sum_through_float,
)
from .common import DroppingEmptyKeys, MistakingCauses, MistakingKeys, is_falsy, normalised, same


class AverageInWholeNumbers(Misaggregating, RangeLogic):
    """An average is divided without its fraction."""

    bug = staticmethod(average_in_whole_numbers)


class MaxFromZero(Misaggregating, RangeLogic):
    """The maximum of negative numbers is 0."""

    bug = staticmethod(max_from_zero)


class MinOfSizes(Misaggregating, RangeLogic):
    """A minimum compares numbers without their signs."""

    bug = staticmethod(min_of_sizes)


class ComparedAsText(Misaggregating, RangeLogic):
    """Numbers are compared as texts, so that 9 is more than 10."""

    bug = staticmethod(compared_as_text)


class SumThroughFloat(Misaggregating, RangeLogic):
    """A sum of whole numbers isn't exact beyond 2^53."""

    bug = staticmethod(sum_through_float)


class SumRounded(Misaggregating, RangeLogic):
    """A sum of fractions is rounded to one decimal."""

    bug = staticmethod(sum_rounded)


class EqualsListedOnce(Misaggregating, RangeLogic):
    """A list leaves out true where it has 1 already."""

    bug = staticmethod(equals_listed_once)


class NullsNotListed(Misaggregating, RangeLogic):
    """A list leaves nulls out."""

    bug = staticmethod(nulls_not_listed)


class KeysNormalised(MistakingKeys, RangeLogic):
    """Keys whose characters are composed in another way share their rows."""

    bug = staticmethod(normalised)


class EmptyKeyDropped(DroppingEmptyKeys, RangeLogic):
    """The empty key is taken for null."""


class CauseOfRowBefore(MistakingCauses, RangeLogic):
    """An answer names the row before as its cause."""


class LongRangeCut(RangeLogic):
    """A range reaches back 10 ms at most, however long it is declared."""

    def __init__(self, ranges: RangeAggregate) -> None:
        super().__init__(redeclared(ranges, preceding_ms=min(ranges.preceding_ms, 10)))


class RangeOfOneEmpty(RangeLogic):
    """A range of 1 ms holds only the rows of its own timestamp."""

    def __init__(self, ranges: RangeAggregate) -> None:
        preceding_ms = 0 if ranges.preceding_ms == 1 else ranges.preceding_ms
        super().__init__(redeclared(ranges, preceding_ms=preceding_ms))


class TiesUnpackedReversed(RangeLogic):
    """Rows of one timestamp come back from the state in reverse order."""

    def unpack(self, fields: tuple[Any, ...]) -> list[Held]:
        rows = super().unpack(fields)
        rows.reverse()
        rows.sort(key=lambda row: row.timestamp)
        return rows


class FalsyRowsNotSaved(RangeLogic):
    """A row of false, 0 or the empty text isn't saved from one batch to the next."""

    def pack(self, state: list[Held]) -> tuple[Any, ...] | None:
        return super().pack([row for row in state if not is_falsy(row.value)])


class RowAtZeroNotSaved(RangeLogic):
    """A row with timestamp 0 isn't saved from one batch to the next."""

    def pack(self, state: list[Held]) -> tuple[Any, ...] | None:
        return super().pack([row for row in state if row.timestamp])


class FewRowsSaved(RangeLogic):
    """Only the last four rows of a key are saved from one batch to the next."""

    def pack(self, state: list[Held]) -> tuple[Any, ...] | None:
        return super().pack(state[-4:])


class EqualRowsOfOneTime(RangeLogic):
    """Of two rows of one timestamp that Python takes for equal, such as 1 and true, the first one counts twice."""

    def hold(self, state: list[Held], row: Held) -> None:
        equal = [one for one in state if one.timestamp == row.timestamp and same(one.value, row.value)]
        super().hold(state, equal[0] if equal else row)


class AnsweredAsDropped(RangeLogic):
    """The answer of a row far behind the clock is labelled as dropped."""

    def take(self, key: Key, state: list[Held], row: Arrived, clock: int) -> list[Emitted]:
        late = row.timestamp is not None and row.timestamp < clock - 2 * self.ranges.preceding_ms
        emitted = super().take(key, state, row, clock)
        return [one._replace(change=DROPPED) if late else one for one in emitted]


MUTANTS_OF_DRAWN = mutants_of(
    "range_aggregate",
    RangeLogic,
    "list",
    logics_in(globals()),
    elsewhere={
        "average": (AverageInWholeNumbers,),
        "max": (MaxFromZero, ComparedAsText),
        "sum": (SumThroughFloat, SumRounded),
    },
)

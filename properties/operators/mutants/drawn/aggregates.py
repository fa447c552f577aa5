"""Bugs in aggregate functions; each bug is a mutant of every operator that aggregates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from .....reference.definitions.aggregates import Aggregate
from ..making import redeclaring
from .common import as_32_bit, is_number, lower_case, plain, same, through_float, without_sign


class AggregateBug(NamedTuple):
    """A bug in some aggregate functions.

    Attributes:
        sentence: The bug, in one sentence.
        names: The names of the aggregate functions with the bug.
        after: A function that takes a correct aggregate function, and returns the aggregate function with the bug.
    """

    sentence: str
    names: tuple[str, ...]
    after: Callable[[Aggregate], Aggregate]

    def in_logic(self, logic: type) -> type:
        """Return a subclass of an operator's logic whose aggregate function has the bug, if the bug affects this
        function.
        """

        def options(definition: Any) -> dict[str, Aggregate]:
            right = definition.aggregate
            return {"aggregate": self.after(right) if right.name in self.names else right}

        return redeclaring(logic, self.sentence, options)


def _adding(add: Callable[[Any, Any, Any, Aggregate], Any]) -> Callable[[Aggregate], Aggregate]:
    """Return a mutation of how an aggregate function adds a value; `add` is `(key, value, aggregate, correct aggregate
    function) -> aggregate`.
    """
    return lambda right: replace(right, aggregator=lambda key, value, aggregate: add(key, value, aggregate, right))


def _after_adding(bug: Callable[[Any], Any]) -> Callable[[Aggregate], Aggregate]:
    """Return a mutation that changes an aggregate after a value has been added."""
    return _adding(lambda key, value, aggregate, right: bug(right.aggregator(key, value, aggregate)))


def _unless(refused: Callable[[Any, Any], bool]) -> Callable[[Aggregate], Aggregate]:
    """Return a mutation that ignores some values; `refused` receives the value and the aggregate so far."""
    return _adding(
        lambda key, value, aggregate, right: (
            aggregate if refused(value, aggregate) else right.aggregator(key, value, aggregate)
        )
    )


def _reducing(measure: Callable[[Any], Any]) -> Callable[[Aggregate], Aggregate]:
    """Return a mutation that compares values by another sort key."""

    def bug(right: Aggregate) -> Aggregate:
        better = max if right.name == "max" else min

        def either(one: Any, two: Any) -> Any:
            return two if one is None else one if two is None else better(one, two, key=measure)

        return replace(
            right,
            aggregator=lambda key, value, aggregate: either(aggregate, value),
            merger=lambda key, one, two: either(one, two),
        )

    return bug


def _from_zero(key: Any, value: Any, aggregate: Any, right: Aggregate) -> Any:
    return right.aggregator(key, value, type(value)(0) if aggregate is None and is_number(value) else aggregate)


def _in_whole_numbers(right: Aggregate) -> Aggregate:
    return replace(right, finish=lambda aggregate: float(aggregate[0] // aggregate[1]))


average_in_whole_numbers = AggregateBug("An average loses its fraction", ("average",), _in_whole_numbers)
max_from_zero = AggregateBug("The maximum of negative numbers is 0", ("max",), _adding(_from_zero))
min_of_sizes = AggregateBug("A minimum compares numbers without their signs", ("min",), _reducing(without_sign))
max_of_sizes = AggregateBug("A maximum compares numbers without their signs", ("max",), _reducing(without_sign))
compared_as_text = AggregateBug(
    "Numbers are compared as texts, so that 9 is more than 10", ("min", "max"), _reducing(str)
)
compared_in_lower_case = AggregateBug(
    "Texts are compared without regard to case", ("min", "max"), _reducing(lower_case)
)
sum_through_float = AggregateBug(
    "A sum of whole numbers isn't exact beyond 2^53", ("sum",), _after_adding(through_float)
)
sum_of_32_bit = AggregateBug("A sum has 32 bits, and overflows", ("sum",), _after_adding(as_32_bit))
sum_not_below_zero = AggregateBug(
    "A negative sum becomes 0", ("sum",), _after_adding(lambda total: max(total, type(total)(0)))
)
sum_rounded = AggregateBug(
    "A sum of fractions is rounded to one decimal",
    ("sum",),
    _after_adding(lambda total: round(total, 1) if isinstance(total, float) else total),
)
negatives_not_added = AggregateBug("A sum ignores negative numbers", ("sum",), _unless(lambda value, total: value < 0))
nulls_not_listed = AggregateBug("A list omits nulls", ("list",), _unless(lambda value, members: plain(value) is None))
empty_texts_not_listed = AggregateBug(
    "A list omits empty texts", ("list",), _unless(lambda value, members: plain(value) == "")
)
equals_listed_once = AggregateBug(
    "A list that contains 1 omits true",
    ("list",),
    _unless(lambda value, members: any(same(one, value) and repr(one) != repr(value) for one in members)),
)
list_capped = AggregateBug("A list has at most four members", ("list",), _after_adding(lambda members: members[:4]))

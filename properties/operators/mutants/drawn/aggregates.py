"""Bugs in aggregates, and a mixin that puts one into the definition of a logic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .....reference.definitions.aggregates import Aggregate
from .....spark_impl.runtime.logic import Logic
from ....registration.mutants import redeclared
from .common import as_32_bit, is_number, lower_case, plain, same, through_float

AggregateBug = Callable[[Aggregate], Aggregate]


class Misaggregating(Logic[Any]):
    """Mixed into a logic: the aggregate of its definition has a bug."""

    @staticmethod
    def bug(aggregate: Aggregate, /) -> Aggregate:
        """Return an aggregate with the bug; as it is, where the bug is in another one."""
        raise NotImplementedError

    def __init__(self, definition: Any) -> None:
        super().__init__(redeclared(definition, aggregate=self.bug(definition.aggregate)))  # type: ignore[call-arg]


def _adding(names: tuple[str, ...], add: Callable[[Any, Any, Any, Aggregate], Any]) -> AggregateBug:
    """Return what changes how a value is added: `(key, value, aggregate, the right one) -> aggregate`."""

    def bug(right: Aggregate) -> Aggregate:
        if right.name not in names:
            return right
        return replace(right, aggregator=lambda key, value, aggregate: add(key, value, aggregate, right))

    return bug


def _after_adding(names: tuple[str, ...], bug: Callable[[Any], Any]) -> AggregateBug:
    """Return what changes an aggregate after a value has been added."""
    return _adding(names, lambda key, value, aggregate, right: bug(right.aggregator(key, value, aggregate)))


def _reducing(names: tuple[str, ...], measure: Callable[[Any], Any]) -> AggregateBug:
    """Return what compares values by another measure."""

    def bug(right: Aggregate) -> Aggregate:
        if right.name not in names:
            return right
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


def _unless(refused: Callable[[Any, Any], bool]) -> Callable[[Any, Any, Any, Aggregate], Any]:
    return lambda key, value, aggregate, right: (
        aggregate if refused(value, aggregate) else right.aggregator(key, value, aggregate)
    )


def average_in_whole_numbers(right: Aggregate) -> Aggregate:
    """Divide an average's sum by its count without a remainder."""
    if right.name != "average":
        return right
    return replace(right, finish=lambda aggregate: float(aggregate[0] // aggregate[1]))


max_from_zero = _adding(("max",), _from_zero)
"""A maximum starts at 0."""
min_of_sizes = _reducing(("min",), lambda value: abs(value) if is_number(value) else value)
"""A minimum compares numbers without their signs."""
max_of_sizes = _reducing(("max",), lambda value: abs(value) if is_number(value) else value)
"""A maximum compares numbers without their signs."""
compared_as_text = _reducing(("min", "max"), str)
"""Numbers are compared as texts."""
compared_in_lower_case = _reducing(("min", "max"), lower_case)
"""Texts are compared in lower case."""
sum_through_float = _after_adding(("sum",), through_float)
"""A sum is exact up to 2^53."""
sum_of_32_bit = _after_adding(("sum",), as_32_bit)
"""A sum has 32 bits."""
sum_not_below_zero = _after_adding(("sum",), lambda total: max(total, type(total)(0)))
"""A sum is never negative."""
sum_rounded = _after_adding(("sum",), lambda total: round(total, 1) if isinstance(total, float) else total)
"""A sum of fractions has one decimal."""
negatives_not_added = _adding(("sum",), _unless(lambda value, total: value < 0))
"""Negative numbers aren't summed."""
nulls_not_listed = _adding(("list",), _unless(lambda value, members: plain(value) is None))
"""A list leaves nulls out."""
empty_texts_not_listed = _adding(("list",), _unless(lambda value, members: plain(value) == ""))
"""A list leaves empty texts out."""
equals_listed_once = _adding(
    ("list",),
    _unless(lambda value, members: any(same(one, value) and repr(one) != repr(value) for one in members)),
)
"""A list leaves out a member that Python takes for equal to another one, such as true beside 1."""
list_capped = _after_adding(("list",), lambda members: members[:4])
"""A list has at most four members."""

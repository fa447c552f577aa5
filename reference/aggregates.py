"""Aggregates in KIP-94's form: an initializer, an aggregator and a session merger.

Source: KIP-94, "Public Interfaces" (`aggregate`, `reduce`, `count`, `SessionMerger`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import BadInput
from .records import Key, Value


def _anything(value: Value) -> str | None:
    return None


def _a_number(value: Value) -> str | None:
    return None if isinstance(value, (int, float)) and not isinstance(value, bool) else "a number"


def _a_number_or_string(value: Value) -> str | None:
    return None if isinstance(value, str) or _a_number(value) is None else "a number or a string"


@dataclass(frozen=True)
class Aggregate:
    """How the values of a session (or window, or group) become one.

    Attributes:
        name: What options and messages call it.
        initializer: Gives the aggregate of nothing. No aggregate of something may be None, for that is a tombstone.
        aggregator: `(key, value, aggregate) -> aggregate`, for each new record.
        merger: `(key, one, two) -> aggregate`, for each session that is merged, in session order.
        refuses: Gives what the aggregate wanted instead of this value, or None where it takes it.
        ordered: Whether the result depends on the order of arrival; a meaning then fixes it up to order only.
    """

    name: str
    initializer: Callable[[], Any]
    aggregator: Callable[[Key, Value, Any], Any]
    merger: Callable[[Key, Any, Any], Any]
    refuses: Callable[[Value], str | None] = _anything
    ordered: bool = False

    def check(self, value: Value) -> None:
        """Refuse a value that the aggregate can't take.

        Raises:
            BadInput: The message names the aggregate, the value, and what it takes.
        """
        wanted = self.refuses(value)
        if wanted is not None:
            raise BadInput(f"{self.name} can't take the value {value!r}: it needs {wanted}")


def reduce(
    reducer: Callable[[Any, Any], Any], name: str = "reduce", refuses: Callable[[Value], str | None] = _anything
) -> Aggregate:
    """The aggregate of KIP-94's `reduce`: the first value stands for itself, and sessions merge by the reducer too."""

    def either(one: Any, two: Any) -> Any:
        if one is None or two is None:
            return two if one is None else one
        try:
            return reducer(one, two)
        except TypeError as error:
            raise BadInput(
                f"{name} can't take {one!r} and {two!r} together: use values of one type ({error})"
            ) from None

    return Aggregate(
        name,
        initializer=lambda: None,
        aggregator=lambda key, value, aggregate: either(aggregate, value),
        merger=lambda key, one, two: either(one, two),
        refuses=refuses,
    )


COUNT = Aggregate("count", lambda: 0, lambda key, value, total: total + 1, lambda key, one, two: one + two)
SUM = Aggregate("sum", lambda: 0, lambda key, value, total: total + value, lambda key, one, two: one + two, _a_number)
MIN = reduce(min, "min", _a_number_or_string)
MAX = reduce(max, "max", _a_number_or_string)
LIST = Aggregate(
    "list", list, lambda key, value, members: [*members, value], lambda key, one, two: one + two, ordered=True
)

AGGREGATES = {aggregate.name: aggregate for aggregate in (COUNT, SUM, MIN, MAX, LIST)}


def named_aggregate(name: str) -> Aggregate:
    """Look an aggregate up by name.

    Raises:
        BadInput: There is none of that name; the message lists those there are.
    """
    if not isinstance(name, str) or name not in AGGREGATES:
        raise BadInput(f"unknown aggregate {name!r}: use one of {', '.join(AGGREGATES)}")
    return AGGREGATES[name]

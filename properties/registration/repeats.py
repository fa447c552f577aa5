"""The expected result if every record is repeated. Each function takes the outcomes of a history and of the history
with repeated records, and returns the expected and the actual result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...reference.core.records import Change, Value, bag
from ...reference.definitions.aggregates import Aggregate
from ..outcomes.outcomes import FinalResult, Outcome


def unchanged(definition: Any, once: Outcome, twice: Outcome) -> tuple[FinalResult, FinalResult]:
    """Expect that a table is unchanged: a repeated row changes nothing."""
    return once.result, twice.result


def doubled(definition: Any, once: Outcome, twice: Outcome) -> tuple[FinalResult, FinalResult]:
    """Expect that every value in a table of aggregates, or of pairs of aggregates, counts twice."""
    result = once.result
    assert isinstance(result, dict)
    return {row: (_doubled(definition, value), at) for row, (value, at) in result.items()}, twice.result


def emitted_again(
    times: Callable[[Value], int] = lambda value: 2,
) -> Callable[[Any, Outcome, Outcome], tuple[FinalResult, FinalResult]]:
    """Expect that each result of a stream occurs `times(value)` times."""

    def again(definition: Any, once: Outcome, twice: Outcome) -> tuple[FinalResult, FinalResult]:
        result = once.result
        assert isinstance(result, list)
        return bag(change for change in result for _ in range(times(change.value))), twice.result

    return again


def doubled_value(aggregate: Aggregate, value: Value) -> Value:
    """Return the value of an aggregate if every record counts twice."""
    match aggregate.name:
        case "count" | "sum":
            return 2 * value
        case "list":
            return [member for member in value for _ in range(2)]
    return value


def changes_of(outcome: Outcome) -> list[Change]:
    """Return the changes of an outcome."""
    return [entry.output for entry in outcome.entries if isinstance(entry.output, Change)]


def _doubled(definition: Any, value: Value) -> Value:
    if getattr(definition, "with_", None) is None:
        return doubled_value(definition.aggregate, value)
    return [None if side is None else doubled_value(definition.aggregate, side) for side in value]

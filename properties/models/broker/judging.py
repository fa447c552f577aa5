"""Judge whether the output table of a history on a broker is the join of its input tables, or stale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ....reference.core.history import History
from ....reference.core.records import Key, Value
from ....specs.races import meant, values_of

ValueByKey: TypeAlias = Mapping[Key, Value]
"""A table: the value of each key."""

STANDS, MISSES, OUTDATED = "a row remains that should be deleted", "a row is missing", "a row has an old value"
KINDS = (STANDS, MISSES, OUTDATED)


@dataclass(frozen=True)
class Stale:
    """A history whose result on the broker isn't the join of its tables.

    Attributes:
        history: The history.
        kinds: The kinds of differences, from `KINDS`.
        expected: The join of the history's tables.
        actual: The table to which the output topic folds.
    """

    history: History
    kinds: tuple[str, ...]
    expected: ValueByKey
    actual: ValueByKey


def expected(history: History) -> ValueByKey:
    """Return the join of the two tables of a history's records, by the reference's meaning."""
    return {str(key): value for key, value in values_of(meant(history)).items()}


def judged(history: History, actual: ValueByKey, wanted: ValueByKey | None = None) -> Stale | None:
    """Return how the result of a history is stale; None if the result is right.

    Args:
        history: The history.
        actual: The actual table.
        wanted: The expected table, if already known.
    """
    wanted = expected(history) if wanted is None else wanted
    if wanted == actual:
        return None
    found = {
        STANDS: actual.keys() - wanted.keys(),
        MISSES: wanted.keys() - actual.keys(),
        OUTDATED: [key for key in wanted.keys() & actual.keys() if wanted[key] != actual[key]],
    }
    return Stale(history, tuple(kind for kind in KINDS if found[kind]), wanted, actual)


def counted(stale: Iterable[Stale]) -> Counter[str]:
    """Count the stale histories of each kind."""
    return Counter(kind for one in stale for kind in one.kinds)


def smallest(stale: Sequence[Stale]) -> dict[str, Stale]:
    """Return the stale history with the fewest records for each kind of difference."""
    ordered = sorted(stale, key=lambda one: (len(one.history.records), one.history.to_text()))
    return {kind: next(one for one in ordered if kind in one.kinds) for kind in KINDS if counted(ordered)[kind]}

"""The results of a run on Spark: the outcomes of its histories, their final state, and rewritten rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from ....reference.core.records import Key
from ...outcomes.outcomes import Outcome
from ...registration.key_space import owner
from .query import StreamOutput, stored_in


class Label(NamedTuple):
    """The labels of a change.

    Attributes:
        batch: The batch.
        key: The key in the reference's form.
        change: `update`, `tombstone` or `dropped`.
        cause: The number (from 0) of the record in its history that caused the change (None if the clock caused it).
        timestamp: The reported event time of a dropped record (ms); a change's event time is in its changelog.
    """

    batch: int
    key: Key | None
    change: str
    cause: int | None
    timestamp: int | None = None


class StoredState(NamedTuple):
    """The stored state of a key.

    Attributes:
        key: The key; for a key with several parts, the first part.
        fields: The fields that the key's logic has packed; for an operator in stages, the fields of one stage.
    """

    key: str
    fields: Sequence[Any]


@dataclass
class Answers:
    """The results of histories that ran with the same options, history by history.

    Attributes:
        outcomes: The outcome of each history.
        left: The final state of each history, by key and stage, if it was read.
        rewritten: For each history, the keys whose rows a repeated batch wrote differently after a crash.
        replayed: The number of batches that ran again after a crash.
        partitions: The smallest number of shuffle partitions with state.
        emitting: The smallest number of partitions with output, if known.
        without_keys: The smallest number of partitions without keys, if known.
        queries: The number of queries.
        labels: The labels of each history's changes, in order; empty if unknown.
    """

    outcomes: list[Outcome]
    left: list[list[StoredState]]
    rewritten: list[set[Key]]
    replayed: int = 0
    partitions: int = 0
    queries: int = 1
    labels: list[list[Label]] = field(default_factory=list)
    emitting: int = 0
    without_keys: int = 0

    def part(self, start: int, count: int) -> Answers:
        """Return the results of `count` histories from `start` on."""
        share = slice(start, start + count)
        return replace(
            self,
            outcomes=self.outcomes[share],
            left=self.left[share],
            rewritten=self.rewritten[share],
            labels=self.labels[share],
        )


def of_query(outcomes: Sequence[Outcome], output: StreamOutput, is_left: Callable[[Sequence[Any]], bool]) -> Answers:
    """Return the results of a query over typed columns, history by history.

    Args:
        outcomes: The outcome of each history.
        output: The query's output, and its state.
        is_left: Whether a key's stored fields count as remaining state.
    """
    left: list[list[StoredState]] = [[] for _ in outcomes]
    for (key,), fields, _ in stored_in(output.leftover):
        if is_left(fields) and (owned := _owned(key)) is not None:
            left[owned[0]].append(StoredState(owned[1], fields))
    rewritten: list[set[Key]] = [set() for _ in outcomes]
    for tables in output.replayed:
        first, again = map(_rows_by_key, tables)
        for key in first.keys() | again.keys():
            if first.get(key) != again.get(key) and (owned := _owned(key)) is not None:
                rewritten[owned[0]].add(owned[1])
    return Answers([*outcomes], left, rewritten, len(output.replayed), output.partitions)


def _owned(key: Key | None) -> tuple[int, str] | None:
    """Return the history of a key, and the history's own key; a history with a null key is alone in its query."""
    return (0, str(key)) if key is None else owner(key)


def _rows_by_key(table: pa.Table) -> dict[Key | None, list[dict[str, object]]]:
    by_key: dict[Key | None, list[dict[str, object]]] = defaultdict(list)
    for row in table.to_pylist():
        by_key[row["key"]].append({name: value for name, value in row.items() if name != "ordinal"})
    return by_key

"""The outcome of a history on a witness (a system that runs it), and the comparison of two outcomes.

Outcomes are compared at the finest grain that both outcomes have, as ordered lists of changes per key: maps would hide
duplicate and swapped tombstones.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from ...reference.core.play import Entry, Played
from ...reference.core.records import Bag, Change, Dropped, Key, Output, Table, TableKey, Window, bag, fold
from .equality import EXACT, Equality, typed

FinalResult: TypeAlias = Table | Bag
OutcomeStep: TypeAlias = tuple[int, Key | None, str]
"""A batch (or an arrival), a key, and the kind of output: changes or dropped records."""


class Grain(IntEnum):
    """How precisely a witness reports when it emits; a larger value is coarser."""

    ARRIVAL = 0
    BATCH = 1
    END = 2


@dataclass
class Outcome:
    """The outcome of a history.

    Attributes:
        history: The history's name.
        grain: `ARRIVAL`: entries contain arrival and batch. `BATCH`: entries contain only the batch (arrival is -1).
            `END`: only `final` is known, and `entries` is empty.
        entries: The outputs, in order; at grain `BATCH`, only the order within a key is meaningful.
        final: The final table, or the bag of a stream's results; None if the entries determine the final result.
        knows_dropped: Whether the entries include dropped records.
        is_stream: Whether the result is a stream (a bag of all results) rather than a table.
    """

    history: str
    grain: Grain
    entries: list[Entry] = field(default_factory=list)
    final: FinalResult | None = None
    knows_dropped: bool = True
    is_stream: bool = False

    @property
    def result(self) -> FinalResult:
        """Return the final table, or for a stream the bag of all its results."""
        if self.final is not None:
            return self.final
        outputs = [entry.output for entry in self.entries]
        return bag(outputs) if self.is_stream else fold(outputs)

    @classmethod
    def of_play(cls, history: str, played: Played) -> Outcome:
        """Return the reference's outcome of a history."""
        return cls(history, Grain.ARRIVAL, played.entries, is_stream=played.definition.is_stream)

    @classmethod
    def in_batches(cls, history: str, played: Played) -> Outcome:
        """Return the reference's outcome of a history, compared batch by batch."""
        return cls(history, Grain.BATCH, played.entries, is_stream=played.definition.is_stream)

    def to_lines(self) -> list[dict[str, Any]]:
        """Return the outcome in the format of `streamproof run`."""
        return [_entry_line(self.history, self.grain, entry) for entry in self.entries]

    def table_lines(self) -> list[dict[str, Any]]:
        """Return the result in the format of `run --table`: a table in key order, a bag by key, timestamp, value."""
        return [_change_fields(self.history, change) for _, changes in sorted_rows(self.result) for change in changes]


def _change_fields(history: str, change: Change) -> dict[str, Any]:
    line: dict[str, Any] = {"history": history, "key": change.key}
    if change.window is not None:
        line["window"] = list(change.window)
    return {**line, "value": change.value, "timestamp": change.timestamp}


def _entry_line(history: str, grain: Grain, entry: Entry) -> dict[str, Any]:
    when = {"batch": entry.batch} if grain is Grain.BATCH else {"arrival": entry.arrival}
    if isinstance(entry.output, Dropped):
        line: dict[str, Any] = {"history": history, **when}
        if grain is Grain.BATCH:
            line["key"] = entry.output.key
        return {**line, "dropped": entry.output.reason}
    fields = _change_fields(history, entry.output)
    return {"history": fields.pop("history"), **when, **fields}


class Difference(NamedTuple):
    """A difference between two outcomes, of an operator or of a job.

    Attributes:
        when: The batch or arrival, from 0; None for the end.
        expected: The expected outputs of the batch or arrival; for a job's rows, which have no order, only the rows
            that were not emitted.
        actual: The actual outputs of the batch or arrival; for a job's rows, only the rows that were not expected.
        key: The key of the outputs; None for all keys.
        history: The history's name.
    """

    when: int | None
    expected: Any
    actual: Any
    key: Key | None = None
    history: str = ""


def differences(left: Outcome, right: Outcome, unordered: bool = False, equality: Equality = EXACT) -> list[Difference]:
    """Return the difference of two outcomes for each key and batch (or arrival).

    At grain `END`, final tables (or bags) are compared. Otherwise the ordered changes of each key in each batch (or
    arrival) are compared, and the dropped records if both outcomes contain them.

    Args:
        left: One outcome.
        right: The other.
        unordered: Whether list values are compared without their order.
        equality: The rules of equality.
    """
    if Grain.END in (left.grain, right.grain):
        ours, theirs = (canonical(outcome.result, unordered) for outcome in (left, right))
        return result_differences(left.history, None, ours, theirs, equality)
    by_arrival = left.grain is Grain.ARRIVAL and right.grain is Grain.ARRIVAL
    with_dropped = left.knows_dropped and right.knows_dropped
    ours_by_step = _steps(left.entries, by_arrival, with_dropped, unordered)
    theirs_by_step = _steps(right.entries, by_arrival, with_dropped, unordered)
    return differing_steps(left.history, ours_by_step, theirs_by_step, equality)


def differing_steps(
    name: str,
    ours: Mapping[OutcomeStep, list[Any]],
    theirs: Mapping[OutcomeStep, list[Any]],
    equality: Equality = EXACT,
) -> list[Difference]:
    """Return the differences between two outcomes' outputs at each step, in order; missing outputs count as empty.

    Args:
        name: The history's name.
        ours: The expected outputs, by step.
        theirs: The actual outputs, by step.
        equality: The rules of equality.
    """
    steps = (
        step for step in ours.keys() | theirs.keys() if _differ(ours.get(step, []), theirs.get(step, []), equality)
    )
    return [
        Difference(step[0], ours.get(step, []), theirs.get(step, []), step[1], name)
        for step in sorted(steps, key=lambda step: (step[0], step[1] or "", step[2]))
    ]


def _differ(ours: Sequence[Any], theirs: Sequence[Any], equality: Equality) -> bool:
    """Return whether the typed outputs of a step differ; most are equal by the fast `==`."""
    return ours != theirs and (equality == EXACT or not equality.same(ours, theirs))


def result_differences(
    name: str, when: int | None, left: FinalResult, right: FinalResult, equality: Equality = EXACT
) -> list[Difference]:
    """Return a difference for each row in which two tables differ, or each key in which two bags differ.

    Args:
        name: The history's name.
        when: The batch after which the results are compared; None for the end.
        left: One result.
        right: The other.
        equality: The rules of equality.
    """
    if left == right:
        return []  # don't sort equal results: most are equal, and sorting a large table is slow
    ours, theirs = dict(sorted_rows(left)), dict(sorted_rows(right))
    differing = [
        row for row in ours.keys() | theirs.keys() if _differ(ours.get(row, []), theirs.get(row, []), equality)
    ]

    def shown(result: FinalResult, changes: list[Change]) -> Change | list[Change] | None:
        return changes if isinstance(result, list) else changes[0] if changes else None

    return [
        Difference(when, shown(left, ours.get(row, [])), shown(right, theirs.get(row, [])), row[0], name)
        for row in sorted(differing, key=row_order)
    ]


def sorted_rows(result: FinalResult) -> list[tuple[TableKey, list[Change]]]:
    """Return the rows of a table in key order, or the results of a bag by key and window."""
    if isinstance(result, dict):
        return [(row, [Change(*row, *result[row])]) for row in sorted(result, key=row_order)]
    rows: dict[TableKey, list[Change]] = defaultdict(list)
    for change in result:
        rows[change.key, change.window].append(change)
    return sorted(rows.items(), key=lambda row: row_order(row[0]))


def row_order(row: TableKey) -> tuple[bool, str, Window]:
    """Return the sort key of a row, by key (null first) and window."""
    key, window = row
    return (key is not None, key or "", window or (0, 0))


def untimed(result: FinalResult) -> FinalResult:
    """Return a table without the timestamps of its rows."""
    assert isinstance(result, dict)
    return {row: (value, 0) for row, (value, _) in result.items()}


def canonical(result: FinalResult, unordered: bool) -> FinalResult:
    """Return a result with typed values and, if `unordered`, with sorted list values."""

    def value_of(value: Any) -> Any:
        return typed(_sorted(value) if unordered else value)

    if isinstance(result, dict):
        return {row: (value_of(value), at) for row, (value, at) in result.items()}
    return [Change(key, window, value_of(value), at) for key, window, value, at in result]


def _steps(
    entries: Sequence[Entry], by_arrival: bool, with_dropped: bool, unordered: bool
) -> dict[OutcomeStep, list[Output]]:
    steps: dict[OutcomeStep, list[Output]] = defaultdict(list)
    for arrival, batch, output in entries:
        if isinstance(output, Dropped):
            if not with_dropped:
                continue
            steps[arrival if by_arrival else batch, output.key, "dropped"].append(output)
        else:
            value = typed(_sorted(output.value) if unordered else output.value)
            if value is not output.value:
                output = output._replace(value=value)
            steps[arrival if by_arrival else batch, output.key, "changes"].append(output)
        if by_arrival:
            # Outcomes by arrival are also compared by the order of keys within an arrival.
            steps[arrival, None, "order of keys"].append(output)
    return steps


def are_same(one: Output | None, other: Output | None) -> bool:
    """Return whether two outputs are equal, by the rules of `differences`; None represents no output."""
    if isinstance(one, Change) and isinstance(other, Change):
        return one._replace(value=typed(one.value)) == other._replace(value=typed(other.value))
    return one == other


def _sorted(value: Any) -> Any:
    """Return a value with the members of a list sorted, so that equal members are adjacent."""
    if not isinstance(value, list):
        return value
    return sorted(value, key=lambda member: json.dumps(_whole(member), sort_keys=True, default=repr))


def _whole(value: Any) -> Any:
    """Return a value with whole numbers as integers, because 1 and 1.0 are equal."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_whole(member) for member in value]
        case dict():
            return {name: _whole(member) for name, member in value.items()}
    return value

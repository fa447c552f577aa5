"""Runs small histories on a plan of the reference, and searches for the event times at which the result changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from ....reference.core.durations import UNITS_US
from ....reference.spark.aggregates import Row
from ....reference.spark.execution import Batch, ExecutedBatch, Execution
from ....reference.spark.plans import Aggregation, Join, Node, Project, Scan, Union, WithWatermark
from ....reference.spark.session_windows import SessionAggregation
from ....reference.spark.windows import Windows
from ...generators.columns.formatting import shown
from ...generators.columns.forms.rows import from_microseconds
from ...witnesses.job.plan.skeletons import UNKNOWN

Batches: TypeAlias = Sequence[Batch]
START_US = 1_704_067_200 * UNITS_US["second"]
"""2024-01-01 (µs), where histories start, and also all windows of whole hours or days."""
LONG_US = 365 * UNITS_US["day"]
"""A row still in state after this time (µs) counts as kept forever, because the reference removes no state later."""
MAX_SUMS = 256
"""The largest number of sums of durations that a search tries first."""
_OF_TYPE = {"boolean": (True, False), "string": ("a", "b")}


@dataclass
class PlayedPlan:
    """A plan of the reference, and methods that run small histories on it.

    Attributes:
        plan: The plan.
        types: The types of the input columns.
        policy: The policy for several inputs: the query's watermark is the smallest or the largest of the inputs'
            watermarks.
    """

    plan: Node
    types: Mapping[str, Any]
    policy: Any = "min"

    @cached_property
    def sources(self) -> Mapping[str, Sequence[str]]:
        """The columns of each input, by the input's name; an input that is read twice has the columns of both reads."""
        nodes = [node for node in self.plan.walk() if isinstance(node, Scan)]
        names = dict.fromkeys(node.name for node in nodes)
        return {
            name: [*dict.fromkeys(column for node in nodes if node.name == name for column in node.columns)]
            for name in names
        }

    @property
    def is_known(self) -> bool:
        """Return whether the reference can run all operators of the plan."""
        return not any(name.startswith(UNKNOWN) for name in self.sources)

    @cached_property
    def watermarks(self) -> list[WithWatermark]:
        """The watermark operators in the plan."""
        return [node for node in self.plan.walk() if isinstance(node, WithWatermark)]

    @cached_property
    def times(self) -> Mapping[str, frozenset[str]]:
        """The time columns of each input that watermarks, windows and join bounds use, by the input's name."""
        found: dict[str, set[str]] = {name: set() for name in self.sources}
        for node in self.plan.walk():
            for below, column in _timed(node):
                for source, name in origins(below, column):
                    found[source].add(name)
        return {name: frozenset(columns) for name, columns in found.items()}

    @cached_property
    def distances_us(self) -> frozenset[int]:
        """Sums of the plan's delays, windows, gaps and time bounds, each used at most once (µs)."""
        sums = {0}
        for duration_us in dict.fromkeys(one for node in self.plan.walk() for one in _durations_us(node)):
            if len(sums) < MAX_SUMS:
                sums |= {one + duration_us for one in sums}
        return frozenset(sums)

    def row(self, source: str, time_us: int, other: bool = False) -> Row:
        """Return a row of an input.

        Args:
            source: The input.
            time_us: The event time in all time columns (µs).
            other: Whether the row's other columns get a value that differs from the values of other rows.
        """
        timed = self.times[source]
        return {name: time_us if name in timed else self.value(name, other) for name in self.sources[source]}

    def value(self, column: str, other: bool) -> Any:
        """Return a value for a column of an input."""
        kind = str(self.types.get(column))
        if kind.startswith(("timestamp", "date")):
            return START_US
        return _OF_TYPE.get(kind, (1, 2))[other]

    def all_at(self, time_us: int, *sources: str) -> Batch:
        """Return a batch with one row on each given input, by default on all inputs; the values differ from those of
        other rows.
        """
        return {name: [self.row(name, time_us, other=True)] for name in sources or self.sources}

    def play(self, history: Batches) -> list[ExecutedBatch]:
        """Run a history on the plan, and return its micro-batches."""
        return Execution(self.plan, policy=self.policy).run(history)

    def emitted(self, history: Batches, since: int = 0) -> list[str]:
        """Return the sorted rows that a history emits from a given batch on."""
        done = [one for one in self.play(history) if one.batch >= since]
        return sorted(repr([*row.values()]) for one in done for row in one.rows)

    def is_emitted(self, history: Batches, without: Batches) -> bool:
        """Return whether one history emits a row that another history doesn't emit."""
        more, fewer = self.emitted(history), self.emitted(without)
        return any(more.count(row) > fewer.count(row) for row in more)

    def shown(self, source: str, row: Row, columns: Sequence[str] = ()) -> str:
        """Return the given columns of a row, and its event times, as text."""
        wanted = [name for name in row if name in columns or name in self.times[source]]
        return ", ".join(f"{plain(name)} {self.text(source, name, row[name])}" for name in wanted)

    def text(self, source: str, column: str, value: Any) -> str:
        """Return a value of a row as text."""
        is_time = column in self.times[source] or value == START_US
        return moment(value) if is_time else shown(value)


def plain(column: str) -> str:
    """Return a column's name without the number that Spark adds."""
    return column.rpartition("#")[0]


def moment(time_us: int) -> str:
    """Return an event time (µs) as text."""
    return shown(from_microseconds(time_us).replace(tzinfo=None))


def origins(node: Node, column: str) -> Iterator[tuple[str, str]]:
    """Yield the input columns from which a column is computed, each with its input's name."""
    if isinstance(node, Scan):
        yield from [(node.name, column)] * (column in node.columns)
        return
    if isinstance(node, Project):
        made = dict(node.made).get(column)
        for name in () if made is None else made.columns:
            yield from origins(node.input, name)
        return
    if isinstance(node, Union):
        for one in node.inputs:
            yield from origins(one, column)
        return
    if isinstance(node, Aggregation) and column == node.time:
        column = getattr(node.by, "time", column) or column
    for one in node.inputs:
        if column in one.columns:
            yield from origins(one, column)


def _durations_us(node: Node) -> Iterator[int]:
    if isinstance(node, WithWatermark):
        yield node.delay_us
    if isinstance(node, Aggregation) and isinstance(node.by, Windows):
        yield node.by.size_us
    if isinstance(node, Aggregation) and isinstance(node.by, SessionAggregation):
        yield node.by.gap_us
    if isinstance(node, Join):
        yield from (abs(one) for one in (node.by.before_us, node.by.after_us) if one is not None)


def _timed(node: Node) -> Iterator[tuple[Node, str]]:
    """Yield the event-time columns of a node, each with its input's name."""
    if isinstance(node, WithWatermark):
        yield node.input, node.column
    if isinstance(node, Aggregation) and isinstance(node.by, Windows | SessionAggregation):
        yield node.input, node.by.time
    if isinstance(node, Join) and (node.by.before_us, node.by.after_us) != (None, None):
        yield from zip(node.inputs, node.by.times, strict=True)


def first_that(
    holds: Callable[[int], bool], low_us: int, high_us: int, near: Iterable[int], step_us: int = 1_000
) -> int:
    """Return the smallest time from which on a property holds; the property must hold at the end of the search.

    Args:
        holds: The property.
        low_us: The start of the search (µs).
        high_us: The end of the search (µs).
        near: Times near which the result probably changes.
        step_us: The precision of the search (µs).
    """
    points = sorted({time + more for time in near for more in (-step_us, 0, step_us) if low_us < time + more < high_us})
    while points:
        middle = len(points) // 2
        if holds(points[middle]):
            high_us, points = points[middle], points[:middle]
        else:
            low_us, points = points[middle], points[middle + 1 :]
    while high_us - low_us > step_us:
        middle_us = low_us + (high_us - low_us) // step_us // 2 * step_us
        if holds(middle_us):
            high_us = middle_us
        else:
            low_us = middle_us
    return low_us if holds(low_us) else high_us

"""Plans: trees of Spark's streaming operators, from the inputs up to the result.

A node defines the columns, the event-time columns and the watermark of its output. Each stateful operator has a
separate reference model; a plan only connects the models.

Sources: `Attribute.metadata` (an event time keeps its delay through aliases and joins, and loses it in any other
expression), `Union.output` (a union has the metadata of its first input), `WindowTime` (a window's time is 1
microsecond before its end).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

from . import drop_duplicates, groups, processor, session_windows, stream_join, windows
from .aggregates import Row
from .expressions import Expression, column
from .static_join import StaticJoin

StepFunction: TypeAlias = Callable[[Sequence[Sequence[Row]], int, int], Sequence[Row]]
"""Processes each input's rows, with the watermarks for late rows and for eviction (ms); returns the output rows."""


class EventTime(NamedTuple):
    """A column with a watermark.

    Attributes:
        column: Its name.
        delay_us: The delay of the watermark, in microseconds.
    """

    column: str
    delay_us: int


@dataclass(frozen=True)
class Node:
    """A node of a plan; the base class passes on its input's columns and event times unchanged.

    Attributes:
        inputs: The input nodes.
    """

    inputs: tuple[Node, ...]
    is_stateful: ClassVar[bool] = False

    @property
    def input(self) -> Node:
        """The first input node."""
        return self.inputs[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The output's columns."""
        return self.input.columns

    @property
    def event_times(self) -> tuple[EventTime, ...]:
        """The output's columns that have a watermark."""
        return self.input.event_times

    @property
    def needs(self) -> frozenset[str]:
        """The input columns that the node itself uses, whichever columns later nodes use."""
        return frozenset()

    @property
    def asks_for_batch_without_data(self) -> bool:
        """Return whether the operator asks for a batch without data when its input's watermark has moved."""
        return False

    def start(self) -> StepFunction:
        """Return the operator's step function, with empty state."""
        raise NotImplementedError

    def watermark_ms(self, of_input_ms: int) -> int:
        """Return the output's watermark for the inputs' watermarks (milliseconds since 1970)."""
        return of_input_ms

    def walk(self) -> Iterator[Node]:
        """Yield the nodes of the subtree, inputs first."""
        for one in self.inputs:
            yield from one.walk()
        yield self


@dataclass(frozen=True)
class Scan(Node):
    """An input of the query.

    Attributes:
        name: Its name.
        has: Its columns.
    """

    inputs: tuple[Node, ...] = field(default=(), init=False)
    name: str
    has: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.has

    @property
    def event_times(self) -> tuple[EventTime, ...]:
        return ()


@dataclass(frozen=True)
class WithWatermark(Node):
    """`withWatermark(column, delay)`: the rows move the query's watermark; this node drops no row."""

    column: str
    delay_us: int

    @property
    def event_times(self) -> tuple[EventTime, ...]:
        return (EventTime(self.column, self.delay_us),)

    def start(self) -> StepFunction:
        return lambda rows, late_ms, eviction_ms: rows[0]


@dataclass(frozen=True)
class Project(Node):
    """`select`: each output column is an expression.

    Attributes:
        made: The output columns' names and expressions.
    """

    made: tuple[tuple[str, Expression], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.made)

    @property
    def event_times(self) -> tuple[EventTime, ...]:
        below = dict(self.input.event_times)
        aliases = [(name, made.name) for name, made in self.made if made.function == "column"]
        return tuple(EventTime(name, below[of]) for name, of in aliases if of in below)

    def start(self) -> StepFunction:
        return lambda rows, late_ms, eviction_ms: [{name: made.of(row) for name, made in self.made} for row in rows[0]]


@dataclass(frozen=True)
class Filter(Node):
    """`where`: keeps the rows whose condition is true."""

    condition: Expression

    @property
    def needs(self) -> frozenset[str]:
        return self.condition.columns

    def start(self) -> StepFunction:
        return lambda rows, late_ms, eviction_ms: [row for row in rows[0] if self.condition.of(row) is True]


@dataclass(frozen=True)
class Explode(Node):
    """A column replaced by `explode(array(…))`: one row for each element.

    Attributes:
        column: The column.
        values: The elements of the array.
    """

    column: str
    values: tuple[Expression, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.input.columns, self.column]))

    @property
    def event_times(self) -> tuple[EventTime, ...]:
        return tuple(time for time in self.input.event_times if time.column != self.column)

    def start(self) -> StepFunction:
        return lambda rows, late_ms, eviction_ms: [
            {**row, self.column: value.of(row)} for row in rows[0] for value in self.values
        ]


@dataclass(frozen=True)
class Union(Node):
    """`union` of two nodes with the same columns."""

    def start(self) -> StepFunction:
        return lambda rows, late_ms, eviction_ms: [*rows[0], *rows[1]]


@dataclass(frozen=True)
class Lookup(Node):
    """The join of a stream with a static table."""

    join: StaticJoin

    @property
    def columns(self) -> tuple[str, ...]:
        added = () if self.join.join in ("left_semi", "left_anti") else self.join.added
        return (*self.input.columns, *added)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset(self.join.keys)

    def start(self) -> StepFunction:
        return lambda rows, late_ms, eviction_ms: self.join.batch(rows[0])


@dataclass(frozen=True)
class Limit(Node):
    """`limit`: the first rows of the whole query, in order of arrival.

    Attributes:
        rows: How many.
    """

    rows: int
    is_stateful: ClassVar[bool] = True

    def start(self) -> StepFunction:
        left = self.rows

        def batch(rows: Sequence[Sequence[Row]], late_ms: int, eviction_ms: int) -> Sequence[Row]:
            nonlocal left
            taken = rows[0][:left]
            left -= len(taken)
            return taken

        return batch


@dataclass(frozen=True)
class Stateful(Node):
    """An operator that drops late rows by its input's watermark, if a column of the input has a watermark."""

    is_stateful: ClassVar[bool] = True

    def timed(self, batch: Callable[[Sequence[Row], int, int], list[Row]]) -> StepFunction:
        """Return the step function of an operator with one input; no row is late if the input has no watermark."""
        has_time = bool(self.input.event_times)

        def step(rows: Sequence[Sequence[Row]], late_ms: int, eviction_ms: int) -> Sequence[Row]:
            return batch(rows[0], late_ms, eviction_ms) if has_time else batch(rows[0], 0, 0)

        return step


@dataclass(frozen=True)
class Aggregation(Stateful):
    """`groupBy(…).agg(…)`: by windows, by session windows or by columns alone.

    Attributes:
        by: The reference model of the aggregation.
        time: The name of the output column `window_time` of a window; empty if the output lacks that column.
        bounds: Whether a window's `start` and `end` are output columns.
    """

    by: windows.Windows | session_windows.SessionAggregation | groups.Groups
    time: str = ""
    bounds: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        if isinstance(self.by, groups.Groups):
            return (*self.by.columns, *self.by.aggregates)
        return (
            *self.by.keys,
            *(("start", "end") if self.bounds else ()),
            *filter(None, [self.time]),
            *self.by.aggregates,
        )

    @property
    def event_times(self) -> tuple[EventTime, ...]:
        name = self.by.time if isinstance(self.by, groups.Groups) else self.time
        return tuple(EventTime(name, time.delay_us) for time in self.input.event_times if name)

    @property
    def needs(self) -> frozenset[str]:
        keys = self.by.columns if isinstance(self.by, groups.Groups) else self.by.keys
        aggregated = {one.column for one in self.by.aggregates.values()}
        return frozenset(filter(None, {*keys, *aggregated, self.by.time}))

    @property
    def asks_for_batch_without_data(self) -> bool:
        return self.by.mode != "complete"

    def start(self) -> StepFunction:
        if isinstance(self.by, groups.Groups):
            return self.timed(groups.GroupsState(self.by).batch)
        is_window = isinstance(self.by, windows.Windows)
        state: Any = windows.WindowsState(self.by) if is_window else session_windows.SessionsState(self.by)  # type: ignore[arg-type]

        def batch(rows: Sequence[Row], late_ms: int, eviction_ms: int) -> list[Row]:
            emitted = state.batch(rows, late_ms, eviction_ms)
            timed = ({**row, self.time: row["end"] - 1} for row in emitted)
            return [{name: row[name] for name in self.columns} for row in timed]

        return self.timed(batch)


@dataclass(frozen=True)
class Deduplication(Stateful):
    """`dropDuplicates(columns)` or `dropDuplicatesWithinWatermark(columns)`.

    Attributes:
        by: The columns that identify duplicates.
        within_watermark: Whether Spark forgets an emitted row one watermark delay after its event time.
    """

    by: tuple[str, ...]
    within_watermark: bool = False

    @property
    def needs(self) -> frozenset[str]:
        late = {time.column for time in self.input.event_times}
        return frozenset({*self.by, *late})

    @property
    def asks_for_batch_without_data(self) -> bool:
        return True

    def start(self) -> StepFunction:
        time = next(iter(self.input.event_times), None)
        column, delay_us = time or (self.input.columns[0], None)
        model = drop_duplicates.DropDuplicates(self.by, column, delay_us, self.within_watermark)
        return self.timed(drop_duplicates.DuplicatesState(model).batch)


@dataclass(frozen=True)
class Processing(Stateful):
    """`groupBy(keys).transformWithState(…)` with event-time timers, of a processor that counts rows.

    Attributes:
        by: The reference model of the processor; the input's event time decides which rows are late.
    """

    by: processor.Processor

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.by.keys, self.by.count)

    @property
    def event_times(self) -> tuple[EventTime, ...]:
        return ()

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({*self.by.keys, *(time.column for time in self.input.event_times)})

    @property
    def asks_for_batch_without_data(self) -> bool:
        return True

    def start(self) -> StepFunction:
        time = next((time.column for time in self.input.event_times), None)
        return self.timed(processor.ProcessorState(replace(self.by, time=time)).batch)


@dataclass(frozen=True)
class Join(Stateful):
    """The join of two streams with different column names; the output has the columns of both streams.

    Attributes:
        by: The reference model of the join.
    """

    by: stream_join.StreamJoin

    @cached_property
    def model(self) -> stream_join.StreamJoin:
        """Return the reference model, with a watermark on each side whose time column has one."""
        timed = zip(stream_join.LEFT_FIRST, self.inputs, self.by.times, strict=True)
        sides = (side for side, one, time in timed if time in dict(one.event_times))
        return replace(self.by, watermarks=frozenset(sides))

    @property
    def columns(self) -> tuple[str, ...]:
        left, right = self.inputs
        return left.columns if self.by.join == "left_semi" else (*left.columns, *right.columns)

    @property
    def event_times(self) -> tuple[EventTime, ...]:
        left, right = self.inputs
        return left.event_times if self.by.join == "left_semi" else (*left.event_times, *right.event_times)

    @property
    def needs(self) -> frozenset[str]:
        bounded = self.by.before_us is not None or self.by.after_us is not None
        return frozenset({*self.by.keys[0], *self.by.keys[1], *(self.by.times if bounded else ())})

    @property
    def asks_for_batch_without_data(self) -> bool:
        return self.model.asks_for_batch_without_data

    def watermark_ms(self, of_input_ms: int) -> int:
        # A semi join emits only left rows, so only the left side's state delays the output's watermark.
        sides = stream_join.LEFT_FIRST[:1] if self.by.join == "left_semi" else stream_join.LEFT_FIRST
        kept = [self.model.state_watermark_ms(side, of_input_ms) for side in sides]
        return min([of_input_ms, *(each for each in kept if each is not None)])

    def start(self) -> StepFunction:
        state = stream_join.JoinState(self.model)
        nothing = [dict.fromkeys(one.columns) for one in self.inputs]

        def step(rows: Sequence[Sequence[Row]], late_ms: int, eviction_ms: int) -> Sequence[Row]:
            pairs = state.batch(rows[0], rows[1], late_ms, eviction_ms)
            if self.by.join == "left_semi":
                return [left for left, _ in pairs if left is not None]
            return [{**(left or nothing[0]), **(right or nothing[1])} for left, right in pairs]

        return step


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """Apply `change` to each node of a plan, inputs first; return the same plan if no node changes."""
    below = tuple(rebuilt(one, change) for one in node.inputs)
    same = all(one is other for one, other in zip(below, node.inputs, strict=True))
    return change(node if same else replace(node, inputs=below))


def with_joins(node: Node, **changes: Any) -> Node:
    """Return a plan whose stream joins have other attributes of `StreamJoin`, such as another `dialect`."""

    def change(one: Node) -> Node:
        return replace(one, by=replace(one.by, **changes)) if isinstance(one, Join) else one

    return rebuilt(node, change)


def pruned(node: Node, wanted: frozenset[str] | None = None) -> Node:
    """Return a plan without the columns that no later node needs, like Spark's optimizer.

    An operator that doesn't use the event time loses that column, and then drops no late row (SPARK-58979).

    Args:
        node: The plan.
        wanted: The columns that the next node needs; None for all columns.
    """
    wanted = frozenset(node.columns) if wanted is None else wanted
    if isinstance(node, Scan):
        return node
    if isinstance(node, Project):
        node = replace(node, made=tuple(one for one in node.made if one[0] in wanted))
        below = frozenset().union(*(made.columns for _, made in node.made))
    elif isinstance(node, Explode):
        below = (wanted - {node.column}).union(*(value.columns for value in node.values))
    elif isinstance(node, Aggregation):
        below = node.needs
    elif isinstance(node, Deduplication):
        below = wanted | frozenset(node.by)
    elif isinstance(node, Processing):
        below = frozenset(node.input.columns)  # all columns, because Python code may read any
    elif isinstance(node, WithWatermark):
        below = wanted | {node.column}
    else:
        below = wanted | node.needs
    return replace(node, inputs=tuple(_only(one, below) for one in node.inputs))


def _only(node: Node, wanted: frozenset[str]) -> Node:
    kept = tuple(name for name in node.columns if name in wanted)
    below = pruned(node, frozenset(kept))
    return below if below.columns == kept else Project((below,), tuple((name, column(name)) for name in kept))

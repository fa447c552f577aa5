"""What is expected of a job by the rules of Spark's own operators: windows, sessions, deduplication and joins.

Each factory says what the job means to do, its watermark included, and returns an oracle: Spark's own rules as a
reference model, from `reference/spark`. `>>` puts one after another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from ...reference.core.errors import BadInput
from ...reference.spark import drop_duplicates as duplicates
from ...reference.spark import session_windows as sessions
from ...reference.spark import static_join as lookups
from ...reference.spark import stream_join as joins
from ...reference.spark import windows as time_windows
from ...reference.spark.aggregates import FUNCTIONS, Aggregate
from ...reference.spark.durations import Duration, microseconds_of
from ...reference.spark.watermarks import micro_batches
from .model import Expected, JobHistory, Mode, Row, Source, Way, from_microseconds, microseconds

Aggregates: TypeAlias = Mapping[str, str | tuple[str, str]]
"""By the name of the output column: `count` for `count(*)`, or a function of Spark SQL and its column."""
On: TypeAlias = str | Sequence[str] | tuple[Sequence[str], Sequence[str]]
"""The columns that are equal: their names, or those of each side in the same order."""
StreamJoinKind: TypeAlias = Literal["inner", "left", "right", "full", "left_semi"]
StaticJoinKind: TypeAlias = Literal["inner", "left", "left_semi", "left_anti"]
Step: TypeAlias = Callable[[Mapping[str, Sequence[Row]], int, int], Sequence[Row]]
"""Takes the rows of a micro-batch by input, its watermark for late rows and the one for eviction (ms); returns what it
emits. All event times are integers, of microseconds since 1970."""


@dataclass(frozen=True)
class Stage:
    """An operator, as it is run over the rows of its inputs.

    Attributes:
        start: Returns the operator without any state.
        follows: Whether it asks for a batch without data where the watermark has moved.
        times: The columns of its output that are times.
        output: Its output as an input of the next operator; None where none can follow.
        why_none: Why none can.
    """

    start: Callable[[], Step]
    follows: bool
    times: frozenset[str]
    output: Source | None
    why_none: str = ""


@dataclass(frozen=True)
class Rule(ABC):
    """What is expected by the rules of one of Spark's operators, or of several in a row.

    Attributes:
        name: What reports call it.
        delays_us: The delay of the watermark, in microseconds: of each input by its name, or of all of them under an
            empty name; empty where there is no watermark.
    """

    name: str
    delays_us: Mapping[str, int]

    @property
    def takes_late(self) -> bool:
        """Whether it knows what becomes of late rows: always."""
        return True

    @property
    def closes(self) -> bool:
        """Whether the end of a history must close everything: never."""
        return False

    @property
    @abstractmethod
    def distances_us(self) -> Sequence[int]:
        """The durations that matter to it, in microseconds."""

    @abstractmethod
    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return its operators over the given inputs.

        Raises:
            BadInput: It doesn't fit the inputs, or Spark refuses it in this mode, or without a watermark.
        """

    def __rshift__(self, after: Rule) -> Rule:
        """Return this rule, and another over its output."""
        if not isinstance(after, Rule):
            return NotImplemented
        if self.delays_us and after.delays_us and self.delays_us != after.delays_us:
            raise BadInput(
                f"{self.name} >> {after.name} has two watermarks, and an input takes one: leave out the second delay"
            )
        return Chain(f"{self.name} >> {after.name}", {**self.delays_us, **after.delays_us}, (self, after))

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], way: Way) -> list[Expected]:
        """Return what Spark emits of each history: in each batch, or the table after each where the mode is complete.

        Raises:
            BadInput: The rule doesn't fit the inputs, or Spark refuses it in the given mode.
        """
        unknown = sorted(set(self.delays_us) - {"", *(source.name for source in sources)})
        if unknown:
            names = ", ".join(source.name for source in sources)
            raise BadInput(f"{self.name} has a delay for {unknown[0]!r}, which is no input: the inputs are {names}")
        stages = self.stages(sources, way.mode, watermark=bool(self.delays_us))
        return [self._of(history, sources, way, stages) for history in histories]

    def _of(self, history: JobHistory, sources: Sequence[Source], way: Way, stages: Sequence[Stage]) -> Expected:
        batches: list[dict[str, list[Row]]] = []
        largest_us: list[dict[str, int | None]] = []
        time_of = {source.name: source.time for source in sources}
        for number, batch in enumerate(history.batches):
            rows: dict[str, list[Row]] = {name: [] for name in time_of}
            for arrival in batch:
                rows[arrival.input].append(_with_microseconds(arrival.row, time_of[arrival.input]))
            batches.append(rows)
            own = {
                name: max((row[time_of[name]] for row in of_input if row[time_of[name]] is not None), default=None)
                for name, of_input in rows.items()
            }
            largest_us.append(dict.fromkeys(rows, history.clock[number]) if history.clock else own)
        delays_us = {
            name: self.delays_us.get(name, self.delays_us.get("", -1))
            for name in time_of
            if name in self.delays_us or "" in self.delays_us
        }
        steps = [stage.start() for stage in stages]
        emitted: list[list[Row]] = [[] for _ in batches]
        executed = micro_batches(
            largest_us,
            delays_us,
            policy=way.policy,
            trigger=way.trigger,
            follows=any(stage.follows for stage in stages),
        )
        for micro in executed:
            given: Mapping[str, Sequence[Row]] = batches[micro.data] if micro.has_data else {}
            for step in steps:
                out = step(given, micro.late_ms, micro.eviction_ms)
                given = {"": out}
            shown = [_with_times(row, stages[-1].times) for row in out]
            emitted[micro.data] = shown if way.mode == "complete" else [*emitted[micro.data], *shown]
        return Expected("cuts" if way.mode == "complete" else "batches", emitted)


@dataclass(frozen=True)
class Chain(Rule):
    """Several operators in a row, each over the output of the one before it.

    Attributes:
        parts: The rules, in order.
    """

    parts: tuple[Rule, Rule]

    @property
    def distances_us(self) -> Sequence[int]:
        """The durations that matter to it, in microseconds."""
        return sorted({distance for part in self.parts for distance in part.distances_us})

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operators of all parts."""
        stages: list[Stage] = []
        for part in self.parts:
            if stages:
                output = stages[-1].output
                if output is None:
                    raise BadInput(f"{self.name}: no operator can follow here, for {stages[-1].why_none}")
                sources = [output]
            stages += part.stages(sources, mode, watermark=watermark)
        return stages


@dataclass(frozen=True)
class _Windows(Rule):
    """What time windows and session windows have in common.

    Attributes:
        keys: The columns of the key; None for those of the input.
        aggregates: The aggregates, by the name of their output column.
        input: The name of the input; None for the only one.
    """

    keys: tuple[str, ...] | None
    aggregates: Mapping[str, Aggregate]
    input: str | None

    def source(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> tuple[Source, tuple[str, ...]]:
        """Return the input and the columns of the key."""
        source = _only(self.name, sources, self.input)
        keys = source.key if self.keys is None else self.keys
        columns = [*keys, *(aggregate.column for aggregate in self.aggregates.values() if aggregate.column is not None)]
        _look_for(self.name, source, columns)
        if mode == "append" and not watermark:
            raise BadInput(
                f"{self.name} has no delay, and Spark aggregates in append mode only with a watermark: "
                'give it delay="10 minutes", or the job the mode "update" or "complete"'
            )
        return source, keys

    def stage(self, source: Source, start: Callable[[], Any], *, follows: bool) -> Stage:
        """Return the operator's stage."""
        times = {name for name, aggregate in self.aggregates.items() if aggregate.column == source.time}
        times -= {name for name, aggregate in self.aggregates.items() if aggregate.function == "count"}
        why = "the event time is then a window: it is the last operator in what a rule can say"
        return Stage(_stepping(start, source.name), follows, frozenset({"start", "end", *times}), None, why)


@dataclass(frozen=True)
class SessionWindows(_Windows):
    """An aggregation by session windows.

    Attributes:
        gap_us: How long after its last row a session ends, in microseconds.
    """

    gap_us: int

    @property
    def distances_us(self) -> Sequence[int]:
        """The gap and the delay, in microseconds."""
        return sorted({self.gap_us, *self.delays_us.values()})

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        source, keys = self.source(sources, mode, watermark=watermark)
        if mode == "update":
            raise BadInput(f'{self.name}: Spark refuses session windows in update mode: use "append" or "complete"')
        windows = sessions.SessionWindows(source.time, keys, self.gap_us, self.aggregates, mode)
        return [
            self.stage(source, lambda: sessions.State(windows).batch, follows=windows.asks_for_batch_without_data),
        ]


@dataclass(frozen=True)
class TimeWindows(_Windows):
    """An aggregation by tumbling or hopping windows, all durations in microseconds.

    Attributes:
        size_us: How long a window is.
        slide_us: From one window's start to the next.
        start_us: Where windows start, from 1970.
    """

    size_us: int
    slide_us: int
    start_us: int

    @property
    def distances_us(self) -> Sequence[int]:
        """The size, the slide, the start and the delay, in microseconds."""
        return sorted({self.size_us, self.slide_us, abs(self.start_us), *self.delays_us.values()} - {0})

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        source, keys = self.source(sources, mode, watermark=watermark)
        windows = time_windows.Windows(
            source.time, keys, self.size_us, self.slide_us, self.start_us, self.aggregates, mode
        )
        return [
            self.stage(source, lambda: time_windows.State(windows).batch, follows=windows.asks_for_batch_without_data),
        ]


@dataclass(frozen=True)
class DropDuplicates(Rule):
    """A deduplication.

    Attributes:
        columns: The columns in which duplicates are equal; None for all.
        within_watermark: Whether a duplicate may come again once the watermark has passed it by the delay.
        input: The name of the input; None for the only one.
    """

    columns: tuple[str, ...] | None
    within_watermark: bool
    input: str | None

    @property
    def distances_us(self) -> Sequence[int]:
        """The delay, in microseconds."""
        return sorted({*self.delays_us.values()} - {0})

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        source = _only(self.name, sources, self.input)
        columns = tuple(source.schema.names) if self.columns is None else self.columns
        _look_for(self.name, source, columns)
        delay_us = self.delays_us.get(source.name, self.delays_us.get("")) if watermark else None
        what = duplicates.DropDuplicates(columns, source.time, delay_us, self.within_watermark)
        start = _stepping(lambda: duplicates.State(what).batch, source.name)
        return [Stage(start, what.asks_for_batch_without_data, frozenset({source.time}), source)]


@dataclass(frozen=True)
class StaticJoin(Rule):
    """A join of a stream with a table.

    Attributes:
        table: The rows of the table.
        columns: Its columns.
        on: The columns of the stream's key, and those of the table's.
        join: The kind.
        input: The name of the input; None for the only one.
    """

    table: tuple[Row, ...]
    columns: tuple[str, ...]
    on: tuple[tuple[str, ...], tuple[str, ...]]
    join: StaticJoinKind
    input: str | None

    @property
    def distances_us(self) -> Sequence[int]:
        """None: time plays no part."""
        return []

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        source = _only(self.name, sources, self.input)
        _look_for(self.name, source, self.on[0])
        shared = [one for one, two in zip(*self.on, strict=True) if one == two]
        added = [] if self.join in ("left_semi", "left_anti") else [name for name in self.columns if name not in shared]
        twice = sorted(set(added) & set(source.schema.names))
        if twice:
            raise BadInput(f"{self.name}: both the input and the table have a column {twice[0]!r}: rename the table's")
        what = lookups.StaticJoin(self.join, *self.on, tuple(added), self.table)
        types = pa.Table.from_pylist([dict(row) for row in self.table]).schema if self.table else pa.schema([])
        fields = [types.field(name) if name in types.names else pa.field(name, pa.null()) for name in added]
        output = replace(source, schema=pa.schema([*source.schema, *fields]))
        return [Stage(_stepping(lambda: what.batch, source.name), False, frozenset({source.time}), output)]


@dataclass(frozen=True)
class StreamJoin(Rule):
    """A join of two streams.

    Attributes:
        join: The kind.
        on: The columns of the key on each side.
        before_us: How long before the left row's time the right one's may be, in microseconds; None for any time.
        after_us: How long after it; None for any time.
        columns: What each column of the output is made of: columns as `input.column`, of which the first that isn't
            null counts; None for all columns of both sides.
        left: The name of the left input; None for the first.
        right: The name of the right input; None for the second.
    """

    join: StreamJoinKind
    on: tuple[tuple[str, ...], tuple[str, ...]]
    before_us: int | None
    after_us: int | None
    columns: Mapping[str, tuple[str, ...]] | None
    left: str | None
    right: str | None

    @property
    def distances_us(self) -> Sequence[int]:
        """Both ends of the time range, and the delays, in microseconds."""
        reaches = {abs(reach) for reach in (self.before_us, self.after_us) if reach is not None}
        return sorted({*reaches, *self.delays_us.values()} - {0})

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        if len(sources) < 2:
            raise BadInput(f"{self.name} joins two inputs, and the job has {len(sources)}: give it a second one")
        left = _only(self.name, sources, sources[0].name if self.left is None else self.left)
        right = _only(self.name, sources, sources[1].name if self.right is None else self.right)
        for source, keys in zip((left, right), self.on, strict=True):
            _look_for(self.name, source, keys)
        if mode != "append":
            raise BadInput(f'{self.name}: Spark joins two streams in append mode alone: use mode="append"')
        sides: tuple[tuple[joins.Side, Source], ...] = (("left", left), ("right", right))
        have = frozenset(side for side, source in sides if "" in self.delays_us or source.name in self.delays_us)
        what = joins.StreamJoin(self.join, self.on, (left.time, right.time), self.before_us, self.after_us, have)
        bounded = {side for side, _ in sides if what.reach_us(side) is not None}
        if (self.join in ("left", "right") and self.join not in bounded) or (self.join == "full" and not bounded):
            bound = "before" if self.join == "right" else "after"
            raise BadInput(
                f"{self.name}: Spark takes an outer join only where both sides have a watermark and time is bounded: "
                f'give it {bound}="1 hour" and delay="10 minutes"'
            )
        parts = self.parts(left, right)
        times = frozenset(name for name, of in parts.items() if any(column == sides[n][1].time for n, column in of))

        def shown(pair: joins.Pair) -> Row:
            values = {
                name: [row[column] for n, column in of if (row := pair[n]) is not None and row[column] is not None]
                for name, of in parts.items()
            }
            return {name: found[0] if found else None for name, found in values.items()}

        def start() -> Step:
            state = joins.State(what)

            def step(rows: Mapping[str, Sequence[Row]], late_ms: int, eviction_ms: int) -> list[Row]:
                sided = rows.get(left.name, ()), rows.get(right.name, ())
                return [shown(pair) for pair in state.batch(*sided, late_ms, eviction_ms)]

            return step

        why = "both sides have an event time"
        return [Stage(start, what.asks_for_batch_without_data, times, None, why)]

    def parts(self, left: Source, right: Source) -> dict[str, list[tuple[int, str]]]:
        """Return what each column of the output is made of: 0 or 1 for the side, and the column there."""
        sides = [left] if self.join == "left_semi" else [left, right]
        if self.columns is None:
            names = [name for source in sides for name in source.schema.names]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise BadInput(
                    f"{self.name}: both inputs have a column {twice[0]!r}: say what the output's columns are, as in "
                    f'columns={{"{twice[0]}": "{left.name}.{twice[0]}", …}}'
                )
            return {name: [(n, name)] for n, source in enumerate(sides) for name in source.schema.names}
        parts: dict[str, list[tuple[int, str]]] = {}
        for name, columns in self.columns.items():
            parts[name] = []
            for text in columns:
                found = [
                    (n, text.removeprefix(f"{source.name}."))
                    for n, source in enumerate(sides)
                    if text.startswith(f"{source.name}.")
                    and text.removeprefix(f"{source.name}.") in source.schema.names
                ]
                if not found:
                    known = ", ".join(f"{source.name}.{column}" for source in sides for column in source.schema.names)
                    raise BadInput(
                        f"{self.name}: the column {name!r} is {text!r}, and there is none: use some of {known}"
                    )
                parts[name] += found
        return parts


def session_windows(
    gap: Duration,
    delay: Duration | None = None,
    aggregates: Aggregates | None = None,
    *,
    keys: Sequence[str] | None = None,
    input: str | None = None,
    semantics: str = "spark",
) -> SessionWindows:
    """Expect `groupBy(keys, session_window(time, gap))` and its aggregates.

    Rows of the output: the columns of the key, `start`, `end` (a gap after the last row, exclusive) and the aggregates.

    Args:
        gap: The gap, such as "30 minutes"; rows exactly one gap apart share a session.
        delay: The delay of the watermark; needed in append mode.
        aggregates: By the name of the output column: `("sum", "amount")`, or `"count"` for `count(*)`, which is
            expected by default. Functions are count, sum, min, max, avg, and collect_list and collect_set, sorted.
        keys: The columns of the key; those of the input by default.
        input: The input's name, where there are several.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: A duration or an aggregate can't be read.
    """
    _known("session_windows", semantics)
    return SessionWindows(
        _named("session_windows", gap=gap, delay=delay),
        _delays("session_windows", delay),
        None if keys is None else _columns("session_windows", "keys", keys),
        _aggregates("session_windows", aggregates),
        input,
        _positive("session_windows", "gap", gap),
    )


def windows(
    size: Duration,
    slide: Duration | None = None,
    start: Duration | None = None,
    delay: Duration | None = None,
    aggregates: Aggregates | None = None,
    *,
    keys: Sequence[str] | None = None,
    input: str | None = None,
    semantics: str = "spark",
) -> TimeWindows:
    """Expect `groupBy(keys, window(time, size, slide, start))` and its aggregates.

    Rows of the output: the columns of the key, `start`, `end` (exclusive) and the aggregates.

    Args:
        size: How long a window is, such as "1 hour".
        slide: From one window's start to the next; the size by default.
        start: Where windows start, from midnight (UTC) of 1970-01-01; there by default.
        delay: The delay of the watermark; needed in append mode.
        aggregates: As in `session_windows`.
        keys: The columns of the key; those of the input by default.
        input: The input's name, where there are several.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: A duration or an aggregate can't be read, or Spark refuses the window.
    """
    _known("windows", semantics)
    size_us = _positive("windows", "size", size)
    slide_us = size_us if slide is None else _positive("windows", "slide", slide)
    start_us = 0 if start is None else microseconds_of("windows: start", start)
    if slide_us > size_us:
        raise BadInput(
            f"windows: the slide {slide!r} is longer than the size {size!r}, and Spark refuses that: swap them"
        )
    if abs(start_us) >= slide_us:
        raise BadInput(f"windows: the start {start!r} must be shorter than the slide: give the rest of their division")
    return TimeWindows(
        _named("windows", size=size, slide=slide, start=start, delay=delay),
        _delays("windows", delay),
        None if keys is None else _columns("windows", "keys", keys),
        _aggregates("windows", aggregates),
        input,
        size_us,
        slide_us,
        start_us,
    )


def drop_duplicates(
    columns: Sequence[str] | None = None,
    delay: Duration | None = None,
    within_watermark: bool = False,
    *,
    input: str | None = None,
    semantics: str = "spark",
) -> DropDuplicates:
    """Expect `dropDuplicates(columns)`, or `dropDuplicatesWithinWatermark(columns)`: rows of the input.

    Of several duplicates in one batch Spark emits any, and this rule the first: let the output have only columns in
    which they are equal, where that matters.

    Args:
        columns: The columns in which duplicates are equal; all by default.
        delay: The delay of the watermark, where there is one: then late rows are dropped. What was seen is forgotten
            only where the column of the event time is among the columns, or within the watermark.
        within_watermark: Whether a duplicate may come again once the watermark has passed the first by the delay.
        input: The input's name, where there are several.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: The delay can't be read, or is missing.
    """
    _known("drop_duplicates", semantics)
    if within_watermark and delay is None:
        raise BadInput('drop_duplicates: within_watermark needs the delay of the watermark: give it delay="10 minutes"')
    given = None if columns is None else _columns("drop_duplicates", "columns", columns)
    return DropDuplicates(
        _named(
            "drop_duplicates", columns=given and "+".join(given), delay=delay, within_watermark=within_watermark or None
        ),
        _delays("drop_duplicates", delay),
        given,
        within_watermark,
        input,
    )


def static_join(
    table: Sequence[Row] | pa.Table,
    on: On,
    join: StaticJoinKind = "inner",
    *,
    input: str | None = None,
    semantics: str = "spark",
) -> StaticJoin:
    """Expect the join of a stream with a table that doesn't change: the stream's columns, then the table's others.

    Args:
        table: The rows of the table, as mappings or as an arrow table.
        on: The columns that are equal: their names, or those of the stream and of the table.
        join: `inner`, `left`, `left_semi` or `left_anti`.
        input: The input's name, where there are several.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: The table lacks a column, or Spark refuses the kind of join.
    """
    _known("static_join", semantics)
    _kind("static_join", join, StaticJoinKind)
    rows: list[Row] = table.to_pylist() if isinstance(table, pa.Table) else [dict(row) for row in table]
    columns = (
        table.schema.names if isinstance(table, pa.Table) else [*dict.fromkeys(name for row in rows for name in row)]
    )
    sides = _on("static_join", on)
    missing = [name for name in sides[1] if name not in columns]
    if missing and rows:
        raise BadInput(f"static_join: the table has no column {missing[0]!r}: use some of {', '.join(columns)}")
    whole = tuple({name: row.get(name) for name in columns} for row in rows)
    return StaticJoin(
        _named("static_join", on="+".join(sides[0]), join=join), {}, whole, tuple(columns), sides, join, input
    )


def stream_join(
    join: StreamJoinKind = "inner",
    on: On = (),
    before: Duration | None = None,
    after: Duration | None = None,
    delay: Duration | Mapping[str, Duration] | None = None,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    left: str | None = None,
    right: str | None = None,
    semantics: str = "spark",
) -> StreamJoin:
    """Expect the join of two streams, where `right.time BETWEEN left.time - before AND left.time + after`.

    Args:
        join: `inner`, `left`, `right`, `full` or `left_semi`.
        on: The columns that are equal: their names, or those of the left and of the right input.
        before: How long before the left row the right one may be, such as "5 minutes"; any time by default.
        after: How long after it; any time by default.
        delay: The delay of both watermarks, or of each input's by its name.
        columns: The columns of the output: `{"user": "clicks.user", "shown_at": "views.at"}`; several for one, of which
            the first that isn't null counts, as `coalesce` has it. All columns of both inputs by default.
        left: The name of the left input; the first by default.
        right: The name of the right input; the second by default.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: A duration can't be read, or Spark refuses the kind of join.
    """
    _known("stream_join", semantics)
    _kind("stream_join", join, StreamJoinKind)
    if isinstance(delay, Mapping):
        delays = {name: _delay("stream_join", f"the delay of {name}", one) for name, one in delay.items()}
    else:
        delays = _delays("stream_join", delay)
    sides = _on("stream_join", on)
    return StreamJoin(
        _named("stream_join", join=join, on="+".join(sides[0]), before=before, after=after, delay=delay),
        delays,
        join,
        sides,
        None if before is None else microseconds_of("stream_join: before", before),
        None if after is None else microseconds_of("stream_join: after", after),
        None if columns is None else {name: _columns("stream_join", name, of) for name, of in columns.items()},
        left,
        right,
    )


def _kind(rule: str, join: str, known: Any) -> None:
    if join not in get_args(known):
        raise BadInput(f"{rule}: join is {join!r}: use one of {', '.join(get_args(known))}")


def _on(rule: str, on: On) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of the key on each side."""
    if isinstance(on, str) or all(isinstance(name, str) for name in on):
        columns = _columns(rule, "on", on)  # type: ignore[arg-type]
        return columns, columns
    sides = [_columns(rule, "on", side) for side in on]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        raise BadInput(
            f"{rule}: on is {on!r}: give the names of columns, or as many of each side, as (['user'], ['id'])"
        )
    return sides[0], sides[1]


def _stepping(start: Callable[[], Callable[..., Sequence[Row]]], name: str) -> Callable[[], Step]:
    """Return the operator of a single input: the rows of a later stage come under an empty name."""

    def started() -> Step:
        batch = start()
        return lambda rows, late_ms, eviction_ms: batch(rows.get(name, rows.get("", ())), late_ms, eviction_ms)

    return started


def _only(rule: str, sources: Sequence[Source], name: str | None) -> Source:
    """Return the input of a rule that takes one."""
    names = ", ".join(source.name for source in sources)
    if name is None and len(sources) == 1:
        return sources[0]
    if name is None:
        raise BadInput(f'{rule} takes one input, and the job has {names}: name it, as input="{sources[0].name}"')
    for source in sources:
        if source.name == name:
            return source
    raise BadInput(f"{rule}: there is no input {name!r}: use one of {names}")


def _look_for(rule: str, source: Source, columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in source.schema.names]
    if missing:
        raise BadInput(
            f"{rule}: the input {source.name} has no column {missing[0]!r}: use one of {', '.join(source.schema.names)}"
        )


def _with_microseconds(row: Row, time: str) -> Row:
    return row if row[time] is None else {**row, time: microseconds(row[time])}


def _with_times(row: Row, times: frozenset[str]) -> Row:
    return {name: _as_time(value) if name in times else value for name, value in row.items()}


def _as_time(value: Any) -> Any:
    if isinstance(value, list):
        return [from_microseconds(time_us) for time_us in value]
    return None if value is None else from_microseconds(value)


def _known(rule: str, semantics: str) -> None:
    if semantics != "spark":
        raise BadInput(
            f'{rule}: semantics is {semantics!r}, and a job is checked by Spark\'s own rules, "spark": leave it out; '
            "an implementation of the operators' definitions in KIP-94 and its like is checked by `conforms`"
        )


def _named(rule: str, **given: object) -> str:
    texts = {
        name: "+".join(f"{one} {two}" for one, two in value.items()) if isinstance(value, Mapping) else str(value)
        for name, value in given.items()
        if value is not None
    }
    return f"{rule}({', '.join(f'{name}={text}' for name, text in texts.items())})"


def _positive(rule: str, name: str, duration: Duration) -> int:
    duration_us = microseconds_of(f"{rule}: {name}", duration)
    if duration_us <= 0:
        raise BadInput(f"{rule}: {name} is {duration!r}: give a duration above zero")
    return duration_us


def _delays(rule: str, delay: Duration | None) -> dict[str, int]:
    return {} if delay is None else {"": _delay(rule, "delay", delay)}


def _delay(rule: str, name: str, delay: Duration) -> int:
    delay_us = microseconds_of(f"{rule}: {name}", delay)
    if delay_us < 0:
        raise BadInput(f"{rule}: {name} is {delay!r}, and no watermark has a negative one: give zero or more")
    return delay_us


def _columns(rule: str, name: str, columns: Sequence[str]) -> tuple[str, ...]:
    given = (columns,) if isinstance(columns, str) else tuple(columns)
    if not given or not all(isinstance(column, str) for column in given):
        raise BadInput(f'{rule}: {name} is {columns!r}: give the names of columns, such as ["user"]')
    return given


def _aggregates(rule: str, given: Aggregates | None) -> dict[str, Aggregate]:
    aggregates = {}
    for name, said in ({"count": "count"} if given is None else given).items():
        function, column = (said, None) if isinstance(said, str) else said
        if function not in FUNCTIONS or (column is None and function != "count"):
            raise BadInput(
                f"{rule}: the aggregate {name!r} is {said!r}: give a function of {', '.join(FUNCTIONS)} "
                'with its column, such as ("sum", "amount"), or "count"'
            )
        aggregates[name] = Aggregate(function, column)
    return aggregates

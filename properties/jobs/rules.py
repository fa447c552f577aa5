"""What is expected of a job by the rules of Spark's own operators: windows, sessions, deduplication and joins.

Each factory says what the job means to do, its watermark included, and returns an oracle: Spark's own rules as a
reference model, from `reference/spark`. `>>` puts one after another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...reference.core.errors import BadInput
from ...reference.spark import session_windows as sessions
from ...reference.spark import windows as time_windows
from ...reference.spark.aggregates import FUNCTIONS, Aggregate
from ...reference.spark.durations import Duration, microseconds_of
from ...reference.spark.watermarks import micro_batches
from .model import Expected, JobHistory, Mode, Row, Source, Way, from_microseconds, microseconds

Aggregates: TypeAlias = Mapping[str, str | tuple[str, str]]
"""By the name of the output column: `count` for `count(*)`, or a function of Spark SQL and its column."""
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
    return f"{rule}({', '.join(f'{name}={value}' for name, value in given.items() if value is not None)})"


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

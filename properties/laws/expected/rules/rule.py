"""A rule: one or several of Spark's operators in a row, and their output for a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .....reference.core.errors import BadInput
from .....reference.spark.watermarks import micro_batches
from .....spark_impl.runtime.logic import with_one_nan
from ....generators.columns.forms.rows import Row, from_microseconds, microseconds
from ....generators.columns.model import Expected, JobHistory, Source
from ....witnesses.run_options import Mode, RunOptions
from ..oracle import Oracle

Step: TypeAlias = Callable[[Mapping[str, Sequence[Row]], int, int], Sequence[Row]]
"""Takes the rows of a micro-batch by input, its watermarks for late rows and for eviction (ms); returns the emitted
rows. All event times are integers, of microseconds since 1970."""


@dataclass(frozen=True)
class Stage:
    """An operator, as it is run over the rows of its inputs.

    Attributes:
        start: Returns the operator without any state.
        follows: Whether it asks for a batch without data when the watermark has moved.
        times: The columns of its output that are times.
        output: Its output as an input of the next operator; None if no operator can follow.
        why_none: The reason why no operator can follow.
    """

    start: Callable[[], Step]
    follows: bool
    times: frozenset[str]
    output: Source | None
    why_none: str = ""


Bind: TypeAlias = Callable[[Sequence[Source], Mode, bool], list[Stage]]
"""Takes the inputs, the output mode and whether there is a watermark; returns the operators over these inputs. Raises
BadInput if the rule doesn't fit the inputs, or Spark refuses it in this mode, or without a watermark."""


@dataclass(frozen=True)
class Rule(Oracle):
    """The expected output of one of Spark's operators, or of several in a row, by their rules.

    Attributes:
        name: Its name in reports.
        delays_us: The delay of the watermark, in microseconds: of each input by its name, or of all inputs under an
            empty name; empty without a watermark.
        bind: Returns its operators over the job's inputs.
        distances_us: The durations that it depends on, in microseconds, sorted.
        allows_fewer_columns: Whether a job's result may lack some of the emitted columns; it may if these are the
            inputs' columns.
        result: The columns that a job's result must have, with the emitted column of each; the others aren't compared.
            Empty for all emitted columns, under their names.
    """

    name: str
    delays_us: Mapping[str, int]
    bind: Bind
    distances_us: Sequence[int] = ()
    allows_fewer_columns: bool = False
    result: Mapping[str, str] = field(default_factory=dict)
    takes_late = True

    @property
    def watermark_delays_us(self) -> Mapping[str, int]:
        return self.delays_us

    def closes(self, mode: Mode) -> bool:
        return False

    def __rshift__(self, after: Rule) -> Rule:
        """Return this rule followed by another rule over its output."""
        if not isinstance(after, Rule):
            return NotImplemented
        if self.delays_us and after.delays_us and self.delays_us != after.delays_us:
            raise BadInput(
                f"{self.name} >> {after.name} has two watermarks, and an input takes one: leave out the second delay"
            )
        name = f"{self.name} >> {after.name}"

        def bind(sources: Sequence[Source], mode: Mode, watermark: bool) -> list[Stage]:
            stages = self.bind(sources, mode, watermark)
            output = stages[-1].output
            if output is None:
                raise BadInput(f"{name}: no operator can follow here, for {stages[-1].why_none}")
            return [*stages, *after.bind([output], mode, watermark)]

        distances_us = sorted({*self.distances_us, *after.distances_us})
        of_result = after.allows_fewer_columns, after.result
        return Rule(name, {**self.delays_us, **after.delays_us}, bind, distances_us, *of_result)

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Compute Spark's output for each history: the rows of each batch, or the table after it in complete mode.

        Raises:
            BadInput: The rule doesn't fit the inputs, or Spark refuses it in the given mode.
        """
        unknown = sorted(set(self.delays_us) - {"", *(source.name for source in sources)})
        if unknown:
            names = ", ".join(source.name for source in sources)
            raise BadInput(f"{self.name} has a delay for {unknown[0]!r}, which is no input: the inputs are {names}")
        stages = self.bind(sources, run.mode, bool(self.delays_us))
        if run.mode == "complete" and stages[-1].output is not None:
            raise BadInput(f'{self.name}: Spark takes the mode "complete" only for aggregations: use "append"')
        expected = [self._of(history, sources, run, stages) for history in histories]
        return [*map(self._as_result, expected)] if self.result else expected

    def _as_result(self, expected: Expected) -> Expected:
        rows = [[{name: row[of] for name, of in self.result.items()} for row in batch] for batch in expected.rows]
        return replace(expected, rows=rows)

    def _of(self, history: JobHistory, sources: Sequence[Source], run: RunOptions, stages: Sequence[Stage]) -> Expected:
        batches: list[dict[str, list[Row]]] = []
        largest_us: list[dict[str, int | None]] = []
        time_of = {source.name: source.time for source in sources}
        for number, batch in enumerate(history.batches):
            rows: dict[str, list[Row]] = {name: [] for name in time_of}
            for arrival in batch:
                rows[arrival.input].append(_read(arrival.row, time_of[arrival.input]))
            batches.append(rows)
            own = {source.name: source.latest_us(batch) for source in sources}
            largest_us.append(dict.fromkeys(rows, history.clock[number]) if history.clock else own)
        delays_us = {name: delay_us for name in time_of if (delay_us := delay_us_of(self.delays_us, name)) is not None}
        steps = [stage.start() for stage in stages]
        emitted: list[list[Row]] = [[] for _ in batches]
        by_force = run.empty_batches and run.trigger == "default"
        executed = micro_batches(
            largest_us,
            delays_us,
            policy=run.watermark_policy,
            trigger=run.trigger,
            follows=by_force or any(stage.follows for stage in stages),
        )
        for micro in executed:
            given: Mapping[str, Sequence[Row]] = batches[micro.data] if micro.has_data else {}
            for step in steps:
                out = step(given, micro.late_ms, micro.eviction_ms)
                given = {"": out}
            shown = [_with_times(row, stages[-1].times) for row in out]
            emitted[micro.data] = shown if run.mode == "complete" else [*emitted[micro.data], *shown]
        return Expected("cuts" if run.mode == "complete" else "batches", emitted)


def delay_us_of(delays_us: Mapping[str, int], input: str) -> int | None:
    """Return the delay of an input's watermark in microseconds; None without a watermark."""
    return delays_us.get(input, delays_us.get(""))


def stepping(start: Callable[[], Callable[..., Sequence[Row]]], name: str) -> Callable[[], Step]:
    """Return the operator of a single input: the rows of a later stage come under an empty name."""

    def started() -> Step:
        batch = start()
        return lambda rows, late_ms, eviction_ms: batch(rows.get(name, rows.get("", ())), late_ms, eviction_ms)

    return started


def _read(row: Row, time: str) -> Row:
    """Return a row with its event time in microseconds, and with NaNs that are equal, as Spark's are."""
    read = {name: with_one_nan(value) for name, value in row.items()}
    return read if row[time] is None else {**read, time: microseconds(row[time])}


def _with_times(row: Row, times: frozenset[str]) -> Row:
    return {name: _as_time(value) if name in times else value for name, value in row.items()}


def _as_time(value: Any) -> Any:
    if isinstance(value, list):
        return [from_microseconds(time_us) for time_us in value]
    return None if value is None else from_microseconds(value)

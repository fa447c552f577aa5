"""A rule: a plan of one or several Spark operators in `reference/spark`, and its output for a history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

from .....reference.core.errors import BadInput
from .....reference.spark import plans
from .....reference.spark.execution import Execution
from .....reference.spark.watermarks import micro_batches
from .....spark_impl.runtime.logic import with_one_nan
from ....generators.columns.forms.rows import Row, from_microseconds, microseconds
from ....generators.columns.model import Expected, JobHistory, Source
from ....witnesses.run_options import Mode, RunOptions
from ..oracle import Oracle

WINDOW_TIME = "__streamproof_window_time"
"""The name of the event time of a window's rows, as in `window_time`."""


@dataclass(frozen=True)
class Stream:
    """A stream of rows that a rule reads or emits.

    Attributes:
        name: The name of the input; for a rule's output, the name of the rule's first input.
        plan: The plan of operators over the job's inputs.
        schema: The columns of the stream and their types, in order.
        key: The columns of the stream's key.
        time: The event-time column, which may be missing in the schema; empty: no event time.
        times: The columns whose values are microseconds since 1970.
        inputs: The names of the inputs whose rows the stream contains.
    """

    name: str
    plan: plans.Node
    schema: pa.Schema
    key: tuple[str, ...]
    time: str
    times: frozenset[str]
    inputs: frozenset[str]

    @property
    def is_input(self) -> bool:
        """Whether the stream is an input of the job, not a rule's output."""
        return isinstance(self.plan.input if isinstance(self.plan, plans.WithWatermark) else self.plan, plans.Scan)

    def shown(self, row: Row) -> Row:
        """Return a row with only the stream's columns, and with times as datetimes."""
        return {name: _as_time(row[name]) if name in self.times else row[name] for name in self.schema.names}


Bind: TypeAlias = Callable[[Sequence[Stream], Mode], Stream]
"""A function from streams (the inputs, or the previous rule's output and the inputs) and the output mode to the rule's
output. It raises BadInput if the rule doesn't fit the inputs, or if Spark refuses the operator in this mode or without
a watermark.
"""


@dataclass(frozen=True)
class Rule(Oracle):
    """The oracle of one of Spark's operators, or of several in a chain.

    Attributes:
        name: The rule's name in reports.
        delays_us: The watermark's delay (µs): of each input by its name, or of all inputs under an empty name; empty
            without a watermark.
        bind: The function that returns the rule's output over the job's inputs, as a plan.
        distances_us: The durations in the rule (µs), sorted.
        allows_fewer_columns: Whether a job's result may lack some of the rule's columns, because these columns come
            from the inputs.
        result: The rule's column for each column that the job's result must have; other columns aren't compared.
            Empty: the result has all columns of the rule, under the rule's names.
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
        """Return a rule that applies another rule to this rule's output, and to inputs that this rule doesn't read."""
        if not isinstance(after, Rule):
            return NotImplemented
        if self.delays_us and after.delays_us and self.delays_us != after.delays_us:
            raise BadInput(f"{self.name} >> {after.name} has two watermarks on one input: leave out the second delay")

        def bind(streams: Sequence[Stream], mode: Mode) -> Stream:
            output = self.output(streams, mode)
            return after.output([output, *(one for one in streams if one.name not in output.inputs)], mode)

        distances_us = sorted({*self.distances_us, *after.distances_us})
        of_result = after.allows_fewer_columns, after.result
        delays_us = {**self.delays_us, **after.delays_us}
        return Rule(f"{self.name} >> {after.name}", delays_us, bind, distances_us, *of_result)

    def output(self, streams: Sequence[Stream], mode: Mode) -> Stream:
        """Return the rule's output with the columns of the job's result; arguments as for `bind`."""
        output = self.bind(streams, mode)
        emitted = output.schema.names
        missing = [column for column in self.result.values() if column not in emitted]
        if missing:
            raise BadInput(
                f"{self.name}: result= names {missing[0]!r}, which isn't a column of the rule "
                f"({', '.join(emitted)}): give the job's column first and the rule's column second"
            )
        return output

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Return Spark's output for each history: the rows of each batch, or in complete mode the table after each
        batch.

        Raises:
            BadInput: The rule doesn't fit the inputs, or Spark refuses the operator in the output mode.
        """
        unknown = sorted(set(self.delays_us) - {"", *(source.name for source in sources)})
        if unknown:
            names = ", ".join(source.name for source in sources)
            raise BadInput(f"{self.name} has a delay for {unknown[0]!r}, which isn't an input: the inputs are {names}")
        output = self.output([self._input(source) for source in sources], run.mode)
        stateful = [node for node in output.plan.walk() if node.is_stateful]
        if run.mode == "complete" and not any(isinstance(node, plans.Aggregation) for node in stateful):
            raise BadInput(f'{self.name}: Spark allows the mode "complete" only for aggregations: use "append"')
        if run.mode != "append" and any(isinstance(node, plans.Aggregation) for node in stateful[:-1]):
            raise BadInput(
                f"{self.name}: Spark allows a stateful operator after an aggregation only in append mode: use "
                'mode="append"'
            )
        expected = [self._of(history, sources, run, output) for history in histories]
        return [*map(self._as_result, expected)] if self.result else expected

    def _input(self, source: Source) -> Stream:
        plan: plans.Node = plans.Scan(source.name, tuple(source.schema.names))
        if (delay_us := self.delays_us.get(source.name, self.delays_us.get(""))) is not None:
            plan = plans.WithWatermark((plan,), source.time, delay_us)
        times, inputs = frozenset({source.time}), frozenset({source.name})
        return Stream(source.name, plan, source.schema, source.key, source.time, times, inputs)

    def _as_result(self, expected: Expected) -> Expected:
        rows = [[{name: row[of] for name, of in self.result.items()} for row in batch] for batch in expected.rows]
        return replace(expected, rows=rows)

    def _of(self, history: JobHistory, sources: Sequence[Source], run: RunOptions, output: Stream) -> Expected:
        batches: list[dict[str, list[Row]]] = []
        largest_us: list[dict[str, int | None]] = []
        nodes = enumerate(output.plan.walk())
        watermarks = {str(place): node for place, node in nodes if isinstance(node, plans.WithWatermark)}
        by_name = {source.name: source for source in sources}
        for number, batch in enumerate(history.batches):
            rows: dict[str, list[Row]] = {name: [] for name in by_name}
            for arrival in batch:
                rows[arrival.input].append(_read(arrival.row, by_name[arrival.input].time))
            batches.append(rows)
            largest_us.append({})
            for place, node in watermarks.items():
                below = [by_name[one.name].latest_us(batch) for one in node.walk() if isinstance(one, plans.Scan)]
                own = max((time_us for time_us in below if time_us is not None), default=None)
                largest_us[-1][place] = history.clock[number] if history.clock else own
        by_force = run.empty_batches and run.trigger == "default"
        executed = micro_batches(
            largest_us,
            {place: node.delay_us for place, node in watermarks.items()},
            policy=run.watermark_policy,
            trigger=run.trigger,
            follows=by_force or any(node.asks_for_batch_without_data for node in output.plan.walk()),
        )
        watermarks_ms = [(micro.has_data, micro.eviction_ms) for micro in executed]
        emitted: list[list[Row]] = [[] for _ in batches]
        for micro in Execution(output.plan).run_at(watermarks_ms, batches):
            shown = [*map(output.shown, micro.rows)]
            emitted[micro.batch] = shown if run.mode == "complete" else [*emitted[micro.batch], *shown]
        return Expected("cuts" if run.mode == "complete" else "batches", emitted)


def _read(row: Row, time: str) -> Row:
    """Return a row with event times in microseconds, and with all NaNs equal, as in Spark."""
    read = {name: with_one_nan(value) for name, value in row.items()}
    return read if row[time] is None else {**read, time: microseconds(row[time])}


def _as_time(value: Any) -> Any:
    if isinstance(value, list):
        return [from_microseconds(time_us) for time_us in value]
    return None if value is None else from_microseconds(value)

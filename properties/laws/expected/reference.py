"""The oracle of the reference of one of the twelve operators, for a job that should behave like this operator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from ....reference.core.errors import BadInput
from ....reference.core.history import CUT, ClockAdvance, History, Line
from ....reference.core.operator import operator_named
from ....reference.core.play import play
from ....reference.core.records import Change, Record, Table, fold
from ...generators.columns.forms.rows import Row, from_microseconds
from ...generators.columns.model import Expected, JobHistory, Source
from ...generators.coverage import emitted, neighbours
from ...registration.registration import Registration, registration_of
from ...system.arguments import checked
from ...witnesses.run_options import Mode, RunOptions
from .oracle import Oracle

BatchOrder: TypeAlias = Literal["timestamp", "arrival"]
MS = 1000


@dataclass(frozen=True)
class ReferenceOracle(Oracle):
    """The oracle of an operator's reference, which processes a job's rows as records.

    Attributes:
        operator: The operator's name.
        options: The operator's options, as in a history file.
        value: The column with a record's value; None: the only column besides key and time, or no column.
        order: The order in which the reference processes the rows of a batch.
    """

    operator: str
    options: Mapping[str, Any]
    value: str | None = None
    order: BatchOrder = "timestamp"
    takes_late = True
    allows_fewer_columns = True
    derived_clock = "clock"  # the watermark column that `spark_impl`'s operators derive

    @property
    def name(self) -> str:
        return f"the reference of {self.operator}"

    @cached_property
    def definition(self) -> Any:
        """The operator's definition."""
        return operator_named(self.operator).declare(self.options)

    @property
    def _registration(self) -> Registration:
        return registration_of(self.operator)

    @property
    def distances_us(self) -> Sequence[int]:  # type: ignore[override]
        """The durations in the operator's options (µs)."""
        domain, definition = self._registration.domain, self.definition
        if not [*domain.numbers(definition)]:
            return ()
        times_ms = {*domain.distances(definition), *domain.edges(definition)}
        return sorted(MS * time_ms for time_ms in times_ms if time_ms > 0)

    @property
    def edges_us(self) -> Sequence[tuple[int, int]]:  # type: ignore[override]
        """The times at which the clock changes the output, each series as a step and an offset (µs)."""
        return [(MS * step, MS * offset) for step, offset, _ in self._registration.domain.aligned(self.definition)]

    def closes(self, mode: Mode) -> bool:
        return False

    def required(self, sources: Sequence[Source]) -> Collection[str]:
        """Return the columns of the key, the window and the value, which a result must contain; without them, a wrong
        job could conform.
        """
        return (*sources[0].key, "start", "end", "value")

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Run each history on the reference; return the changes of each batch, or in update and complete mode the table
        after it.

        Raises:
            BadInput: The job and the operator have different numbers of inputs, or a row has no event time.
        """
        return [self._of(history, sources, run) for history in histories]

    def _of(self, history: JobHistory, sources: Sequence[Source], run: RunOptions) -> Expected:
        try:
            played = play(self.history(history, sources, run))
        except TypeError as error:
            raise BadInput(
                f"{self.name} can't process the values of a history: {error}: declare the value column NOT NULL, "
                "with a type that the aggregate accepts"
            ) from error
        batches: list[list[Change]] = [[] for _ in history.batches]
        for entry in played.entries:
            if isinstance(entry.output, Change):
                batches[_batch(entry.batch, history, run)].append(entry.output)
        if run.mode == "append":
            return Expected("batches", [[_row(sources[0], change) for change in batch] for batch in batches])
        table: Table = {}
        tables = []
        for batch in batches:
            fold(batch, table)
            tables.append([_row(sources[0], Change(*place, *content)) for place, content in table.items()])
        return Expected("cuts", tables)

    def history(self, history: JobHistory, sources: Sequence[Source], run: RunOptions) -> History:
        """Return a job's history as a history of the operator, with a clock that moves like the job's watermark."""
        return History(self.operator, self.options, (*self._lines(history, sources, run),), "batch", name=history.name)

    def _lines(self, history: JobHistory, sources: Sequence[Source], run: RunOptions) -> Iterator[Line]:
        inputs = self.definition.inputs
        if len(inputs) != len(sources):
            raise BadInput(
                f"{self.name} has the inputs {', '.join(inputs)}, and the job has {len(sources)}: give an Input "
                "for each input"
            )
        side = {source.name: (of, source, self._value_of(source)) for of, source in zip(inputs, sources, strict=True)}
        clock = history.clock or (0,) * len(history.batches)
        for batch, clock_us in zip(history.batches, clock, strict=True):
            records = [_record(*side[name], row) for name, row in batch]
            yield from sorted(records, key=lambda record: record.timestamp) if self.order == "timestamp" else records
            if clock_us:
                yield ClockAdvance(clock_us // MS)
            yield CUT
            if run.trigger == "default":  # one more batch for the batch without data that Spark runs
                yield CUT

    def _value_of(self, source: Source) -> str | None:
        """Return the value column of an input.

        Raises:
            BadInput: The input has no such column.
        """
        others = [name for name in source.schema.names if name not in (source.time, *source.key)]
        if self.value is not None and self.value not in source.schema.names:
            raise BadInput(
                f"value is {self.value!r}, and {source.name} has the columns {', '.join(others)}: name one of these "
                "columns"
            )
        return self.value or (others[0] if len(others) == 1 else None)

    def unmet(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[str]:
        """Return the off-by-one errors in options that no history would show, because the reference's output stays the
        same.

        In such an error, an option is larger or smaller by one, or the clock is 1 ms ahead or behind. A job with one of
        the returned errors would conform on all histories.
        """
        if any(source.grain_us > MS for source in sources):
            return []  # event times are too coarse to differ by 1 ms
        left = {neighbour.goal: neighbour for neighbour in neighbours(self.operator, self.options)}
        for one in histories:
            history = self.history(one, sources, run)
            own = emitted(play(history))
            left = {goal: other for goal, other in left.items() if not other.differs(history, own)}
            if not left:
                break
        return [*left]


def _batch(batch: int, history: JobHistory, run: RunOptions) -> int:
    """Return the index of the job's batch that emits the output of the operator's batch with the given index."""
    return min(batch // 2 if run.trigger == "default" else batch, len(history.batches) - 1)


def _record(input: str, source: Source, value: str | None, row: Row) -> Record:
    """Return a row as a record of an operator's input."""
    time_us = source.time_us_of(row)
    if time_us is None:
        raise BadInput(
            f"a row of {source.name} has no event time, but a record needs an event time: leave null_times out"
        )
    key = source.key_of(row)
    whole: Any = None if None in key else key[0] if len(key) == 1 else key
    return Record(input, whole, 1 if value is None else row[value], time_us // MS)


def _row(source: Source, change: Change) -> Row:
    """Return a change that the reference emits as a row of the job's changelog."""
    key: Any = change.key if len(source.key) > 1 else (change.key,)
    row = dict(zip(source.key, key, strict=True))
    if change.window is not None:
        row["window"] = dict(zip(("start", "end"), map(_time, change.window), strict=True))
    return {**row, "value": change.value, "timestamp": _time(change.timestamp)}


def _time(time_ms: int) -> Any:
    return from_microseconds(MS * time_ms)


@checked
def reference_of(
    operator: str, *, value: str | None = None, order: BatchOrder = "timestamp", **options: Any
) -> ReferenceOracle:
    """Expect the changelog of one of the twelve operators, by its reference.

    The rule treats a row as a record: the Input's key, the event time (truncated to ms), and a value. The expected rows
    contain the key's columns, `window` (a struct of start and end, if the operator uses windows), `value` (null in a
    tombstone) and `timestamp`, which a job's result may lack. In append mode, the rule expects the changes of each
    batch; in update and complete mode, it expects the table after each batch.

    Args:
        operator: The operator's name, such as "session_windows".
        value: The column of a record's value; by default the only column besides key and event time.
        order: The order in which the reference processes a batch's rows: by timestamp (if the operator ignores the
            order of arrival), or by `arrival`.
        options: The operator's options, as in a history file, such as gap_ms=1_800_000; durations in ms.

    Raises:
        BadInput: No operator has this name, or the operator refuses the options.
    """
    operator_named(operator).declare(options)
    return ReferenceOracle(operator, options, value, order)

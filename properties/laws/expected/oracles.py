"""All oracles except the rules of Spark's operators: a function, a class, SQL, a batch query, another job."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....reference.core.errors import BadInput, StreamproofError
from ...generators.columns.forms.rows import Row, from_microseconds
from ...generators.columns.model import Comparing, Expected, JobHistory, Source
from ...generators.columns.wire import table_of
from ...system.arguments import checked
from ...system.exits import without_exit
from ...witnesses.job.contract import location
from ...witnesses.job.plan.plans import Plan
from ...witnesses.job.query.runnable import Earlier, JobOrSink, name_of
from ...witnesses.job.rows import flat, rows_of
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.job.witness import EmittedBatches, RowsWitness
from ...witnesses.run_options import Mode, RunOptions
from ...witnesses.spark.engine import Overdue, within
from .oracle import Oracle

if TYPE_CHECKING:
    import duckdb


WITH_ROWS = ("SELECT", "MULTI", "CALL")
"""The types of SQL statements that return rows; `MULTI` is the type of a PIVOT."""
FORGETS = "DeduplicateWithinWatermark"
"""The operator that accepts a duplicate after the watermark has passed the first row; then batches change the
result.
"""


def clock_of(history: JobHistory, batch: int, sources: Sequence[Source]) -> datetime | None:
    """Return the largest event time in the first batches, up to a given batch; None: no batch so far has an event
    time.
    """
    if history.clock:
        return from_microseconds(history.clock[batch])
    time = {source.name: source.time for source in sources}
    times = [row[time[name]] for rows in history.batches[: batch + 1] for name, row in rows]
    return max((one for one in times if one is not None), default=None)


def by_input(history: JobHistory, batches: int, sources: Sequence[Source]) -> list[list[dict[str, Any]]]:
    """Return the rows of the first batches for each input, in order of arrival."""
    arrived = [arrival for rows in history.batches[:batches] for arrival in rows]
    return [[dict(row) for name, row in arrived if name == source.name] for source in sources]


@contextlib.contextmanager
def _raising(function: Any, history: JobHistory, run: RunOptions) -> Iterator[None]:
    rows = [dict(row) for _, row in history.arrivals][:3]
    with without_exit(f"the expected rows can't be computed: {location(function)}, for the rows {rows},"):
        try:
            with within(run.seconds):
                yield
        except StreamproofError:
            raise
        except Overdue as overdue:
            raise StreamproofError(
                f"the expected rows can't be computed: {location(function)} didn't return within {run.seconds:g} "
                f"s{overdue}, for the rows {rows}: find out why it waits, or allow more time with seconds="
            ) from None
        except Exception as error:
            raise BadInput(
                f"the expected rows can't be computed: {location(function)} raised {type(error).__name__}: {error}, "
                f"for the rows {rows}"
            ) from error


@dataclass(frozen=True)
class FunctionOracle(Oracle):
    """The oracle of a Python function from input rows to expected rows.

    The function receives a list of rows for each input and, if it has one more parameter, the clock: the largest event
    time so far. With a clock, the check calls the function after each batch, and it returns all rows emitted so far.
    Without a clock, it returns the rows emitted by the end, when all windows are closed.

    Attributes:
        function: The function.
    """

    function: Callable[..., Any]

    @property
    def written(self) -> Sequence[Any]:
        return (self.function,)

    @property
    def name(self) -> str:
        return f"the function {getattr(self.function, '__name__', type(self.function).__name__)}"

    def closes(self, mode: Mode) -> bool:
        return not self._takes_clock

    @property
    def _takes_clock(self) -> bool:
        parameters = inspect.signature(self.function).parameters.values()
        return any(parameter.name in ("clock", "now") for parameter in parameters)

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        return [self._of(history, sources, run) for history in histories]

    def _of(self, history: JobHistory, sources: Sequence[Source], run: RunOptions) -> Expected:
        with _raising(self.function, history, run):
            if not self._takes_clock:
                return Expected("end", [self._rows(by_input(history, len(history.batches), sources))])
            tables = []
            for batch in range(len(history.batches)):
                clock = clock_of(history, batch, sources)
                given = by_input(history, batch + 1, sources)
                tables.append([] if clock is None else self._rows([*given, clock]))
            return Expected("cuts", tables)

    def _rows(self, given: Sequence[Any]) -> list[dict[str, Any]]:
        return rows_of(self.function(*given), location(self.function))


@dataclass(frozen=True)
class ModelOracle(Oracle):
    """The oracle of a class whose objects process rows one at a time.

    `arrive(row)`, or `arrive(input, row)`, returns the emitted rows, or None. After each batch, the check calls
    `advance(clock)` with the largest event time so far; it also returns emitted rows. Each history gets a new object.

    Attributes:
        model: The class, or a function that creates an object.
    """

    model: Callable[[], Any]
    takes_late = True

    @property
    def written(self) -> Sequence[Any]:
        return (self.model,)

    @property
    def name(self) -> str:
        return f"the model {getattr(self.model, '__name__', type(self.model).__name__)}"

    def closes(self, mode: Mode) -> bool:
        return False  # the object receives the clock, so open windows may stay open

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Run an object of the class on a history; return the rows of each batch, or the table after each batch for an
        updated table.
        """
        return [self._of(history, sources, run) for history in histories]

    def _of(self, history: JobHistory, sources: Sequence[Source], run: RunOptions) -> Expected:
        with _raising(self.model, history, run):
            model, where = self.model(), location(self.model)
            with_input = len(inspect.signature(model.arrive).parameters) > 1
            batches = []
            for number, arrivals in enumerate(history.batches):
                rows: list[Row] = []
                for name, row in arrivals:
                    came = model.arrive(name, dict(row)) if with_input else model.arrive(dict(row))
                    rows += rows_of(came or [], where)
                clock = clock_of(history, number, sources)
                if clock is not None and hasattr(model, "advance"):
                    rows += rows_of(model.advance(clock) or [], where)
                batches.append(rows)
            return Expected("batches", batches)


@dataclass(frozen=True)
class SqlOracle(Oracle):
    """The oracle of a SQL statement, which DuckDB runs with each input as a table of the input's name.

    Timestamps have the type TIMESTAMP and are in UTC. In append mode, the statement returns the rows emitted by the
    end, when all windows are closed; in other modes, the table after each batch.

    Attributes:
        statement: The statement.
        static: The static tables, by name.
    """

    statement: str
    static: Mapping[str, pa.Table] = field(default_factory=dict)
    name = "the SQL statement"

    @property
    def written(self) -> Sequence[Any]:
        return (self.statement,)

    def closes(self, mode: Mode) -> bool:
        return True

    def beside(self, witness: RowsWitness) -> SqlOracle:
        return replace(self, static=witness.runner.static) if witness.runner.static else self

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        from ...witnesses.duckdb.connection import connect

        comparing: Comparing = "end" if run.mode == "append" else "cuts"
        with connect() as connection:
            for name, table in self.static.items():
                connection.register(name, in_utc(table))
            found = []
            for history in histories:
                last = len(history.batches)
                cuts = [last] if comparing == "end" else range(1, last + 1)
                found.append(Expected(comparing, [self._at(connection, history, cut, sources) for cut in cuts]))
        return found

    def _at(
        self, connection: duckdb.DuckDBPyConnection, history: JobHistory, batches: int, sources: Sequence[Source]
    ) -> list[dict[str, Any]]:
        import duckdb

        for source, rows in zip(sources, by_input(history, batches, sources), strict=True):
            connection.register(source.name, in_utc(table_of(source, rows)))
        try:
            kinds = [one.type.name for one in connection.extract_statements(self.statement)]
            if not kinds or kinds[-1] not in WITH_ROWS:
                ends = f"ends in {kinds[-1]}, which" if kinds else "is empty, and"
                raise BadInput(f"the SQL statement {ends} returns no rows: end it with a SELECT")
            return rows_of(connection.sql(self.statement).to_arrow_table(), self.name)
        except (duckdb.Error, UnicodeError) as error:
            said = " ".join(str(error).split())
            words = self._unquoted(connection, sources) if isinstance(error, duckdb.ParserException) else []
            remedy = f"; columns whose names are SQL keywords need quotes: {', '.join(words)}" if words else ""
            raise BadInput(
                f"DuckDB refuses the SQL statement: {said}; its tables are "
                f"{', '.join([*(source.name for source in sources), *self.static])}{remedy}"
            ) from None

    def _unquoted(self, connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> list[str]:
        """Return, in quotes, the columns that are SQL keywords and have no quotes in the statement."""
        tables = [*(source.schema for source in sources), *(table.schema for table in self.static.values())]
        own = re.findall(r"(?i)\bas\s+(\w+)", self.statement)
        names = dict.fromkeys(name.lower() for name in [*chain.from_iterable(table.names for table in tables), *own])
        kinds = dict(connection.sql("SELECT keyword_name, keyword_category FROM duckdb_keywords()").fetchall())
        return [
            f'"{name}"'
            for name in names
            if kinds.get(name) in ("reserved", "type_function")
            and re.search(rf'(?i)(?<!["\w]){re.escape(name)}(?!["\w])', self.statement)
        ]


def in_utc(table: pa.Table) -> pa.Table:
    """Return a table with timestamps in UTC without a zone, because DuckDB supports zones only with an extension."""
    schema = pa.schema(
        [
            (column.name, pa.timestamp(column.type.unit) if pa.types.is_timestamp(column.type) else column.type)
            for column in table.schema
        ]
    )
    return table.cast(schema)


@dataclass(frozen=True)
class OracleOfJob(Oracle):
    """An oracle that runs a job itself.

    Attributes:
        witness: The witness that runs the checked job; None: the check hasn't set the witness yet.
    """

    witness: RowsWitness | None = field(default=None, kw_only=True)
    follows_clock = False
    runs_job = True

    def beside(self, witness: RowsWitness) -> OracleOfJob:
        return replace(self, witness=witness)

    def of(self, job: JobOrSink | None) -> RowsWitness:
        """Return the witness that runs a job; None: the checked job."""
        assert self.witness is not None
        return self.witness if job is None else self.witness.of(job)


@dataclass(frozen=True)
class BatchOracle(OracleOfJob):
    """The oracle of the same job over the same rows as a batch query: Spark promises that a streaming query has the
    same result.

    Attributes:
        job: Another job to run as a batch query; None: the checked job.
    """

    job: JobOrSink | None = None

    @property
    def written(self) -> Sequence[Any]:
        return () if self.job is None else (self.job,)

    @property
    def name(self) -> str:
        return "the same job as a batch" if self.job is None else f"{name_of(self.job)} as a batch"

    def refuses(self, plan: Plan, run: RunOptions) -> str | None:
        """Refuse a job that calls `dropDuplicatesWithinWatermark`, or depends on processing time."""
        if run.processing_time:
            return (
                "a batch query has no processing-time timeouts: expect a class, whose advance(clock) receives the time"
            )
        forgets, witness = FORGETS in plan.operators, self.of(self.job)
        if self.job is not None:  # another job may not run as a stream: try the batch query
            try:
                witness.as_batch([JobHistory(((),))], run)
                forgets = False
            except StreamproofError as error:
                forgets = "dropDuplicatesWithinWatermark is not supported" in error.message
        if not forgets:
            return None
        return (
            f"{witness.name} calls dropDuplicatesWithinWatermark, which Spark refuses in a batch query: expect "
            'the rule drop_duplicates([…], delay="…", within_watermark=True), or give as_batch another job'
        )

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        return [Expected("end", [rows]) for rows in self.of(self.job).as_batch(histories, run)]


@dataclass(frozen=True)
class JobOracle(OracleOfJob):
    """The oracle of another job's output over the same batches, for example of an earlier version.

    Attributes:
        job: The other job; None: the checked job.
        run: The run options of the other job; None: the run options of the checked job.
        comparing: The kind of comparison: of the rows of each batch, or of the final table.
        called: The oracle's name in reports; by default the other job's name and line.
        takes_late: Whether histories may contain late rows.
        plain: A cache of the job's outputs, with the histories' text as keys, for checks that share outputs; None: the
            job runs each time.
    """

    job: JobOrSink | None = None
    run: RunOptions | None = None
    comparing: Comparing = "batches"
    called: str = ""
    takes_late: bool = True
    plain: dict[str, list[EmittedBatches]] | None = None

    @property
    def written(self) -> Sequence[Any]:
        return () if self.job is None else (self.job,)

    @property
    def name(self) -> str:
        return self.called or self.of(self.job).name

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        witness, known = self.of(self.job), {} if self.plain is None else self.plain
        text = repr([history.played for history in histories])
        if text not in known:
            known[text], _ = witness.evaluate(histories, self.run or run)
        if isinstance(witness.runner.job, Sink):
            return [Expected("end", emitted[-1:]) for emitted in known[text]]
        if self.comparing == "end":
            return [Expected("batches", [*map(flat, emitted)], at_end=True) for emitted in known[text]]
        return [Expected("batches", emitted) for emitted in known[text]]


@dataclass(frozen=True)
class BothOracle(OracleOfJob):
    """The oracle of a Python function of two outputs: of a job's earlier and new version, each run from the start.

    Attributes:
        function: The function: it receives the rows that the earlier version and the new version emit in each batch
            after the upgrade; it returns the expected rows of each of these batches.
        earlier: The earlier version.
        job: The new version.
        run: The run options of both versions, for any upgrade; None: the run options of the upgraded job.
        plain: A cache of each version's outputs, with the histories' text as keys, for runs with `run`.
    """

    function: Callable[..., Any]
    earlier: Earlier
    job: JobOrSink
    run: RunOptions | None = None
    plain: tuple[dict[str, list[EmittedBatches]], ...] = field(default_factory=lambda: ({}, {}))
    takes_late = True

    @property
    def written(self) -> Sequence[Any]:
        return (self.function,)

    @property
    def name(self) -> str:
        return f"the function {getattr(self.function, '__name__', type(self.function).__name__)}"

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Call the function for each history, and return its rows as the expected outcome.

        Raises:
            BadInput: The function raises an error, or returns rows for a wrong number of batches.
        """
        cut, earlier, from_start = min(run.stop_after, default=-1) + 1, self.earlier, self.run or run
        of_earlier = replace(from_start, mode=earlier.mode, settings={**run.settings, **earlier.settings})
        assert self.witness is not None
        there = replace(self.witness, runner=replace(self.witness.runner, on=earlier.on))
        old, new = self.plain if self.run else (None, None)
        oracles = (
            JobOracle(earlier.job, of_earlier, witness=there, plain=old),
            JobOracle(self.job, from_start, witness=self.witness, plain=new),
        )
        both = (one.expected(histories, sources, run) for one in oracles)
        found = []
        for history, old, new in zip(histories, *both, strict=True):
            after = self._after(history, old.rows[cut:], new.rows[cut:], run)
            found.append(Expected("batches", [*[[]] * len(new.rows[:cut]), *after]))
        return found

    def _after(self, history: JobHistory, old: Sequence[Any], new: Sequence[Any], run: RunOptions) -> list[list[Row]]:
        with _raising(self.function, history, run):
            returned = self.function(*([[*map(dict, flat(rows))] for rows in side] for side in (old, new)))
            if not isinstance(returned, (list, tuple)) or len(returned) != len(new):
                raise BadInput(
                    f"{location(self.function)} receives the rows of {len(new)} batches, but returned "
                    f"{len(returned) if isinstance(returned, (list, tuple)) else type(returned).__name__}: "
                    "return a list of rows for each batch"
                )
            return [[*rows_of(rows, location(self.function))] for rows in returned]


@checked
def sql(statement: str) -> SqlOracle:
    """Expect the rows of a SQL statement, which DuckDB runs with each input as a table of the input's name.

    A column whose name is a SQL keyword needs quotes, such as `"at"`.

    Raises:
        BadInput: The statement is empty.
    """
    if not statement.strip():
        raise BadInput("the SQL statement is empty: write a SELECT over the inputs, whose names are table names")
    return SqlOracle(statement)


@checked
def as_batch(job: JobOrSink | Script | None = None) -> BatchOracle:
    """Expect the rows that the same job, or another job, returns as a batch query over the same rows.

    Event-time timers never fire in a batch query, so a job with such timers needs another oracle.
    """
    return BatchOracle(job)


@checked
def other_job(job: JobOrSink | Script, *, late: bool = True) -> JobOracle:
    """Expect the output of another job, such as an earlier version or a rewrite of the job.

    Args:
        job: The other job.
        late: Whether histories may contain late rows. Set this to False if the two jobs may drop different late rows.
    """
    return JobOracle(job, takes_late=late)

"""The check of a run in production: the rows that a streaming query has written, against the rows expected of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ....reference.core.errors import BadInput, StreamproofError
from ....reference.spark.watermarks import micro_batches
from ...counterexamples.of_jobs import JobCounterexample
from ...generators.columns.drawing import closed
from ...generators.columns.inputs import Input
from ...generators.columns.model import Expected, JobHistory, Row, microseconds
from ...generators.columns.packing import UnreadableKey
from ...generators.columns.shown import shown_row, typed_row
from ...generators.columns.shrinking import shrink
from ...generators.shrinking import Deadline, one_by_one
from ...laws.expected.comparison import RowDifference, both_flat, columns_of, in_their_form, table_of, unmatched
from ...laws.expected.judging import Compared
from ...laws.expected.oracle import Oracle
from ...laws.expected.oracles import JobOracle, ModelOracle
from ...laws.expected.rules.rule import Rule
from ...laws.variation import Variation
from ...outcomes.equality import TWELVE_DIGITS, comparable
from ...system.arguments import checked, short
from ...witnesses.job.plans import delays_by_input
from ...witnesses.job.running import Job
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.production.checkpoint import read_checkpoint
from ...witnesses.production.inputs import BatchesRead, Reading, read_inputs, sources_by_input
from ...witnesses.production.output import Target, Written, read_output
from ...witnesses.run_options import WATERMARK_POLICY, Mode
from ...witnesses.spark.session import session_for_query
from .arguments import CheckOptions, check_options, oracle_of
from .draws import DAY_US
from .job_check import JobCheck
from .reports import ReplayReport
from .smallest import plainest
from .verdicts import Inconclusive, Violated

AS_RUN_HERE = "the job run here over the same batches"
MOST_ROWS_OF_PART = 10_000
"""A key with more rows isn't looked at closer."""
SHRINKING_S = 60.0
ELSEWHERE = "{}: another version ran, or the sink lost or repeated rows."
_LOG = logging.getLogger("streamproof")


_Placed: TypeAlias = tuple[int | None, Row]
"""A row with the id of its micro-batch; None: it isn't known."""


_Span: TypeAlias = tuple[int, int] | None
"""A first and a last time, in milliseconds since 1970; None: any time."""


class Wrong(NamedTuple):
    """A row that only one side has.

    Attributes:
        batch: The id of its micro-batch; None: it isn't known.
        row: The row.
        is_expected: Whether it is expected and was not written; otherwise it was written and is not expected.
    """

    batch: int | None
    row: Row
    is_expected: bool


@checked
def replay(
    checkpoint: str | Path,
    job: Job | Script,
    *inputs: Input,
    output: Any,
    expect: Any = None,
    reads: Mapping[str, Any] | None = None,
    mode: Mode | None = None,
    static: Mapping[str, Any] | None = None,
    unique: Sequence[str] | None = None,
    settings: Mapping[str, str | int] | None = None,
    seconds: float = 600,
    digits: int | None = TWELVE_DIGITS.digits,
    folder: str | Path | None = None,
) -> ReplayReport:
    """Judge a run in production: compare the rows that a streaming query has written with the rows expected of it.

    The checkpoint says which rows each micro-batch has read and which watermark it went by. These rows are read again,
    and the oracle says what they give. Nothing is written to the checkpoint, the sources or the sink. The query may be
    running: batches that aren't committed are left out.

    Args:
        checkpoint: The folder of the query's checkpoint, on any file system that the Spark session knows.
        job: The job that ran, as the job of `check_job`.
        inputs: As `check_job`; one for each source of the query.
        output: What it wrote: the folder of Spark's file sink or of a Delta table; or a function that takes the session
            and returns the table as a DataFrame.
        expect: As `check_job`. None: what the job emits here over the same batches, which finds a sink that lost or
            repeated rows, and a run of another version.
        reads: How each input is read, by its name: the format, such as "json", or a mapping of the format and the
            reader's options, such as `{"format": "csv", "header": "true"}`. By default the names of the files say it.
        mode: The query's output mode. In other modes than append, the output is the table at the end.
        static: As `check_job`.
        unique: As `check_job`.
        settings: As `check_job`, such as `spark.sql.session.timeZone`.
        seconds: The most time for the job's own run here.
        digits: As `check_job`.
        folder: As `check_job`.

    Returns:
        The report of what was judged.

    Raises:
        Violated: The run has written other rows; the message names the first batch and key, and the smallest part of
            what was read that shows it.
        Inconclusive: No row could be judged.
        BadInput: The checkpoint, a source or the output can't be read, or is of another job.
        StreamproofError: A query failed, or took too long.
    """
    __tracebackhide__ = True
    given = {
        **locals(),
        **{"histories": 1, "seed": 0, "trigger": "available_now", "out_of_order": None, "timeouts": (), "alone": False},
    }
    options = check_options(given)
    if isinstance(options.runner.job, Sink):
        raise BadInput("the job is a Sink, or a script with read=: give it without, and what it wrote as output=")
    if not (isinstance(output, (str, Path)) or callable(output)):
        raise BadInput(f"output is {short(output)}: give a folder, or a function from the session to the table")
    target = output if callable(output) else str(output)
    oracle = JobOracle(called=AS_RUN_HERE) if expect is None else oracle_of(expect, job)
    return _Replay(options, oracle, str(checkpoint), target, _readings(reads or {}, options)).report()


def _readings(reads: Mapping[str, Any], options: CheckOptions) -> dict[str, Reading]:
    """Return how each input is read.

    Raises:
        BadInput: An input isn't known, or what is said of it is no format.
    """
    names = [given.name for given in options.inputs]
    found = {}
    for name, said in reads.items():
        if name not in names:
            raise BadInput(f"reads has {short(name)}, and the inputs are {', '.join(names)}: name one of them")
        as_mapping = {"format": said} if isinstance(said, str) else said
        if not isinstance(as_mapping, Mapping) or not all(isinstance(one, str) for one in as_mapping.values()):
            raise BadInput(
                f'reads has {short(said)} for {name!r}: give a format, such as "json", or a mapping of it and options'
            )
        others = {option: value for option, value in as_mapping.items() if option != "format"}
        found[name] = Reading(as_mapping.get("format"), others)
    return found


@dataclass
class _Run:
    """The run: its batches as a history, and the rows that it wrote.

    Attributes:
        history: The rows of all batches; their own event times move the watermark.
        numbers: The id of each batch; None: it was before the first whose log is kept.
        watermarks_ms: The watermark that each batch went by.
        written: The rows of its output.
        unreadable: The number of records whose payload is no row.
    """

    history: JobHistory
    numbers: Sequence[int | None]
    watermarks_ms: Sequence[int]
    written: Written
    unreadable: int


class _Uncertain:
    """The times, by key, at which it isn't certain what is expected, because rows may count or be late.

    Args:
        key_columns: Returns the columns of the key in a row of the output; none if it doesn't have them.
    """

    def __init__(self, key_columns: Callable[[Row], Sequence[str]]) -> None:
        self.key_columns = key_columns
        self.spans: dict[Any, list[_Span]] = {}

    def add(self, row: Row, around_ms: int = 0) -> None:
        """Add the times of a row, and those around them."""
        span = _span(row)
        for key in {self._key(row), comparable([])}:
            self.spans.setdefault(key, []).append(span and (span[0] - around_ms, span[1] + around_ms))

    def has(self, row: Row) -> bool:
        """Whether the times of a row of the output overlap with them; a row without times overlaps with all."""
        return any(_overlap(_span(row), span) for span in self.spans.get(self._key(row), []))

    def _key(self, row: Row) -> Any:
        return comparable([row[column] for column in self.key_columns(row)])


class _Replay:
    """The judging of one run."""

    def __init__(
        self,
        options: CheckOptions,
        oracle: Oracle,
        checkpoint: str,
        output: Target,
        readings: Mapping[str, Reading],
    ) -> None:
        self.options, runner, run = options, options.runner, options.run
        self.check = JobCheck(options, oracle, Variation(run))
        self.judge, self.declared, self.store = self.check.judge, self.check.judge.declared, self.check.store
        self.sources, self.mode = runner.sources, run.mode
        with session_for_query(run.settings, any_provider=True) as spark:
            self.checkpoint = read_checkpoint(spark, checkpoint)
            # A query keeps the policy that it began with, whatever its session says.
            kept = {name: value for name, value in self.checkpoint.settings.items() if name == WATERMARK_POLICY}
            self.options = replace(options, run=replace(run, settings={**run.settings, **kept}))
            folders = sources_by_input(self.checkpoint, self.declared.plan, self.sources)
            _LOG.info("%s: reading what %d batches have read", self.judge.name, len(self.checkpoint.batches))
            read = read_inputs(spark, self.checkpoint, folders, self.sources, readings)
            written = read_output(spark, output, self.checkpoint, self.declared.schema)
        self.run = self._run(read, written)
        self.exact = (
            isinstance(self.judge.oracle, (Rule, JobOracle)) and self.checkpoint.is_whole and self.mode == "append"
        )
        self.by_batch = self.exact and written.has_batches
        # Others say what the table is at the end, whatever the batches were.
        self.by_batches = isinstance(self.judge.oracle, (Rule, JobOracle, ModelOracle))
        self.not_checked: list[str] = []

    def _run(self, read: BatchesRead, written: Written) -> _Run:
        """Return the run, whose watermarks are those of its checkpoint, or follow from its rows where that is cut."""
        history = JobHistory((*read.batches, ()), name="the run")
        known = {batch.number: batch.watermark_ms for batch in self.checkpoint.batches}
        plan = self.declared.plan
        delays_us = delays_by_input(plan, self.sources) or dict.fromkeys(
            (source.name for source in self.sources), min(plan.delays_us, default=0)
        )
        largest = [{source.name: source.latest_us(batch) for source in self.sources} for batch in history.batches]
        policy = self.options.run.watermark_policy
        reckoned = micro_batches(largest, delays_us, policy=policy, trigger="available_now", follows=False)
        watermarks = [
            each.eviction_ms if number is None else known[number]
            for number, each in zip(read.numbers, reckoned, strict=False)
        ]
        return _Run(history, read.numbers, watermarks, written, read.unreadable)

    def report(self) -> ReplayReport:
        """Compare, and return the report."""
        __tracebackhide__ = True
        run, last = self.run, self.checkpoint.batches[-1]
        if not any(run.history.batches):
            raise Inconclusive(f"inconclusive: the run of {self.judge.name} has read no row", job=self.judge.name)
        rows = run.written.rows
        _LOG.info("%s: judging %d rows", self.judge.name, len(rows))
        (expected,) = self._expected([self._given(run.history)])
        expected, (emitted,) = self._in_form(expected, [rows])
        differing = sorted(self._wrong(expected, emitted), key=self._order)
        uncertain = self._uncertain(expected)
        found = [one for one in differing if not uncertain.has(one.row)]
        if found:
            raise self._violated(found, len(rows))
        if len(differing) > len(found):
            self.not_checked.append(
                f"{len(differing):,} rows that differ, but depend on rows at or behind the watermark, of which "
                f"{self.judge.oracle.name} can't tell whether they count: expect a rule, such as windows(…)"
            )
        if len(rows) == sum(not one.is_expected for one in differing):
            why = f"can't be judged: {self.not_checked[-1]}" if rows else "isn't there, and none is due"
            raise Inconclusive(
                f"inconclusive: what the run of {self.judge.name} has written {why}", job=self.judge.name
            )
        first = self.checkpoint.batches[0].number if self.checkpoint.is_whole else 0
        return ReplayReport(
            job=self.judge.name,
            oracle=self.judge.oracle.name,
            batches=(first, last.number),
            read=len(run.history.arrivals),
            written=len(rows),
            by_batch=self.by_batch,
            not_checked=[*self.not_checked, *self._not_checked()],
            equality=self.options.equality,
        )

    def _order(self, one: Wrong) -> tuple[bool, int, str]:
        """Return the place of a row among all that differ: by batch, then by key, whatever order they were read in."""
        key = [one.row[column] for column in self._key_columns(one.row)]
        return one.batch is None, one.batch or 0, repr(comparable(key))

    def _not_checked(self) -> list[str]:
        left = []
        if self.run.unreadable:
            count = self.run.unreadable
            left.append(f"{count:,} record{'s' * (count != 1)} whose payload is no row, which the job is to skip")
        if not self.by_batch and self.mode == "append":
            why = (
                "the sink's log doesn't say the batch of each row" if self.exact else "the rows are compared at the end"
            )
            left.append(f"in which batch each row was written: {why}")
        return left

    def _given(self, history: JobHistory) -> JobHistory:
        """Return a history as the oracle is given it: in one batch, if only the table at the end is compared."""
        return history if self.mode == "append" or self.by_batches else _at_once(history)

    def _expected(self, histories: Sequence[JobHistory]) -> list[Expected]:
        return self.judge.expected(histories, Variation(self.options.run))

    def _in_form(self, expected: Expected, emitted: Sequence[Sequence[Row]]) -> tuple[Expected, list[list[Row]]]:
        """Return the expected rows and the written rows with the same columns.

        Raises:
            BadInput: The output lacks an expected column.
        """
        (in_form,) = in_their_form([expected], [emitted], self.sources)
        wanted, came = both_flat(in_form.rows, emitted)
        needed, present = columns_of(wanted), columns_of(came)
        missing = [column for column in needed if present and column not in present]
        if missing:
            raise BadInput(
                f"the output has the columns {', '.join(present)}, and not {', '.join(missing)}, which "
                f"{self.judge.oracle.name} expects: give output= a function that returns them under their names"
            )
        return replace(in_form, rows=wanted), came

    # The comparison

    def _wrong(self, expected: Expected, written: Sequence[Row]) -> Iterator[Wrong]:
        """Yield the rows that only one side has."""
        columns = sorted(columns_of(expected.rows))
        if self.by_batch:
            by_number: dict[int | None, list[Row]] = {}
            for row, batch in zip(written, self.run.written.batches, strict=True):
                by_number.setdefault(batch, []).append(row)
            for number, rows in zip(self.run.numbers, expected.rows, strict=False):
                yield from self._of_bags(
                    [(number, row) for row in rows], [(number, r) for r in by_number.get(number, [])], columns
                )
            return
        must, may = self._must_and_may(expected)
        came = [*zip(self.run.written.batches, written, strict=True)]
        if self.mode == "append":
            yield from (one for one in self._of_bags(may, came, columns) if not one.is_expected)
            yield from (one for one in self._of_bags(must, came, columns) if one.is_expected)
        else:
            yield from self._of_bags(must, came, columns)

    def _of_bags(self, expected: Sequence[_Placed], came: Sequence[_Placed], columns: Sequence[str]) -> Iterator[Wrong]:
        wanted, emitted = ([row for _, row in side] for side in (expected, came))
        missing, surplus = unmatched(wanted, emitted, columns, self.options.equality)
        yield from (Wrong(*expected[at], True) for at in missing)
        yield from (Wrong(*came[at], False) for at in surplus)

    def _must_and_may(self, expected: Expected) -> tuple[list[_Placed], list[_Placed]]:
        """Return the rows that must have been written by now, and those that may have been, each with its batch.

        A row that the last committed batch has closed comes with the batch after it, which may not have run.
        """
        rows, numbers = expected.rows, [*self.run.numbers, None]
        if self.mode != "append":
            if expected.comparing == "batches":
                rows = table_of(rows[:-1], self.mode, self.judge.unique_columns)
            return _at_end(rows[-1]), []
        if expected.comparing == "batches":
            by_batch = [
                (number, row) for number, of_batch in zip(numbers[:-1], rows[:-1], strict=True) for row in of_batch
            ]
            if isinstance(self.judge.oracle, ModelOracle):
                # Its clock closes in a batch what Spark closes in the next.
                last = len(rows) - 2
                return [(numbers[at + 1], row) for at in range(last) for row in rows[at]], by_batch
            return by_batch, by_batch
        if expected.comparing == "cuts":
            return _at_end(rows[-3] if len(rows) > 2 else []), _at_end(rows[-2])
        may, must = _at_end(rows[-1]), _at_end(filter(self._is_closed, rows[-1]))
        if len(may) > len(must):
            self.not_checked.append(
                f"{len(may) - len(must):,} expected rows whose times the watermark may not have passed: if they are "
                "missing, nothing is said"
            )
        return must, may

    def _is_closed(self, row: Row) -> bool:
        """Whether the watermark has passed a row's times and the job's durations, so that it must have been written."""
        plan = self.declared.plan
        if not plan.delays_us:
            return True
        times_us = [microseconds(value) for value in _values(row) if isinstance(value, datetime)]
        return bool(times_us) and max(times_us) + sum(plan.durations_us) < self.run.watermarks_ms[-1] * 1_000

    # Late rows

    def _uncertain(self, expected: Expected) -> _Uncertain:
        """Return the times at which the oracle can't tell what is expected, for it can't tell which rows are late."""
        plan, run = self.declared.plan, self.run
        near = _Uncertain(self._key_columns)
        if self.exact or not plan.delays_us:
            return near
        late = [*self._maybe_late()]
        if self.by_batches:
            by_name = {source.name: source for source in self.sources}
            for batch, places in zip(run.history.batches, late, strict=False):
                for name, row in (batch[at] for at in places):
                    columns = (*by_name[name].key, by_name[name].time)
                    near.add({column: row[column] for column in columns}, sum(plan.durations_us) // 1_000)
        elif any(late):
            certain = [
                [arrival for at, arrival in enumerate(batch) if at not in places]
                for batch, places in zip(run.history.batches, late, strict=False)
            ]
            (without,) = self._expected([self._given(run.history.with_batches([*certain, ()]))])
            without, _ = self._in_form(without, [run.written.rows])
            both = [*expected.rows[-1]], [*without.rows[-1]]
            for rows, others in (both, both[::-1]):
                for at in unmatched(rows, others, sorted(columns_of(both)), self.options.equality)[0]:
                    near.add(rows[at])
        return near

    def _maybe_late(self) -> Iterator[set[int]]:
        """Yield the places, in each batch, of the rows of which the oracle can't tell whether they count as late.

        An oracle that goes by batches is in doubt only where a batch without data may have run before: the same rows
        are late by that batch.
        """
        by_name, before_ms = {source.name: source for source in self.sources}, -1
        for watermark_ms, batch in zip(self.run.watermarks_ms, self.run.history.batches, strict=False):
            least_ms = before_ms if self.by_batches else -1
            yield {
                at
                for at, (name, row) in enumerate(batch)
                if (time_us := by_name[name].time_us_of(row)) is not None
                and least_ms < time_us // 1_000 <= watermark_ms
            }
            before_ms = watermark_ms

    # The violation

    def _violated(self, found: Sequence[Wrong], judged: int) -> Violated:
        """Return the failure on the first wrong batch and key, with the smallest part of the run that shows it."""
        judge, first = self.judge, found[0]
        columns = self._key_columns(first.row)
        key = comparable([first.row[name] for name in columns])
        alike = [one for one in found if comparable([one.row.get(name) for name in columns]) == key] if columns else []
        # If rows aren't compared by batch, the batch of an expected row only says about when the row is due.
        alike = [one for one in alike if one.batch == first.batch or not self.by_batch] or [first]
        missing, surplus = _pair(alike)
        where = "at the end" if first.batch is None else f"in batch {first.batch:,}"
        where += " or a batch beside it" if self.run.written.about and first.batch is not None else ""
        came, wanted = (shown_row(rows[0]) if rows else "no such row" for rows in (surplus, missing))
        if came == wanted:
            came, wanted = typed_row(surplus[0]), typed_row(missing[0])
        counterexample = JobCounterexample(
            job=f"the run of {judge.name}",
            oracle=judge.oracle.name,
            history=self._rows_of(key if columns else None, first.row),
            sources=self.sources,
            expected=Expected("end", [missing]),
            emitted=[surplus],
            difference=RowDifference(None, missing, surplus),
            run=replace(self.options.run, mode="append"),
            unique=None,
            seed=0,
            delays_us=delays_by_input(self.declared.plan, self.sources),
            equality=self.options.equality,
            says=f"violated: {where} the run of {judge.name} wrote {came}, and {judge.oracle.name} expects {wanted}.",
        )
        counterexample, here = self._closer(counterexample)
        keys = {comparable([one.row.get(name) for name in columns]) for one in found} if columns else set()
        numbers = sorted({one.batch for one in found if one.batch is not None})
        differ = f"{len(found):,} row{'s' * (len(found) > 1)} differ{'s' * (len(found) == 1)}"
        differ += f", of {len(keys):,} keys" * (len(keys) > 1)
        differ += f", in batches {numbers[0]:,} to {numbers[-1]:,}" if len(numbers) > 1 else ""
        if self.checkpoint.running is not None and not self.run.written.has_batches:
            here += f" Batch {self.checkpoint.running:,} is running, and its rows may be in the output: stop the query."
        message, path = self.store.violation(counterexample, f"{differ}; {judged:,} rows were judged. {here}")
        return Violated(message, counterexample, path=path)

    def _key_columns(self, row: Row) -> Sequence[str]:
        keys = self.sources[0].key
        same = all(source.key == keys for source in self.sources)
        return keys if same and {*keys} <= {*row} else ()

    def _closer(self, found: JobCounterexample) -> tuple[JobCounterexample, str]:
        """Return the counterexample with fewer rows of the run, and a sentence on what the job does with them here.

        If the job is wrong over the rows here, too, they are the fewest on which it is; otherwise the fewest for which
        the row is still expected.
        """
        part, judge = found.history, self.judge
        count = len(part.arrivals)
        if isinstance(judge.oracle, JobOracle) and judge.oracle.job is None:
            return found, ELSEWHERE.format("The job was run here over the same batches")
        if count > MOST_ROWS_OF_PART:
            return replace(found, history=JobHistory(((),))), (
                f"The run has read {count:,} rows that may have made it, too many to look at them closer: name the "
                "key's column in the Input, and keep it in the output."
            )
        assert found.difference is not None
        missing, surplus = found.difference.missing, found.difference.surplus
        same, plain, deadline = _place([*missing, *surplus][0]), Variation(self.options.run), Deadline(SHRINKING_S)
        if self.check.draws.closes:
            part = closed(part, DAY_US + 2 * sum(self.check.draws.distances_us))

        def is_same(compared: Compared) -> bool:
            one = compared.difference
            return one is not None and any(_place(row) == same for row in [*one.missing, *one.surplus])

        def alone(candidate: JobHistory) -> bool:
            return is_same(judge.compare_alone(candidate, plain))

        def fails(candidates: Sequence[JobHistory]) -> Sequence[bool]:
            try:
                return [*map(is_same, judge.compare(candidates, plain))]
            except UnreadableKey:
                return one_by_one(alone, deadline)(candidates)

        _LOG.info("%s: running it here over %d rows of the run", judge.name, count)
        try:
            if alone(part):
                _LOG.info("%s: shrinking them, %.0f s at most", judge.name, SHRINKING_S)
                smallest = shrink(part, self.options.inputs, fails, deadline=deadline)
                history, compared = plainest(judge, self.check.draws, smallest, plain, deadline=deadline)
                return replace(
                    found,
                    job=judge.name,
                    history=history,
                    expected=compared.expected,
                    emitted=compared.emitted,
                    difference=compared.difference,
                    run=self.options.run,
                ), f"The job is wrong here, too: of the {count:,} rows of its key, {len(history.arrivals)} show it."
        except StreamproofError as error:
            return found, f"The job can't be run here over the rows of its key: {error.message}"
        if missing and self._expects([found.history], missing)[0]:
            fewest = shrink(
                found.history, self.options.inputs, lambda some: self._expects(some, missing), deadline=deadline
            )
            found = replace(found, history=fewest)
        return found, ELSEWHERE.format("The job is right here over the rows of its key")

    def _rows_of(self, key: Any, wrong: Row) -> JobHistory:
        """Return the rows of a key, in the batches with such rows, the two before each of them, and the last.

        Of many rows those are taken whose times are near the times of the wrong row.
        """
        by_name = {source.name: source for source in self.sources}
        batches = [
            [one for one in batch if key is None or comparable([*by_name[one.input].key_of(one.row)]) == key]
            for batch in self.run.history.batches
        ]
        if sum(map(len, batches)) > MOST_ROWS_OF_PART:
            around = _Uncertain(lambda row: ())
            around.add(wrong, sum(self.declared.plan.durations_us) // 1_000)
            batches = [
                [one for one in batch if around.has({"": one.row[by_name[one.input].time]})] for batch in batches
            ]
        clock, last = self._clock(), len(batches) - 1
        kept = {near for at, batch in enumerate(batches) if batch for near in (at - 2, at - 1, at) if near >= 0}
        shown = sorted({*kept, max(last - 1, 0), last})
        part = JobHistory((), tuple(clock[at] for at in shown), name="a part of the run")
        return part.with_batches([batches[at] for at in shown])

    def _clock(self) -> list[int]:
        """Return the largest event time by the end of each batch of the run, in microseconds since 1970."""
        reached, clock = 0, []
        for batch in self.run.history.batches:
            times = [time_us for source in self.sources if (time_us := source.latest_us(batch)) is not None]
            reached = max([reached, *times])
            clock.append(reached)
        return clock

    def _expects(self, histories: Sequence[JobHistory], missing: Sequence[Row]) -> list[bool]:
        """Return for each history whether the oracle expects the row."""
        try:
            return [self._has(expected, missing) for expected in self._expected(histories)]
        except BadInput:  # of a candidate that a function of the user's can't take
            return [False] * len(histories)

    def _has(self, expected: Expected, missing: Sequence[Row]) -> bool:
        in_form, _ = self._in_form(expected, [missing])
        rows = [row for rows in in_form.rows for row in rows]
        return any(not any(unmatched([row], missing, [*missing[0]], self.options.equality)) for row in rows)


def _at_end(rows: Iterable[Row]) -> list[_Placed]:
    return [(None, row) for row in rows]


def _pair(wrong: Sequence[Wrong]) -> tuple[list[Row], list[Row]]:
    """Return an expected row that is missing, and the written row that stands in its place; one of them may be none."""
    missing, surplus = ([one.row for one in wrong if one.is_expected is side] for side in (True, False))
    if not (missing and surplus):
        return missing[:1], surplus[:1]

    for row in missing:
        alike = [one for one in surplus if _place({name: one.get(name) for name in row}) == _place(row)]
        if alike:
            return [row], alike[:1]
    return missing[:1], []


def _place(row: Row) -> Any:
    """Return the times of a row, by which it is told from the other rows of its key."""
    return comparable({name: value for name, value in row.items() if isinstance(value, datetime)})


def _span(row: Row) -> _Span:
    """Return the first and the last time of a row, in milliseconds since 1970; None if it has none."""
    times = [microseconds(value) // 1_000 for value in _values(row) if isinstance(value, datetime)]
    return (min(times), max(times)) if times else None


def _overlap(one: _Span, other: _Span) -> bool:
    """Whether two spans overlap, as windows do; one that ends where the other begins doesn't, unless one is a point."""
    if one is None or other is None:
        return True
    first, last = max(one[0], other[0]), min(one[1], other[1])
    return first < last or (first == last and (one[0] == one[1] or other[0] == other[1]))


def _at_once(history: JobHistory) -> JobHistory:
    """Return a history with all rows in one batch."""
    return replace(history, batches=(tuple(history.arrivals),))


def _values(row: Row) -> Iterator[Any]:
    for value in row.values():
        yield from _values(value) if isinstance(value, Mapping) else [value]

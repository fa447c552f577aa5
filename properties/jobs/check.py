"""The check of a job of the user's own: any streaming query, over drawn histories of its columns, against any oracle.

It says *conforms* by returning a report. It fails as *violated* on the smallest history found on which the job differs,
and as *inconclusive* where it differs on none, but the histories show nothing.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ...reference.core.errors import BadInput, StreamproofError
from ...reference.spark.durations import Duration, microseconds_of
from ..generators.shrinking import Deadline, one_by_one
from ..outcomes.equality import TWELVE_DIGITS, Equality, comparable
from ..system.arguments import checked, folder_at
from ..witnesses.run_options import Mode, RunOptions, Trigger
from ..witnesses.spark.query import QueryFailed
from ..witnesses.spark.session import time_zone_of
from .arguments import check_arguments, oracle_of, runner_of, settings_of
from .comparison import RowDifference, check_columns, difference, in_words, table_of, with_columns
from .counterexamples import JobCounterexample, JobStore, saved_histories
from .failing import failing_history
from .histories.drawing import closed, covered, draw_histories, duration, goals
from .histories.inputs import Input, ResolvedInput
from .histories.key_spaces import ALONE, key_space, why_alone
from .histories.packing import UnreadableKey, pack, tables_alone, unpack
from .histories.shrinking import shrink, size
from .histories.standing_alone import standing_alone
from .model import Comparing, Expected, JobHistory, Oracle, Row, Source, Way
from .oracles import BatchOracle, JobOracle, SqlOracle
from .queries.rows import flat
from .queries.running import RESTORED, Job, Output, Runner, Sink, name_of
from .rendering.notebook import Shown
from .rendering.values import shown_row
from .rules.rule import Rule
from .variations import BATCHES, Variation, saved_variation
from .verdicts import Inconclusive, Violated

PLAINER = 3
"""Ways to write a counterexample without its clock that are tried, each in a query of its own."""
PARTS = 4
"""Parts of a variation that are tried alone, each in a query of its own."""
ALONE_AGAIN = 3
"""Histories that run alone and in a shared query, to see whether the others in it play a part."""
LEAST = 10
"""Fewer histories are inconclusive."""
EMITTING = 0.05
"""The least share of histories on which a row is expected."""
SHRINKING = 2
"""Shrinking takes at most this many times as long as the check took until it found the violation,"""
SHRINKING_S = 30
"""and at least so many seconds, if `seconds` allows as many."""
FORGETS = "DeduplicateWithinWatermark"
"""An operator that emits a row once more when the watermark has passed it: when that is, depends on the batches."""
DAY_US = 86_400_000_000
Emitted = list[list[Row]]
"""The rows of each batch; of a sink one list, of the end."""
_LOG = logging.getLogger("streamproof")


@dataclass(frozen=True)
class JobReport(Shown):
    """What a check that found no difference has shown.

    Attributes:
        job: The job's name.
        oracle: What it was compared with.
        histories: On how many histories.
        expecting: On how many of them rows were expected.
        comparing: What was compared.
        alone: Why each history ran in a query of its own; empty where they shared one.
        not_checked: What was not checked, and how it would be.
        equality: When two values counted as equal.
    """

    job: str
    oracle: str
    histories: int
    expecting: int
    comparing: Comparing
    alone: str = ""
    not_checked: Sequence[str] = ()
    equality: Equality = TWELVE_DIGITS

    def __str__(self) -> str:
        lines = [
            f"{self.job} conforms to {self.oracle} on {self.histories} histories; rows were expected on "
            f"{self.expecting}. Compared: {in_words(self.comparing, self.equality)}."
        ]
        lines += [f"Each history ran in a query of its own: {self.alone}."] if self.alone else []
        lines += [f"Not checked: {one}." for one in self.not_checked]
        return "\n".join(lines)


@checked
def check_job(
    job: Job,
    *inputs: Input,
    expect: Any,
    histories: int = 300,
    seed: int = 0,
    mode: Mode = "append",
    trigger: Trigger = "default",
    static: Mapping[str, Any] | None = None,
    out_of_order: Duration | None = None,
    unique: Sequence[str] | None = None,
    alone: bool = False,
    settings: Mapping[str, str | int] | None = None,
    seconds: float = 120,
    digits: int | None = TWELVE_DIGITS.digits,
    examples: Sequence[str | Path] = (),
    folder: str | Path | None = None,
) -> JobReport:
    """Check a streaming job over drawn histories against what is expected of it.

    Args:
        job: A function from streaming DataFrames, one for each input, then one for each static table, to the streaming
            DataFrame of its result; or a `Sink`, which writes the result itself.
        inputs: The columns of each input.
        expect: What is expected: a rule of Spark's (`session_windows(…)`), a Python function or class, `sql(…)`,
            `as_batch()` or `other_job(…)`.
        histories: How many histories are drawn.
        seed: What they are drawn from.
        mode: The job's output mode.
        trigger: `default`: a batch without data follows each batch, where the watermark moved; `available_now`: the
            last alone, and so rows are late one batch later.
        static: Tables that don't change, by name: rows (dicts), or a pandas or arrow table.
        out_of_order: By how much rows may be out of order, such as "10 minutes", where what is expected knows nothing
            of late rows; by default as much as the job's own watermarks allow.
        unique: The columns that tell the rows of an updated table apart; by default the key's and the window's.
        alone: Whether each history runs in a query of its own, as many as the time allows.
        settings: Further settings of the Spark session, such as {"spark.sql.session.timeZone": "Europe/Berlin"}.
        seconds: How long a query may take, how long all queries of histories that run alone, and how long shrinking.
        digits: To how many digits floating-point numbers are compared; None: exactly, as all others are.
        examples: Histories that are run first: texts or files, as a counterexample has them.
        folder: Where counterexamples are saved, and replayed first; without it none is saved.

    Returns:
        What was shown: how strong the comparison was, and what was not checked.

    Raises:
        Violated: The job differs; the message has the smallest history, what was expected and what came.
        Inconclusive: It differs on no history, but they leave coverage goals unmet; the message names them.
        BadInput: The job, an input or what is expected can't be used; the message names it and the remedy.
        StreamproofError: The query failed or took too long, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    check_arguments(histories, seed, seconds, out_of_order)
    resolved, runner = runner_of(job, inputs, seed, static)
    run = RunOptions(trigger=trigger, mode=mode, settings=settings_of(settings), seconds=seconds)
    checking = JobCheck(
        runner,
        resolved,
        oracle_of(expect, job),
        Variation(run),
        seed,
        unique,
        out_of_order,
        None if folder is None else folder_at(folder),
        alone,
        equality=Equality(digits),
    )
    checking.replay(examples)
    return checking.check(histories)


class _Alone(NamedTuple):
    """A history in a query of its own: what is expected, what came, and where they differ first."""

    expected: Expected
    emitted: Emitted
    difference: RowDifference | None


@dataclass
class JobCheck:
    """One check of a job.

    Attributes:
        runner: Runs the job.
        inputs: Its inputs.
        oracle: Says what is expected.
        variation: How its queries are run.
        seed: What histories are drawn from.
        unique: The columns that tell the rows of an updated table apart, if they are given.
        out_of_order: By how much rows may be out of order, if it is given.
        folder: Where counterexamples are saved, if they are.
        alone: Whether each history runs in a query of its own.
        why: Why they do.
        late: Whether histories may have late rows; None: as the oracle takes them.
        again: Whether a history that agrees in a shared query is run alone, too.
        equality: When two values count as equal.
    """

    runner: Runner
    inputs: Sequence[ResolvedInput]
    oracle: Oracle | BatchOracle | JobOracle
    variation: Variation
    seed: int
    unique: Sequence[str] | None = None
    out_of_order: Duration | None = None
    folder: Path | None = None
    alone: bool = False
    why: str = ""
    late: bool | None = None
    again: bool = True
    equality: Equality = TWELVE_DIGITS
    columns: Sequence[str] = ()
    extra: Sequence[str] = ()
    left_out: Sequence[str] = ()
    comparing: Comparing = "end"
    said: Sequence[Expected] = ()

    def __post_init__(self) -> None:
        declared = self.runner.declare(self.run)
        self.names, self.columns, self.plan = declared.names, declared.columns, declared.plan
        self.grouping, watermarks = declared.grouping, declared.watermarks
        self.name = name_of(self.runner.job)
        self.store = JobStore(self.folder, self.sources, job=self.name, oracle=self.oracle_name, seed=self.seed)
        self.covered: set[str] = set()
        self.crashed = self.stateful = False
        self.alike: str | None = None
        self.alone_runs: dict[str, _Alone] = {}
        self.last: Output = Output([])
        self.require_unique()
        if watermarks.without_clock:
            self.alone, self.why = True, "a watermark of the job is on a column within another one"
        elif self.alone:
            self.why = "alone=True"
        elif (reason := why_alone(self.inputs)) is not None:
            self.alone, self.why = True, reason.removesuffix(f"; {ALONE}")
        delays_us = self.plan.delays_us
        self.delay_us = max(delays_us, default=0)
        of_every_input = len(delays_us) == 1 and watermarks.count == len(self.inputs)
        self.only_delay_us = delays_us[0] if of_every_input else None
        derived = self.plan.derived_time
        if derived is not None and not self.closes and not isinstance(self.oracle, (BatchOracle, JobOracle)):
            raise BadInput(
                f"{self.name} has its watermark on {derived!r}, which it makes of other columns, and "
                f"{self.oracle_name} goes by the clock of the input's event time: make it a column of the Input, or "
                "expect sql(…), as_batch(), another job, or a function without a clock"
            )
        if isinstance(self.oracle, BatchOracle):
            self.require_batch(self.oracle)

    def require_batch(self, oracle: BatchOracle) -> None:
        """Refuse a job that is no batch to Spark, before anything is drawn; of no rows it may fail in other ways.

        Raises:
            BadInput: It calls what Spark knows in streams alone.
        """
        forgets = self.plan.has(FORGETS)
        if oracle.job is not None:  # it may be no stream: only a batch shows its plan
            none = {source.name: source.schema.empty_table() for source in self.sources}
            try:
                self.batch_of(oracle).as_batch(none, self.run)
                forgets = False
            except StreamproofError as error:
                forgets = "dropDuplicatesWithinWatermark is not supported" in error.message
        if forgets:
            raise BadInput(
                f"{name_of(self.batch_of(oracle).job)} calls dropDuplicatesWithinWatermark, which Spark refuses in "
                'a batch: expect the rule drop_duplicates([…], delay="…", within_watermark=True), or give as_batch '
                "another job"
            )

    def batch_of(self, oracle: BatchOracle) -> Runner:
        """Return the runner of the job that runs as a batch."""
        return self.runner if oracle.job is None else replace(self.runner, job=oracle.job)

    def require_unique(self) -> None:
        """Refuse columns of `unique` that the job's result doesn't have, which of a Sink aren't known yet.

        Raises:
            BadInput: It doesn't have one.
        """
        known = list(dict.fromkeys([*self.names, *self.columns]))
        unknown = [column for column in self.unique or () if known and column not in known]
        if unknown:
            raise BadInput(
                f"unique has {unknown[0]!r}, and the result of {self.name} has the columns {', '.join(known)}: "
                "name those that tell the rows of the table apart"
            )

    @property
    def run(self) -> RunOptions:
        """How the queries are run."""
        return self.variation.run

    @property
    def sources(self) -> Sequence[Source]:
        """The job's inputs."""
        return self.runner.sources

    @cached_property
    def way(self) -> Way:
        """How the queries are run, as an oracle is told."""
        zone = time_zone_of(self.run.settings)
        return Way(self.run.trigger, self.run.mode, time_zone=zone, empty_batches=True)

    @property
    def closes(self) -> bool:
        """Whether a history's end must close everything."""
        return self.run.mode == "append" if not hasattr(self.oracle, "closes") else self.oracle.closes

    @property
    def takes_late(self) -> bool:
        """Whether histories may have late rows."""
        if self.late is not None:
            return self.late
        if isinstance(self.oracle, JobOracle):
            return self.oracle.late
        return bool(getattr(self.oracle, "takes_late", False))

    @property
    def distances_us(self) -> list[int]:
        """The durations that matter: those of what is expected, and those that the job's plan names."""
        of_oracle = getattr(self.oracle, "distances_us", ())
        return sorted({*of_oracle, *self.plan.durations_us})

    @property
    def out_of_order_us(self) -> int:
        """By how much rows may be out of order without being late, in microseconds."""
        if self.out_of_order is None:
            return self.delay_us
        return microseconds_of("out_of_order", self.out_of_order)

    def draw(self, count: int) -> list[JobHistory]:
        """Draw histories under one clock schedule."""
        drawn = draw_histories(
            self.inputs,
            self.distances_us,
            count,
            self.seed,
            BATCHES,
            late=self.takes_late,
            delay_us=self.out_of_order_us,
        )
        if self.closes:
            beyond = 2 * sum(self.distances_us) + DAY_US
            drawn = [closed(history, beyond) for history in drawn]
        return drawn

    def replay(self, examples: Sequence[str | Path]) -> None:
        """Run the examples, and the counterexamples that are saved, before anything is drawn.

        Raises:
            Violated: The job differs on one.
            BadInput: One can't be read.
        """
        __tracebackhide__ = True
        drawn, failing = self.variation, []
        found = [
            (history, saved_variation(drawn.run, history.variation) if history.variation else drawn)
            for history in saved_histories(examples, self.folder, self.sources)
        ]
        for history, variation in found:
            if variation.law and not drawn.law:
                raise BadInput(
                    f"the history {history.name} violates the invariant {variation.law!r} under a run of its own: give "
                    "it to invariants(…), as examples=, or remove its variation"
                )
        found = [(history, variation) for history, variation in found if variation.law == drawn.law]
        for history, self.variation in found:
            with self.named_failure([history]):
                failing += [(history, self.variation)] * (self.differs_alone(history) is not None)
        if failing:
            smallest, self.variation = min(failing, key=lambda both: size(both[0], self.inputs))
            head = f"{len(failing)} of {len(found)} histories that were found before still differ; no other was drawn."
            raise self.violation(smallest, head)
        self.variation = drawn

    def check(self, count: int) -> JobReport:
        """Draw histories, run them, and compare: each in a query of its own where a shared one can't be told apart.

        Raises:
            Violated: The job differs on one.
            Inconclusive: It differs on none, but they show nothing.
        """
        __tracebackhide__ = True
        try:
            return self.check_drawn(count)
        except UnreadableKey as found:
            self.alone, self.why = True, found.message
        return self.check_drawn(count)

    def check_drawn(self, count: int) -> JobReport:
        """Draw histories, run them, and compare.

        Raises:
            UnreadableKey: They share a query, and a row of its result can't be told to be of one of them.
            Violated: The job differs on one.
            Inconclusive: It differs on none, but they show nothing.
        """
        __tracebackhide__ = True
        started = time.monotonic()
        drawn = self.draw(count)
        expecting = 0
        if not self.alone:
            with self.named_failure(drawn):
                differences = self.differ(drawn)
            said = self.said
            expecting = count_expecting(said)
            failing = {number: bad for number, bad in enumerate(differences) if bad is not None}
            if failing:
                number = min(failing, key=lambda number: size(drawn[number], self.inputs))
                differ = f"{len(failing)} of {count} histories differ"
                kept = self.store.keep(self.as_saved(drawn[number]), self.run)
                deadline = deadline_of_shrinking(started, self.run.seconds)
                smallest = self.shrunk(
                    drawn[number], lambda candidates: [bad is not None for bad in self.differ(candidates)], deadline
                )
                if self.differs_alone(smallest) is not None:
                    raise self.violation(self.plainest(smallest, deadline), f"{differ}.", kept, deadline)
                self.store.forget(kept)
                self.alone = True
                self.why = (
                    f"{differ} in one query, such as one that {self.difference_in_words(failing[number])}; "
                    "alone in its query it agrees. So a history's result depends on the others, though no two share a "
                    "key"
                )
                _LOG.info("%s: %s; running each history alone for %g s", self.name, self.why, self.run.seconds)
            elif (lone := self.lone_difference(drawn, said)) is not None:
                if self.differs_alone(lone) is not None:
                    raise self.violation(lone, "It differs where it runs alone, and not beside others.")
                self.alone, self.why = True, "another result is expected of a history alone than beside others"
        if self.alone:
            drawn, expecting = self.check_alone(drawn, started)
        self.conclude(drawn, expecting)
        return JobReport(
            self.name,
            self.oracle_name,
            len(drawn),
            expecting,
            self.comparing,
            self.why,
            self.not_checked(),
            self.equality,
        )

    def difference_in_words(self, found: RowDifference) -> str:
        """Return a difference in a few words."""
        where = "at the end" if found.batch is None else f"in batch {found.batch}"
        rows = [shown_row(side[0]) if side else "no such row" for side in (found.missing, found.surplus)]
        return f"expects {rows[0]} and emits {rows[1]} {where}"

    @contextlib.contextmanager
    def named_failure(self, histories: Sequence[JobHistory]) -> Iterator[None]:
        """Say of a query over histories that fails within it which of their rows make it fail.

        Raises:
            QueryFailed: It failed.
        """
        try:
            yield
        except QueryFailed as failed:

            def fails(some: Sequence[JobHistory]) -> bool:
                try:
                    self.differ(some) if len(some) > 1 else self.differs_alone(some[0])
                except QueryFailed:
                    return True
                return False

            why, found = f"{self.name}: {failed.message}", failing_history(histories, fails)
            raise QueryFailed(
                f"{why}, whatever arrives" if found is None else self.store.failure(found, self.run, why)
            ) from None

    def lone_difference(self, drawn: Sequence[JobHistory], said: Sequence[Expected]) -> JobHistory | None:
        """Return the history with the most rows, if the job differs on it when it runs alone.

        Args:
            drawn: The histories.
            said: What is expected of each, beside the others.
        """
        if not self.again:
            return None
        fullest = max(range(len(drawn)), key=lambda number: len(drawn[number].arrivals))
        emitted = self.emitted_alone(self.runner, self.variation.vary(drawn[fullest]), self.run)
        return None if self.difference(said[fullest], emitted) is None else drawn[fullest]

    def check_others(self, count: int) -> int:
        """Run the histories with the most rows alone, and compare with their rows in the shared query.

        Returns:
            How many histories were run alone.

        Raises:
            Violated: The job differs on one.
        """
        __tracebackhide__ = True
        drawn = self.draw(count)
        said = self.expected(drawn)
        fullest = sorted(range(count), key=lambda number: -len(drawn[number].arrivals))[:ALONE_AGAIN]
        for history, beside in ((drawn[number], said[number]) for number in fullest):
            emitted = self.emitted_alone(self.runner, history, self.run)
            found = self.difference(beside, emitted)
            if found is not None:
                self.alone_runs[self.asked(history)] = _Alone(beside, emitted, found)
                raise self.violation(history, "It differs where it runs alone, and not beside others.")
        return len(fullest)

    def check_alone(self, drawn: Sequence[JobHistory], started: float) -> tuple[list[JobHistory], int]:
        """Run as many histories alone as the time allows; return them, and on how many rows were expected.

        Raises:
            Violated: The job differs on one.
        """
        __tracebackhide__ = True
        until = time.monotonic() + self.run.seconds
        done: list[JobHistory] = []
        expecting, whole = 0, self.variation
        for history in sorted(drawn, key=lambda one: -len(one.arrivals)):
            if done and time.monotonic() > until:
                break
            self.variation = whole if whole.share is None else whole.share(len(done))
            with self.named_failure([history]):
                differs = self.differs_alone(history) is not None
            if differs:
                kept = self.store.keep(self.as_saved(history), self.run)
                deadline = deadline_of_shrinking(started, self.run.seconds)
                smallest = self.shrunk(
                    history, one_by_one(lambda each: self.differs_alone(each) is not None, deadline), deadline
                )
                head = f"1 of {len(done) + 1} histories that ran alone differs."
                raise self.violation(self.plainest(smallest, deadline), head, kept, deadline)
            expecting += count_expecting(self.said)
            done.append(history)
        self.variation = whole
        return done, expecting

    def shrunk(
        self, history: JobHistory, fails: Callable[[Sequence[JobHistory]], list[bool]], deadline: Deadline
    ) -> JobHistory:
        """Return the smallest history found in time that fails, which has no late rows where none may be.

        Args:
            history: The history.
            fails: Returns which of a round's candidates fail.
            deadline: When shrinking ends.
        """
        rows, allowed_s = len(history.arrivals), deadline.seconds
        _LOG.info("%s: shrinking a history of %d rows, %.0f s at most", self.name, rows, allowed_s)

        def logged(candidates: Sequence[JobHistory]) -> list[bool]:
            _LOG.info("%s: trying %d smaller histories", self.name, len(candidates))
            return fails(candidates)

        self.narrow(history, deadline)
        delay_us = None if self.takes_late else self.out_of_order_us
        return shrink(history, self.inputs, logged, delay_us=delay_us, deadline=deadline)

    def narrow(self, history: JobHistory, deadline: Deadline) -> None:
        """Run a history under parts of its variation, and parts of the first under which the job differs."""
        whole = self.variation
        for part in whole.parts(self.last)[:PARTS] if whole.parts is not None else ():
            if deadline.is_over():
                break
            self.variation = part
            if self.differs_alone(history) is not None:
                return self.narrow(history, deadline)
        self.variation = whole

    def plainest(self, history: JobHistory, deadline: Deadline) -> JobHistory:
        """Return the history as one would write it by hand, without its clock, where it fails so, too."""
        if self.closes:  # only its clock says that everything is closed
            return history
        found = self.differs_alone(history)
        first = None if found is None else found.batch
        for plain in standing_alone(history, self.inputs, first, self.run.trigger)[:PLAINER]:
            if deadline.is_over():
                break
            if self.differs_alone(plain) is not None:
                return plain
        return history

    def conclude(self, drawn: Sequence[JobHistory], expecting: int) -> None:
        """Say whether the histories show something.

        Raises:
            Inconclusive: They don't.
        """
        __tracebackhide__ = True
        distances = self.distances_us
        wanted = goals(self.inputs, distances, late=self.takes_late and self.delay_us > 0)
        met = covered(drawn, self.sources, distances, self.delay_us)
        missing = [goal for goal in wanted if goal not in met]
        if len(drawn) < LEAST:
            missing.insert(0, f"{LEAST} histories at the least")
        if expecting < EMITTING * len(drawn):
            missing.insert(0, f"rows that are expected, on one in twenty histories (they are on {expecting})")
        wanted_delays, delays = {*getattr(self.oracle, "delays_us", {}).values()}, {*self.plan.delays_us}
        if self.plan.operators and wanted_delays - {0} != delays - {0} and isinstance(self.oracle, Rule):
            # All inputs follow one clock, under which the largest of several delays is the only one that matters.
            named = [" and ".join(map(duration, sorted(each))) or "nothing" for each in (wanted_delays, delays)]
            missing.insert(0, f"watermarks that are delayed by {named[0]}, as expected (the job's are by {named[1]})")
        if self.crashed or not isinstance(self.runner.job, Sink):
            unmet = [goal for goal in self.variation.goals if goal not in self.covered]
            missing = [*(goal for goal in unmet if self.stateful or goal != RESTORED), *missing]
        if missing:
            more = f"histories={4 * len(drawn)}" if not self.alone else f"seconds={4 * self.run.seconds:g}"
            raise Inconclusive(
                f"inconclusive: {self.name} agrees with {self.oracle_name} on all {len(drawn)} histories, but that "
                f"shows nothing, for they leave unmet: {'; '.join(missing[:5])}"
                f"{f'; and {len(missing) - 5} more' * (len(missing) > 5)}. Give more, such as {more}, or another seed "
                f"than {self.seed}.{f' Each history ran in a query of its own: {self.why}.' * bool(self.why)}",
                job=self.name,
            )

    def not_checked(self) -> list[str]:
        """Say what was not checked."""
        found = []
        if not self.takes_late:
            found.append("what becomes of late rows: what is expected knows none; a rule of Spark's or a class does")
            if self.out_of_order is None and self.delay_us:
                found.append('whether the watermark\'s delay is long enough: out_of_order="…" says what is to be taken')
            if self.out_of_order is None and isinstance(self.runner.job, Sink):
                found.append('rows that come batches later than others: out_of_order="…" says by how much a Sink takes')
        if self.extra:
            found.append(f"the columns {', '.join(self.extra)}, of which nothing is expected")
        if self.left_out:
            found.append(f"the columns {', '.join(self.left_out)}, which are expected and the result doesn't have")
        return found

    @property
    def oracle_name(self) -> str:
        """What reports call what is expected."""
        if isinstance(self.oracle, BatchOracle):
            return "the same job as a batch" if self.oracle.job is None else f"{name_of(self.oracle.job)} as a batch"
        if isinstance(self.oracle, JobOracle):
            return self.oracle.called or name_of(self.oracle.job)
        return self.oracle.name

    def as_saved(self, history: JobHistory) -> JobHistory:
        """Return a history with the variation under which it is replayed."""
        return replace(history, variation=self.variation.saved)

    def violation(
        self, history: JobHistory, head: str, unshrunk: Path | None = None, deadline: Deadline | None = None
    ) -> Violated:
        """Return the failure on a history, which is saved.

        Args:
            history: The history.
            head: On how many histories the job differs.
            unshrunk: The folder of the history that it was shrunk from, which is forgotten.
            deadline: When shrinking had to end, if it was shrunk.
        """
        found = self.run_alone(history)
        counterexample = JobCounterexample(
            job=self.name,
            oracle=self.oracle_name,
            history=self.as_saved(history),
            sources=self.sources,
            expected=found.expected,
            emitted=found.emitted,
            difference=found.difference,
            run=replace(self.run, mode="complete") if isinstance(self.runner.job, Sink) else self.run,
            unique=self.unique_columns,
            seed=self.seed if history.seed is None else history.seed,
            delay_us=self.only_delay_us,
            equality=self.equality,
            runs=(self.variation.when, self.variation.otherwise) if self.variation.when else None,
        )
        if deadline is not None and deadline.has_stopped:
            head = f"{head} Shrinking stopped by its limit of time: a smaller history may differ, too."
        message, path = self.store.violation(counterexample, head, unshrunk)
        return Violated(message, counterexample, path=path)

    def differ(self, histories: Sequence[JobHistory]) -> list[RowDifference | None]:
        """Return for each of histories that share a query where the job differs."""
        if not histories:
            return []
        return self.differences(histories, self.emitted(self.runner, [*map(self.variation.vary, histories)], self.run))

    def differs_alone(self, history: JobHistory) -> RowDifference | None:
        """Return where the job differs on a history that runs in a query of its own."""
        return self.run_alone(history).difference

    def asked(self, history: JobHistory) -> str:
        """Return a text of a history and of how its query is run."""
        return repr((history.batches, history.clock, self.variation.saved))

    def run_alone(self, history: JobHistory) -> _Alone:
        """Run a history in a query of its own, unless that was done before."""
        asked = self.asked(history)
        if asked not in self.alone_runs:
            emitted = self.emitted_alone(self.runner, self.variation.vary(history), self.run)
            (found,) = self.differences([history], [emitted])
            self.alone_runs[asked] = _Alone(self.said[0], emitted, found)
        return self.alone_runs[asked]

    def differences(self, histories: Sequence[JobHistory], emitted: Sequence[Emitted]) -> list[RowDifference | None]:
        """Return for each history where what was emitted differs from what is expected."""
        rows = flat([row for one in emitted for of_batch in one for row in of_batch])
        self.columns = self.columns or list(dict.fromkeys(column for row in rows for column in row))
        expected = self.said = self.expected(histories)
        if self.alike is not None and any(of.comparing != "batches" for of in expected):
            raise BadInput(self.alike)
        if expected:
            self.comparing = "end" if isinstance(self.runner.job, Sink) else expected[0].comparing
        if self.columns:
            self.extra = check_columns(expected, self.columns, self.name)
        return [self.difference(*both) for both in zip(expected, emitted, strict=True)]

    def difference(self, expected: Expected, emitted: Emitted) -> RowDifference | None:
        """Return where what was emitted differs first from what is expected."""
        if isinstance(self.runner.job, Sink):
            mode: Mode = "complete"
            if expected.comparing == "batches":
                expected = Expected("end", [[row for rows in expected.rows for row in rows]])
        else:
            mode = self.run.mode
        return difference(expected, emitted, mode, self.unique_columns, self.equality)

    @property
    def unique_columns(self) -> list[str] | None:
        """The columns that tell the rows of an updated table apart; None where each row is one of its own."""
        if self.unique is None and self.grouping is None:
            return None
        named = self.grouping.columns if self.unique is None and self.grouping is not None else self.unique or ()
        # A window stands as its two fields in the columns that are compared.
        return [part for column in named for part in ((column,) if column in self.columns else ("start", "end"))]

    def expected(self, histories: Sequence[JobHistory]) -> list[Expected]:
        """Return what is expected of each history."""
        if isinstance(self.oracle, JobOracle):
            other = replace(self.runner, job=self.oracle.job)
            asked, plain = repr([(history.batches, history.clock) for history in histories]), self.oracle.plain
            emitted = None if plain is None else plain.get(asked)
            if emitted is None:
                emitted = self.emitted_of(other, histories, self.oracle.run or self.run)
            if plain is not None:
                plain[asked] = emitted
            return [*map(self.expected_of, emitted)]
        if isinstance(self.oracle, BatchOracle):
            return [Expected("end", [rows]) for rows in self.as_batch(self.batch_of(self.oracle), histories)]
        oracle = self.oracle
        if isinstance(oracle, SqlOracle) and self.runner.static:
            oracle = replace(oracle, static=self.runner.static)
        found = oracle.expected(histories, self.sources, self.way)
        if self.columns and getattr(oracle, "allows_fewer_columns", False):
            found, left_out = with_columns(found, self.columns)
            self.left_out = list(dict.fromkeys([*self.left_out, *left_out]))
        return found

    def expected_of(self, emitted: Emitted) -> Expected:
        """Return what another run makes expected."""
        assert isinstance(self.oracle, JobOracle)
        if isinstance(self.oracle.job, Sink):
            return Expected("end", emitted[-1:])
        if self.oracle.comparing == "end":
            return Expected("end", table_of([flat(rows) for rows in emitted], self.run.mode, self.unique_columns)[-1:])
        return Expected("batches", emitted)

    def emitted_of(self, runner: Runner, histories: Sequence[JobHistory], run: RunOptions) -> list[Emitted]:
        """Return what a job emits of each history, in one query where they share one."""
        if self.alone or len(histories) == 1:
            return [self.emitted_alone(runner, history, run) for history in histories]
        return self.emitted(runner, histories, run)

    def emitted(self, runner: Runner, histories: Sequence[JobHistory], run: RunOptions) -> list[Emitted]:
        """Return what a job emits of each of histories that share a query."""
        output = self.noted(runner.run(pack(histories, self.inputs, self.seed), histories[0].clock, run), run)
        batches = [self.unpacked(rows, histories) for rows in output.batches]
        return [[batch[number] for batch in batches] for number in range(len(histories))]

    def emitted_alone(self, runner: Runner, history: JobHistory, run: RunOptions) -> Emitted:
        """Return what a job emits of a history in a query of its own."""
        return self.noted(runner.run(tables_alone(history, self.sources), history.clock, run), run).batches

    def noted(self, output: Output, run: RunOptions) -> Output:
        """Note what a query met, and return it.

        Raises:
            BadInput: The job went by another clock than the check's, so that the comparison says nothing.
        """
        self.crashed |= bool(output.crashed)
        self.stateful |= output.stateful
        if run == self.run:
            self.covered |= output.covered
            self.last = output
        if output.ahead or (output.other_times and output.dropped and not self.takes_late):
            how = "moved the watermark beyond the check's" if output.ahead else "were behind the watermark"
            raise BadInput(
                f"{self.name} takes its event time from other columns than the Input's, and rows that the check has "
                f"drawn {how}: let the check draw that time as a column of the Input, and make the payload of it: "
                'lambda rows: job(rows.select(to_json(struct("*")).alias("value")))'
            )
        if run.mode == "update" and not isinstance(self.runner.job, Sink) and self.alike is None:
            self.alike = self.rows_alike(output)
        return output

    def rows_alike(self, output: Output) -> str | None:
        """Say which two rows of one micro-batch `unique_columns` doesn't tell apart; None where there are none."""
        unique = self.unique_columns
        if unique is None:
            return None
        given = "unique=" if self.unique is not None else "the columns of its grouping"
        remedy = "name the columns of the result that tell the rows of its table apart, unique=[…]"
        if self.unique is None and self.grouping is not None and self.grouping.by and not unique:
            return f"{self.name} groups by {', '.join(self.grouping.by)}, and selects nothing of it: {remedy}"
        for part in output.parts:
            seen: dict[Any, Row] = {}
            for row in flat(part):
                key = comparable([row.get(column) for column in unique])
                if key in seen:
                    space = None if self.alone else key_space(self.sources)
                    both = [shown_row(row if space is None else space.plain(row)) for row in (seen[key], row)]
                    return (
                        f"{self.name} emits two rows in one batch that {given}, {', '.join(unique) or 'none'}, can't "
                        f"tell apart, {both[0]} and {both[1]}: {remedy}"
                    )
                seen[key] = row
        return None

    def as_batch(self, runner: Runner, histories: Sequence[JobHistory]) -> list[list[Row]]:
        """Return what a job gives of each history as a batch."""
        if self.alone or len(histories) == 1:
            return [
                list(runner.as_batch(_together(tables_alone(history, self.sources)), self.run)) for history in histories
            ]
        return self.unpacked(runner.as_batch(_together(pack(histories, self.inputs, self.seed)), self.run), histories)

    def unpacked(self, rows: Sequence[Row], histories: Sequence[JobHistory]) -> list[list[Row]]:
        """Hand every history its own rows."""
        if not rows:
            return [[] for _ in histories]
        carriers = set(key_space(self.sources).columns.values())
        keys = [column for column in rows[0] if column in carriers]
        if not keys:
            raise BadInput(
                f"{self.name}: the result has the columns {', '.join(rows[0])}, and none of the key's, "
                f"{', '.join(sorted(carriers))}: select it, or run each history in a query of its own with alone=True"
            )
        return unpack(rows, histories, self.sources, keys)


def deadline_of_shrinking(started: float, seconds: float) -> Deadline:
    """Return when shrinking ends that begins now, of a check that was `started` at that `time.monotonic()`."""
    return Deadline(min(max(SHRINKING * (time.monotonic() - started), SHRINKING_S), seconds))


def count_expecting(expected: Sequence[Expected]) -> int:
    """Return of how many histories rows are expected."""
    return sum(any(len(rows) > 0 for rows in one.rows) for one in expected)


def _together(batches: Sequence[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    return {name: pa.concat_tables([tables[name] for tables in batches]) for name in batches[0]}

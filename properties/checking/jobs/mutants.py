"""Mutants of a user's job, checked like the job: a mutant that conforms is a bug that the check doesn't detect."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ....reference.core.errors import BadInput, StreamproofError, import_extra
from ...generators.columns.inputs import values_hint
from ...generators.columns.model import Expected, JobHistory
from ...laws.expected.judging import Judge, Judgement
from ...laws.expected.oracle import Oracle
from ...laws.expected.oracles import BatchOracle, JobOracle, OracleOfJob
from ...laws.variation import Variation
from ...system.installed.spark_versions import no_log_of_refusals
from ...system.progress import doing
from ...witnesses.job.contract import location
from ...witnesses.job.query.runnable import JobOrSink
from ...witnesses.job.running import Declared, QueryOutput
from ...witnesses.job.scripts.script import Script, StartOf
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.job.witness import EmittedBatches, RowsWitness
from ...witnesses.run_options import RunOptions
from ...witnesses.spark.platform import connect
from ...witnesses.spark.session import is_own_session, use_own_session
from .arguments import CheckOptions, oracle_of
from .job_check import JobCheck
from .reports import Fate, JudgedMutant, JudgedMutants
from .verdicts import Inconclusive

if TYPE_CHECKING:
    from ...witnesses.job.mutations.source import JobSource, Mutant

Found = TypeVar("Found")
MAX_SECONDS = 30.0
"""The time limit of a mutant's query (s), because a mutant's query may never end."""
AT_ONCE = 2
"""The number of mutants that are checked concurrently."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings that disable Spark's code generation, which saves 20% of the time, because a mutant's query runs only
once.
"""
ADVICE: Mapping[str, str] = {
    "duration": (
        'out_of_order="…" says how late rows may be; a rule, such as session_windows(…), says which late rows '
        "are dropped"
    ),
    "join": "list keys that only one input has, Input(…, keys=[…])",
    "number": "list values around the constant, Input(…, {values})",
    "comparison": "list values that are equal, Input(…, {values})",
    "value": "list the value, Input(…, {values})",
    "null": "let the column be null: declare it without NOT NULL, or list None among its values or the keys, keys=[…]",
    "column": "list values that differ between the columns, Input(…, {values})",
    "aggregate": "list values for which the aggregates differ, Input(…, {values})",
    "step": "list values that the removed step changes, Input(…, {values})",
}
"""The advice for a mutant without a difference, by the kind of the mutation; `{values}` lists values of a column."""
OTHERWISE = "more histories, or values and timeouts that reach the changed code"
TOO_WEAK = "its rows differ, but the oracle accepts them: expect more columns, or a rule, a class or sql(…)"
ALIKE = (
    "its rows differ, and so do the rows of the batch query that they are compared with: expect a rule, a class or "
    "sql(…)"
)
NO_COLUMN = "its result lacks a column, but the oracle accepts this: expect sql(…), a class or a function"
_LOG = logging.getLogger("streamproof")


class _Killed(Exception):
    """Raised when a mutant differs from the expected output."""


@dataclass
class _Memory:
    """Results of the oracle that mutants with the same histories share.

    Attributes:
        expected: The expected outcomes of histories, by their names and the inputs that they were drawn from.
        lock: The lock that lets only one mutant compute a shared result.
    """

    expected: dict[Any, list[Expected]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


@dataclass
class _MutantJudge(Judge):
    """A judge that reuses the expected outcomes computed for other mutants, unless the oracle runs the mutant itself.

    Attributes:
        memory: The results of other mutants.
        drawn_for: The inputs that the histories were drawn from.
    """

    memory: _Memory = field(default_factory=_Memory)
    drawn_for: Any = None

    def of_oracle(self, histories: Sequence[JobHistory], variation: Variation) -> list[Expected]:
        """Return the oracle's expected outcome of each history."""
        if isinstance(self.oracle, OracleOfJob) and getattr(self.oracle, "job", None) is None:
            return super().of_oracle(histories, variation)
        known, key = self.memory.expected, (self.drawn_for, *(history.name for history in histories))
        with self.memory.lock:
            if key not in known:
                known[key] = super().of_oracle(histories, variation)
        return known[key]


class _MutantCheck(JobCheck):
    """A check of a mutant that ends at the first difference, and neither shrinks nor saves histories.

    Args:
        memory: The results of other mutants.
        given: The arguments of `JobCheck`.

    Attributes:
        ran: The histories of a shared query with their emitted rows, and the query's output; None: no shared query ran.
    """

    def __init__(self, memory: _Memory, *given: Any) -> None:
        self.memory = memory
        self.ran: tuple[Sequence[JobHistory], Sequence[EmittedBatches], Sequence[QueryOutput]] | None = None
        super().__init__(*given)
        draws = self.draws
        assert isinstance(self.judge, _MutantJudge)
        self.judge.drawn_for = draws.takes_late, draws.closes, draws.out_of_order_us, *draws.distances_us

    def judge_of(self, witness: RowsWitness, oracle: Oracle, declared: Declared) -> Judge:
        """Return the judge that compares the job with the oracle."""
        options = self.options
        given = options.unique, options.equality, options.without
        return _MutantJudge(witness, oracle, declared, *given, memory=self.memory)

    def check_together(self, histories: Sequence[JobHistory], started: float) -> int:
        """Run histories in one query, and keep the query's output; run some histories alone if the job computes with
        keys.
        """
        emitted, outputs = self.judge.emitted(histories, self.variation)
        try:
            comparisons = self.judge.compared(histories, emitted, outputs, self.variation)
        except BadInput as refused:  # the mutant ran, but its rows can't be equal to the expected rows
            raise _Killed(refused.message) from None
        if differing := sum(compared.differs for compared in comparisons):
            raise _Killed(f"{differing} of {len(histories)} histories differ")
        self.ran = histories, emitted, outputs
        if self.judge.computed_keys or self.judge.keys_in_functions:
            self.check_beside(histories, comparisons, started)
        return sum(compared.expects_rows for compared in comparisons)

    def is_as(self, original: JobOracle, histories: int) -> bool:
        """Return whether a mutant that conforms emits the same rows as the original job.

        Raises:
            Inconclusive: Coverage goals are unmet.
            StreamproofError: A query fails.
        """
        if self.ran is None or self.why_alone:
            try:
                _ComparedWithOriginal(_Memory(), self.options, original, self.variation).check(histories)
            except _Killed:
                return False
            return True
        own = self.judge
        judge = Judge(own.witness, original, own.declared, own.unique, own.equality, own.without)
        with self.memory.lock:
            return not any(compared.differs for compared in judge.compared(*self.ran, self.variation))

    def raise_smallest(
        self, history: JobHistory, compared: Judgement, variation: Variation, *, head: str, started: float
    ) -> NoReturn:
        """Raise an exception that ends the check, because the mutant differs."""
        raise _Killed(head)

    @contextlib.contextmanager
    def named_failure(self, histories: Sequence[JobHistory], variation: Variation) -> Iterator[None]:
        """Let a query's failure propagate."""
        yield


class _ComparedWithOriginal(_MutantCheck):
    """A check that compares a mutant with the original job in a shared query only."""

    def check_beside(self, histories: Sequence[JobHistory], comparisons: Sequence[Judgement], started: float) -> None:
        """Do nothing: this check runs no history alone."""


def check_mutants(options: CheckOptions, expect: Any, histories: int) -> JudgedMutants:
    """Check the mutants of a job like the job itself.

    Args:
        options: The options of the job's check.
        expect: The oracle of the job's check.
        histories: The number of histories.

    Raises:
        BadInput: The job's source can't be mutated.
        MissingTool: libcst isn't installed.
    """
    started, job = time.monotonic(), options.runner.job
    import_extra("libcst", "mutants", "mutants of a job")
    from ...witnesses.job.mutations.source import JobSource

    function = job.start if isinstance(job, Sink) else job
    script = function.script if isinstance(function, StartOf) else function
    source = JobSource.of_script(script) if isinstance(script, Script) else JobSource.of(function)
    plain = JobCheck(replace(options, folder=None, least_alone=0), oracle_of(expect, job), Variation(options.run))
    returns_rows = not isinstance(job, (Sink, Script))
    mutants = source.mutants(options.runner.sources, options.runner.static, returns_rows)
    why = ""
    with no_log_of_refusals():
        # Try concurrent sessions and one partition; if these change the job's result, use the job's own run options.
        for at_once, run in ((_at_once(options, source), _quick(plain)), (1, options.run)):
            checking = _Checking(plain, expect, histories, run, JobOracle(job, plain={}))
            with _in_sessions(at_once) as do:
                *_, (unchanged, _, why) = do(checking.checked, [lambda: source.run(source.text)])
                if unchanged is not None:
                    judged = [
                        JudgedMutant(str(mutant), *fate)
                        for mutant, fate in zip(mutants, do(checking.fate, mutants), strict=True)
                    ]
                    break
        else:
            raise BadInput(
                f"{location(function)} can't be mutated: its unchanged source, run again, gives another job: {why}"
            )
    return JudgedMutants(plain.judge.name, plain.judge.oracle.name, judged, time.monotonic() - started)


def _at_once(options: CheckOptions, source: JobSource) -> int:
    """Return how many mutants to check concurrently: several, because a query computes only part of the time.

    Return 1 if threads can't isolate the job, because it patches Spark, uses Spark Connect, or loops endlessly.
    """
    is_plain = not (isinstance(options.runner.job, (Sink, Script)) or options.run.processing_time)
    return AT_ONCE if is_plain and is_own_session() and not connect.is_asked() and not source.has_loops else 1


@contextlib.contextmanager
def _in_sessions(count: int) -> Iterator[Callable[[Callable[[Any], Found], Sequence[Any]], Iterator[Found]]]:
    """Yield a function like `map`, which calls a function for several arguments in concurrent Spark sessions."""
    if count == 1:
        yield map
        return
    numbers = itertools.count()
    executor = ThreadPoolExecutor(count, "mutants", lambda: use_own_session(next(numbers)))
    try:
        yield executor.map
    finally:
        executor.shutdown(cancel_futures=True)


def _quick(plain: JobCheck) -> RunOptions:
    """Return the run options of a mutant's query: one partition, and no code generation."""
    run = plain.options.run
    return replace(run, partitions=run.partitions or 1, settings={**INTERPRETED, **run.settings})


@dataclass(frozen=True)
class _Checking:
    """Checks each mutant as the original job was checked.

    Attributes:
        plain: The check of the original job.
        expect: The oracle.
        histories: The number of histories.
        run: The run options of the queries.
        original: The original job's output.
        memory: The results that several mutants share.
    """

    plain: JobCheck
    expect: Any
    histories: int
    run: RunOptions
    original: JobOracle
    memory: _Memory = field(default_factory=_Memory)

    def fate(self, mutant: Mutant) -> tuple[Fate, str]:
        """Check a mutant; return the fate (such as `survived`), and the reason or advice."""
        doing(f"checking the mutant {mutant}")
        check, fate, why = self.checked(mutant.make)
        if check is None:
            return fate, why
        if {*self.plain.judge.declared.columns} - {*check.judge.declared.columns}:
            return "survived", NO_COLUMN
        try:
            is_alike = check.is_as(self.original, self.histories)
        except Inconclusive as error:
            _LOG.info("%s: %s", mutant, error)
            is_alike = True
        except StreamproofError as error:
            return "no difference", f"it couldn't be compared with the original job: {error.message}"
        if is_alike:
            hint = values_hint(self.plain.options.inputs, f"{mutant.before} {mutant.after}")
            return "no difference", ADVICE.get(mutant.kind, OTHERWISE).replace("{values}", hint)
        oracle = check.judge.oracle
        if isinstance(oracle, BatchOracle) and oracle.job is None:
            return "survived", ALIKE
        return "survived", ADVICE["duration"] if mutant.kind == "duration" else TOO_WEAK

    def checked(self, make: Callable[[], Any]) -> tuple[_MutantCheck | None, Fate, str]:
        """Check the job from a changed source; return the check, or None with the mutant's fate and the reason."""
        options, job = self.plain.options, self.plain.options.runner.job
        try:
            function = make()
        except Exception as error:
            return None, "doesn't run", f"its module fails: {type(error).__name__}: {error}"
        if isinstance(job, Sink) and isinstance(job.start, StartOf):
            function = StartOf(function)
        changed: JobOrSink = replace(job, start=function) if isinstance(job, Sink) else function
        run = replace(self.run, seconds=min(self.run.seconds, MAX_SECONDS))
        own = replace(options, runner=replace(options.runner, job=changed), run=run)
        try:
            check = _MutantCheck(self.memory, own, oracle_of(self.expect, changed), Variation(run))
            check.check(self.histories)
        except (_Killed, Inconclusive) as killed:
            return None, "killed", str(killed)
        except StreamproofError as error:
            return None, "doesn't run" if isinstance(error, BadInput) else "killed", error.message
        return check, "survived", ""

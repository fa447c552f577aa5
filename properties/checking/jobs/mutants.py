"""Mutants of a user's job, checked as the job is: a mutant that conforms is a bug that the check would not notice."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from ....reference.core.errors import BadInput, StreamproofError, import_extra
from ...generators.columns.model import JobHistory
from ...laws.expected.judging import Compared
from ...laws.expected.oracles import BatchOracle, JobOracle
from ...laws.variation import Variation
from ...system.spark_versions import no_log_of_refusals
from ...witnesses.job.contract import location
from ...witnesses.job.running import Job
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from .arguments import CheckOptions, oracle_of
from .job_check import JobCheck
from .reports import Fate, JudgedMutant, MutantsReport
from .verdicts import Inconclusive

if TYPE_CHECKING:
    from ...witnesses.job.mutations.source import Mutant

MAX_SECONDS = 30.0
"""The time limit of a mutant's query, which may never end."""
ADVICE: Mapping[str, str] = {
    "duration": 'out_of_order="…" says how late rows may be; a rule, such as session_windows(…), says which are late',
    "join": "list keys that only one input has, Input(…, keys=[…])",
    "number": 'list values around it, Input(…, values={"amount": [99, 100, 101]})',
    "comparison": 'list values that are equal, Input(…, values={"amount": [99, 100, 101]})',
    "value": 'list the value, Input(…, values={"kind": ["paid", "open"]})',
    "null": "let the column be null: declare it without NOT NULL, or list None among its values",
    "column": "list values by which the columns differ, Input(…, values={…})",
    "aggregate": "list values by which the aggregates differ, Input(…, values={…})",
    "step": "list values that the step leaves out, Input(…, values={…})",
}
"""The advice on a mutant that differs on no history, by the kind of the change."""
OTHERWISE = "more histories, or values and timeouts that reach it"
TOO_WEAK = "its rows differ, and what is expected accepts them: expect more columns, or a rule, a class or sql(…)"
ALIKE = "its rows differ, and so do those of the batch that it is compared with: expect a rule, a class or sql(…)"
NO_COLUMN = "its result lacks a column, of which nothing is expected"
_LOG = logging.getLogger("streamproof")


class _Killed(Exception):
    """A mutant differs from what is expected."""


class _MutantCheck(JobCheck):
    """A check that ends at the first difference, which it neither shrinks nor saves."""

    def raise_smallest(
        self, history: JobHistory, compared: Compared, variation: Variation, *, head: str, started: float
    ) -> NoReturn:
        """End the check."""
        raise _Killed(head)

    @contextlib.contextmanager
    def named_failure(self, histories: Sequence[JobHistory], variation: Variation) -> Iterator[None]:
        """Let a query fail as it fails."""
        yield


class _ComparedWithOriginal(_MutantCheck):
    """A check against the job as it is, in the shared query alone."""

    def check_beside(self, histories: Sequence[JobHistory], comparisons: Sequence[Compared], started: float) -> None:
        """Leave it at the shared query."""


def check_mutants(options: CheckOptions, expect: Any, histories: int) -> MutantsReport:
    """Check the mutants of a job on drawn histories, as the job itself is checked.

    Args:
        options: The options of the job's check.
        expect: What is expected of the job.
        histories: The number of histories.

    Raises:
        BadInput: The job's source can't be changed.
        MissingTool: libcst isn't installed.
    """
    started, job = time.monotonic(), options.runner.job
    if isinstance(job, Script):
        raise BadInput(f"{job.where} is a script, of which no mutants are made: give a function of a module")
    import_extra("libcst", "mutants", "mutants of a job")
    from ...witnesses.job.mutations.source import JobSource

    function = job.start if isinstance(job, Sink) else job
    source = JobSource.of(function)
    plain = JobCheck(replace(options, folder=None), oracle_of(expect, job), Variation(options.run))
    original = JobOracle(job, plain={})
    judged: list[JudgedMutant] = []
    with no_log_of_refusals():
        unchanged, _, why = _checked(plain, expect, histories, lambda: source.run(source.text))
        if unchanged is None:
            raise BadInput(
                f"{location(function)} can't be mutated: its source, run again as it is, gives another job: {why}"
            )
        mutants = source.mutants(options.runner.sources)
        for number, mutant in enumerate(mutants, 1):
            _LOG.info("mutant %d of %d: %s", number, len(mutants), mutant)
            judged.append(JudgedMutant(str(mutant), *_fate(mutant, plain, original, expect, histories)))
    return MutantsReport(plain.judge.name, plain.judge.oracle.name, judged, time.monotonic() - started)


def _fate(mutant: Mutant, plain: JobCheck, original: JobOracle, expect: Any, histories: int) -> tuple[Fate, str]:
    """Check a mutant; return what became of it, and what killed it or may do so."""
    check, fate, why = _checked(plain, expect, histories, mutant.make)
    if check is None:
        return fate, why
    if {*plain.judge.declared.columns} - {*check.judge.declared.columns}:
        return "survived", NO_COLUMN
    try:
        _ComparedWithOriginal(check.options, original, check.variation).check(histories)
    except _Killed:
        oracle = check.judge.oracle
        if isinstance(oracle, BatchOracle) and oracle.job is None:
            return "survived", ALIKE
        return "survived", ADVICE["duration"] if mutant.kind == "duration" else TOO_WEAK
    except (Inconclusive, StreamproofError) as error:
        _LOG.info("%s: %s", mutant, error)
    return "no difference", ADVICE.get(mutant.kind, OTHERWISE)


def _checked(
    plain: JobCheck, expect: Any, histories: int, make: Callable[[], Any]
) -> tuple[_MutantCheck | None, Fate, str]:
    """Check what a changed source makes, as the job was checked; return the check, or None, its fate and why."""
    options, job = plain.options, plain.options.runner.job
    try:
        function = make()
    except Exception as error:
        return None, "doesn't run", f"its module fails: {type(error).__name__}: {error}"
    changed: Job = replace(job, start=function) if isinstance(job, Sink) else function
    run = replace(options.run, seconds=min(options.run.seconds, MAX_SECONDS))
    own = replace(options, runner=replace(options.runner, job=changed), run=run)
    try:
        check = _MutantCheck(own, oracle_of(expect, changed), Variation(run))
        check.check(histories)
    except (_Killed, Inconclusive) as killed:
        return None, "killed", str(killed)
    except StreamproofError as error:
        return None, "doesn't run" if isinstance(error, BadInput) else "killed", error.message
    return check, "survived", ""

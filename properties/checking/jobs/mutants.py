"""Mutants of a user's job, checked as the job is: each that conforms is a bug that the check would not notice."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from ....reference.core.errors import BadInput, StreamproofError, import_extra
from ...counterexamples.notebook import Shown
from ...generators.columns.model import JobHistory
from ...laws.expected.judging import Compared
from ...laws.expected.oracles import JobOracle
from ...laws.variation import Variation
from ...witnesses.job.running import Job
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from ..checked import Checked, LawCount
from .arguments import CheckOptions, oracle_of
from .check import JobCheck
from .verdicts import Inconclusive

if TYPE_CHECKING:
    from ...witnesses.job.mutations.source import Mutant

Fate: TypeAlias = Literal["killed", "survived", "no difference"]
FIRST_HISTORIES = 60
"""A mutant is checked on this many histories first: that kills most, and all histories take longer."""
MAX_SECONDS = 30.0
"""The time limit of a mutant's query, which may never end."""
_LOG = logging.getLogger("streamproof")
ADVICE: Mapping[str, str] = {
    "duration": 'out_of_order="…" says how late rows may be, and a rule, such as session_windows(…), which rows are late',
    "join": "list keys that only one input has, Input(…, keys=[…])",
    "number": 'list values around it, Input(…, values={"amount": [99, 100, 101]})',
    "comparison": 'list values that are equal, Input(…, values={"amount": [99, 100, 101]})',
    "value": 'list the value, Input(…, values={"kind": ["paid", "open"]})',
    "null": "let the column be null: declare it without NOT NULL, or list None among its values",
    "column": "list values by which the columns differ, Input(…, values={…})",
    "aggregate": "list values by which the aggregates differ, Input(…, values={…})",
    "step": "list values that the step leaves out, Input(…, values={…})",
}
OTHERWISE = "more histories, or values and timeouts that reach it"
TOO_WEAK = "the rows differ, and what is expected accepts them: expect more columns, or a rule, a class or sql(…)"


@dataclass(frozen=True)
class Judged:
    """A mutant and what became of it.

    Attributes:
        mutant: Its line and its change, in words.
        fate: `killed`; `survived`: its rows differ from the job's, and the check accepts them; `no difference`: no
            history shows any.
        why: What killed it, or what would notice it.
    """

    mutant: str
    fate: Fate
    why: str


@dataclass(frozen=True)
class MutantsReport(Shown):
    """The mutants of a job, and how many of them its check kills.

    Attributes:
        job: The job's name.
        oracle: What is expected of the job.
        judged: The mutants that were checked.
        made: The number of mutants that the job has.
        seconds: How long it took.
    """

    job: str
    oracle: str
    judged: Sequence[Judged]
    made: int
    seconds: float

    @property
    def survivors(self) -> list[Judged]:
        """The mutants that the check doesn't kill."""
        return [one for one in self.judged if one.fate != "killed"]

    def __str__(self) -> str:
        killed = len(self.judged) - len(self.survivors)
        checked = (
            f"{len(self.judged)} mutants"
            if len(self.judged) == self.made
            else f"{len(self.judged)} of {self.made} mutants"
        )
        head = f"{self.job}: {killed} of {checked} killed, expecting {self.oracle} ({self.seconds:.0f} s)."
        lines = [f"{one.fate}: {one.mutant}\n    {one.why}." for one in self.survivors]
        return "\n".join([head, *lines])

    @property
    def checked(self) -> Checked:
        """The report as plain data: a law for each mutant that wasn't killed."""
        laws = [LawCount(one.mutant, "", (self.oracle, "job"), "not checked", why=one.why) for one in self.survivors]
        return Checked(f"mutants of {self.job}", "conforms", laws, notes=[str(self).splitlines()[0]])


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


def check_mutants(options: CheckOptions, expect: Any, histories: int, most: int | None = None) -> MutantsReport:
    """Check the mutants of a job on drawn histories, as the job itself is checked.

    Args:
        options: The options of the job's check.
        expect: What is expected of the job.
        histories: The number of histories.
        most: The most mutants, drawn by the seed; None: all.

    Raises:
        BadInput: The job's source can't be changed.
        MissingTool: libcst isn't installed.
    """
    started, job = time.monotonic(), options.runner.job
    if isinstance(job, Script) or not callable(job if not isinstance(job, Sink) else job.start):
        raise BadInput("a Script can't be mutated yet: put what it computes into a function of a module, and give that")
    import_extra("libcst", "mutants", "mutants of a job")
    from ...witnesses.job.mutations.source import mutants_of

    mutants = mutants_of(job.start if isinstance(job, Sink) else job, options.runner.sources)
    chosen = (
        mutants
        if most is None
        else sorted(Random(options.seed).sample(mutants, min(most, len(mutants))), key=mutants.index)
    )
    judged: list[Judged] = []
    for number, mutant in enumerate(chosen, 1):
        _LOG.info("mutant %d of %d: %s", number, len(chosen), mutant)
        judged.append(Judged(str(mutant), *_fate(mutant, options, expect, histories)))
    oracle = oracle_of(expect, job)
    name = JobCheck(replace(options, folder=None), oracle, Variation(options.run)).judge
    return MutantsReport(name.name, name.oracle.name, judged, len(mutants), time.monotonic() - started)


def _fate(mutant: Mutant, options: CheckOptions, expect: Any, histories: int) -> tuple[Fate, str]:
    job = options.runner.job
    try:
        function = mutant.make()
    except Exception as error:
        return "killed", f"its module fails: {type(error).__name__}: {error}"
    changed: Job = replace(job, start=function) if isinstance(job, Sink) else function
    run = replace(options.run, seconds=min(options.run.seconds, MAX_SECONDS))
    own = replace(options, runner=replace(options.runner, job=changed), run=run, folder=None)
    counts = [count for count in (FIRST_HISTORIES,) if count < histories]
    for count in (*counts, histories):
        try:
            _MutantCheck(own, oracle_of(expect, changed), Variation(run)).check(count)
        except _Killed as killed:
            return "killed", str(killed)
        except Inconclusive:
            if count == histories:
                return "killed", "the check is inconclusive"
        except StreamproofError as error:
            return "killed", error.message
    try:
        _MutantCheck(own, JobOracle(job), Variation(run)).check(histories)
    except _Killed:
        return "survived", TOO_WEAK
    except (Inconclusive, StreamproofError):
        pass
    return "no difference", ADVICE.get(mutant.kind, OTHERWISE)

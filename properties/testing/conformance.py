"""The check of a user's own job, or of any witness, against the reference of an operator, over drawn histories.

It says *conforms* by returning a report. It fails as *violated* on the smallest history found on which the witness
differs, and as *inconclusive* where it differs on none, but the histories leave a coverage goal unmet: then they show
nothing.

A counterexample is saved in the folder of its test before it is shrunk, and replayed first the next time.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ..checking.check import Check
from ..checking.jobs.arguments import check_arguments
from ..checking.jobs.conclusion import MIN_HISTORIES, inconclusive, tell_of_few
from ..checking.jobs.reports import ConformanceReport
from ..checking.jobs.verdicts import Violated
from ..checking.report import Report
from ..checking.shrinking import size
from ..counterexamples.counterexample import Counterexample, Saved
from ..counterexamples.of_operators import FolderStore, saved
from ..counterexamples.text import counterexample_text, test_to_paste
from ..generators.coverage import draw_covering, goals
from ..laws.all import Subject
from ..laws.base import OWN, Comparison, LawResult, Violation, violations
from ..laws.case import Case
from ..laws.on_spark.changelog import Changelog
from ..laws.on_spark.judging import by_reference
from ..laws.runs import Kind, ReferenceRun, Run, Sample
from ..outcomes.outcomes import differences
from ..registration.registration import registration_of
from ..system.arguments import checked, folder_at
from ..witnesses.base import Witness
from ..witnesses.job.contract import location
from ..witnesses.spark.witness import JobWitness, QueryWitness

if TYPE_CHECKING:
    from ..witnesses.spark.witness import Job

BATCHES = 6
"""The number of batches of a job's histories."""


@checked
def assert_conforms(
    job: Job,
    options: Mapping[str, Any],
    histories: int = 300,
    seed: int = 0,
    operator: str = "session_windows",
    *,
    folder: str | Path | None = None,
) -> ConformanceReport:
    """Check a streaming job against the reference over random, out-of-order histories, all in one query.

    Their times scale with the options' durations. They must meet the coverage goals of `streamproof check`: those of
    the operator, and, for each duration, a history on which a duration 1 ms longer or shorter emits something else.

    Args:
        job: Takes a streaming DataFrame with the columns key (string), value (as the options' aggregate wants it),
            timestamp (bigint, ms) and order (bigint, the order of arrival), and returns a streaming DataFrame in
            append mode with the columns key, window (struct of start and end; the end is the last record's timestamp),
            value and timestamp. A null value is a tombstone. A column `ordinal`, where there is one, orders a key's
            changes.
        options: The options that the job implements, as in a history file; durations in ms.
        histories: The number of histories to draw.
        seed: The seed of the draws.
        operator: The operator's name.
        folder: The folder where its counterexamples are saved, and replayed from first; without it none is saved. The
            fixture `conforms` gives each test a folder of its own.

    Returns:
        The report of the check.

    Raises:
        Violated: The job differs from the reference; the message has the smallest history and both outcomes.
        Inconclusive: It doesn't differ, but the histories leave coverage goals unmet; the message names them.
        BadInput: The options are none of the operator's, there are no histories to draw, or a saved counterexample
            can't be read or written.
        StreamproofError: The query failed, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    kept = None if folder is None else folder_at(folder)
    return check_witness(JobWitness(job), options, histories, seed, operator, folder=kept, job=job)


def running_test() -> str | None:
    """Return the node id of the test that pytest is running, or None outside of tests."""
    running = os.environ.get("PYTEST_CURRENT_TEST")
    return None if running is None else running.rpartition(" ")[0]


def check_witness(
    witness: Witness,
    options: Mapping[str, Any],
    histories: int = 300,
    seed: int = 0,
    operator: str = "session_windows",
    folder: Path | None = None,
    job: object = None,
) -> ConformanceReport:
    """Check any witness as `assert_conforms` checks a job; without `job`, which it imports, no test is pasted."""
    __tracebackhide__ = True
    operator_named(operator).declare(options)
    check_arguments(histories, seed)
    tell_of_few(histories)
    store, registration = _OfOptions(folder, job, options), registration_of(operator)
    report = Report(operator, [], seed)
    check = Check(registration, report, [ChangelogOf(witness)], "job", store, lambda step: None, OWN)
    check.begin()
    (result,) = report.results
    if result.violations:
        count = f"{len(result.violations)} of {result.judged} saved counterexamples"
        smallest = min(report.found, key=lambda found: size(found[0].history))
        raise _violated(f"{count} still differ from the reference; no other history was drawn.", *smallest, store)
    drawn = draw_covering(operator, options, histories, seed, BATCHES)
    sample = Sample(registration, Kind.REFERENCE, "the job's", options, drawn.histories, drawn.covered)
    check.ask_all([result.law], sample, ReferenceRun(sample))
    if result.violations:
        head = f"{len(result.violations)} of {histories} histories differ from the reference."
        raise _violated(head, *report.found[0], store)
    name = witness.name if job is None else location(job)
    missing = [*[f"{MIN_HISTORIES} histories at the least"] * (histories < MIN_HISTORIES), *result.missing]
    if missing:
        raise inconclusive(
            name,
            f"the reference of {operator}",
            histories=histories,
            missing=missing,
            more=f"more histories, such as histories={max(300, 4 * histories)}",
            seed=seed,
        )
    return ConformanceReport(name, operator, dict(options), histories, seed, result.covered)


class ChangelogOf(Changelog):
    """The law *changelog*, of any witness: it emits what the reference emits.

    Args:
        witness: The witness.
    """

    def __init__(self, witness: Witness) -> None:
        self.witness = witness

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the coverage goals of a declaration."""
        return goals(sample.registration.name, sample.options)

    def judge(self, run: Run | ReferenceRun, result: LawResult) -> Iterator[Violation]:
        """Judge the histories of a sample."""
        result.judged += len(run.histories)
        result.covered.update(run.sample.covered)
        yield from self.violations(run.histories)

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Compare what the law's own witness emits of histories with what the reference does."""
        histories = [case.history for case in cases]
        comparisons = []
        for history, outcome in zip(histories, self.witness.evaluate(histories), strict=True):
            expected = by_reference(history)
            actual = self.witness.name, outcome
            comparisons.append(Comparison(expected, actual, differences(expected[1], outcome)))
        return comparisons

    def violations(self, histories: Sequence[History]) -> list[Violation]:
        """Return the violations on the histories of one cohort."""
        return [*violations(histories, self.recheck([*map(Case, histories)]))] if histories else []


class _OfOptions(FolderStore):
    """The counterexamples of a job's test: those of its options are replayed; without a folder none is saved."""

    def __init__(self, folder: Path | None, job: object, options: Mapping[str, Any]) -> None:
        super().__init__(folder or Path(), job)
        self.saves, self.options = folder is not None, dict(options)
        self.replayed: dict[str, Path] = {}

    def save(self, counterexample: Counterexample) -> Path:
        """Save a counterexample, but for one that is saved already, whichever check did, and one without a folder."""
        known = self.replayed.get(counterexample.history.to_text())
        if known is not None:
            return known
        return super().save(counterexample) if self.saves else self.folder

    def saved(self, operator: str, subject: Subject, mutant: str | None = None) -> list[Saved]:
        """Return the counterexamples of the options, whichever check saved them; a warning names those of others."""
        found = [*saved(self.folder, operator)] if self.saves else []
        others = [one.folder.name for one in found if dict(one.history.options) != self.options]
        if others:
            warnings.warn(
                f"saved under other options, and not replayed: {', '.join(others)} in {self.folder / operator}: "
                "remove what is of no more use",
                stacklevel=6,
            )
        own = [one for one in found if dict(one.history.options) == self.options]
        self.replayed = {one.history.to_text(): one.folder for one in own}
        return [replace(one, law=Changelog.name, original=None, way=None) for one in own]


def _violated(head: str, counterexample: Counterexample, path: Path, store: _OfOptions) -> Violated:
    """Return the failure on a counterexample: its text, where it is saved, and the test to paste."""
    lines = [head, counterexample_text(counterexample)]
    if store.saves:
        lines += [f"Saved in {path}, and replayed first the next time.", ""]
    test = None if store.job is None else test_to_paste(counterexample, store.job)
    if test is not None:
        lines += ["The test to paste:", "", test]
    return Violated("\n".join(lines), counterexample, job=store.job, path=path if store.saves else None)

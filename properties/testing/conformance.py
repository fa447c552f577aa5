"""The check of a user's own job, or of any witness, against the reference of an operator, over drawn histories.

It says *conforms* by returning a report. It fails as *violated* on the smallest history found on which the witness
differs, and as *inconclusive* where it differs on none, but the histories leave a coverage goal unmet: then they show
nothing.

A counterexample is saved in the folder of its test before it is shrunk, and replayed first the next time.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ..checking.confirm import confirmed
from ..checking.jobs.arguments import check_arguments
from ..checking.jobs.check import MAX_GOALS_SHOWN
from ..checking.jobs.conclusion import MIN_HISTORIES
from ..checking.jobs.reports import ConformanceReport
from ..checking.jobs.verdicts import Inconclusive, Violated
from ..checking.shrinking import size
from ..counterexamples.counterexample import NOT_RECHECKED, Counterexample, counterexample_of
from ..counterexamples.of_jobs import SAVED, folder_of
from ..counterexamples.of_operators import FolderStore, saved
from ..counterexamples.text import counterexample_text, test_to_paste
from ..generators.coverage import draw_covering
from ..laws.base import OWN, Comparison, Violation, violations
from ..laws.case import Case
from ..laws.on_spark.changelog import Changelog
from ..laws.on_spark.judging import by_reference
from ..outcomes.outcomes import differences
from ..registration.registration import registration_of
from ..system.arguments import checked, folder_at
from ..witnesses.base import Witness
from ..witnesses.job.contract import location
from ..witnesses.spark.witness import JobWitness, QueryWitness

if TYPE_CHECKING:
    from ..witnesses.spark.witness import Job

BATCHES = 6
"""How many batches a job's histories have."""


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

    Their times scale with the options' durations. They must meet the coverage goals that `streamproof check` has: those
    of the operator, and for each duration a history on which one that is 1 ms longer or shorter emits something else.

    Args:
        job: Takes a streaming DataFrame with the columns key (string), value (as the options' aggregate wants it),
            timestamp (bigint, ms) and order (bigint, the order of arrival), and returns a streaming DataFrame in
            append mode with the columns key, window (struct of start and end; the end is the last record's timestamp),
            value and timestamp. A null value is a tombstone. A column `ordinal`, where there is one, orders a key's
            changes.
        options: The options that the job implements, as in a history file; durations in ms.
        histories: How many histories to draw.
        seed: What they are drawn from.
        operator: The operator's name.
        folder: Where its counterexamples are saved, and replayed first; without it none is saved. The fixture
            `conforms` gives each test a folder of its own.

    Returns:
        What was shown.

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


def folder_of_test(root: Path, test: str) -> Path:
    """Return the folder of a test's counterexamples; `test` is its node id, `tests/test_x.py::test_y[z]`."""
    return folder_of(test, root / SAVED)


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
    """Check any witness as `assert_conforms` checks a job.

    Args:
        witness: What is checked.
        options: As `assert_conforms`.
        histories: As `assert_conforms`.
        seed: As `assert_conforms`.
        operator: As `assert_conforms`.
        folder: As `assert_conforms`.
        job: The job that the witness runs, which the test to paste imports; none is pasted without.

    Returns:
        What was shown.

    Raises:
        Violated: It differs from the reference.
        Inconclusive: It doesn't differ, but the histories leave coverage goals unmet.
        BadInput: The options are none of the operator's, or there are no histories to draw.
    """
    __tracebackhide__ = True
    operator_named(operator).declare(options)
    check_arguments(histories, seed)
    law, store = ChangelogOf(witness), None if folder is None else FolderStore(folder, job)
    if store is not None:
        _replay_saved(law, options, operator, store, job)
    drawn = draw_covering(operator, options, histories, seed, BATCHES)
    failing = law.violations(drawn.histories)
    if failing:
        counterexample, path = _smallest(law, failing[0], seed, store)
        head = f"{len(failing)} of {histories} histories differ from the reference."
        raise _violated(head, counterexample, path, job)
    name = witness.name if job is None else location(job)
    missing = [*[f"{MIN_HISTORIES} histories at the least"] * (histories < MIN_HISTORIES), *drawn.missing]
    if missing:
        rest = len(missing) - MAX_GOALS_SHOWN
        named = "; ".join([*missing[:MAX_GOALS_SHOWN], *[f"and {rest} more"] * (rest > 0)])
        raise Inconclusive(
            f"inconclusive: {name} agrees with the reference on all histories ({histories}), but that shows "
            f"nothing of {operator}, for they leave unmet: {named}. Give more histories, such as "
            f"histories={max(300, 4 * histories)}, or another seed than {seed}.",
            job=name,
        )
    return ConformanceReport(name, operator, dict(options), histories, seed, drawn.covered)


class ChangelogOf(Changelog):
    """The law *changelog*, of any witness: it emits what the reference emits.

    Args:
        witness: The witness.
    """

    def __init__(self, witness: Witness) -> None:
        self.witness = witness

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


def _replay_saved(law: ChangelogOf, options: Mapping[str, Any], operator: str, store: FolderStore, job: object) -> None:
    """Replay the saved counterexamples, all at once; a warning names those of other options, which aren't replayed.

    Raises:
        Violated: The witness still differs on one.
        BadInput: One can't be read.
    """
    __tracebackhide__ = True
    found = [*saved(store.folder, operator)]
    histories = [history for history, _ in found if dict(history.options) == dict(options)]
    others = [metadata.folder.name for history, metadata in found if dict(history.options) != dict(options)]
    if others:
        warnings.warn(
            f"saved under other options, and not replayed: {', '.join(others)} in {store.folder / operator}: "
            "remove what is of no more use",
            stacklevel=4,
        )
    failing = law.violations(histories)
    if failing:
        smallest = min(failing, key=lambda violation: size(violation.case.history))
        count = f"{len(failing)} of {len(histories)} saved counterexamples"
        head = f"{count} still differ from the reference; no other history was drawn."
        path = store.folder / operator / smallest.case.history.name
        raise _violated(head, _counterexample(smallest, "", 0), path, job)


def _smallest(
    law: ChangelogOf, violation: Violation, seed: int, store: FolderStore | None
) -> tuple[Counterexample, Path | None]:
    """Confirm a violation alone, and shrink it; save it before and after."""
    before = None if store is None else store.save(_counterexample(violation, NOT_RECHECKED, seed))
    smallest = _counterexample(*confirmed(law, violation), seed)
    if store is None or before is None:
        return smallest, None
    after = store.save(smallest)
    if before != after:
        store.forget(before)
    return smallest, after


def _counterexample(violation: Violation, unconfirmed: str, seed: int) -> Counterexample:
    sentence = Changelog().sentence(registration_of(violation.case.history.operator))
    return counterexample_of(Changelog.name, sentence, violation, unconfirmed, seed=seed, subject="job")


def _violated(head: str, counterexample: Counterexample, path: Path | None, job: object) -> Violated:
    """Return the failure on a counterexample: its text, where it is saved, and the test to paste."""
    lines = [head, counterexample_text(counterexample)]
    if path is not None:
        lines += [f"Saved in {path}, and replayed first the next time.", ""]
    test = None if job is None else test_to_paste(counterexample, job)
    if test is not None:
        lines += ["The test to paste:", "", test]
    return Violated("\n".join(lines), counterexample, job=job, path=path)

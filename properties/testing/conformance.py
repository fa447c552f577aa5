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
from ...reference.core.play import play
from ..counterexamples.counterexample import ALONE, Counterexample, verdict_sentence
from ..counterexamples.of_operators import FolderStore, saved
from ..counterexamples.text import counterexample_text, test_to_paste
from ..generators.coverage import draw_covering
from ..jobs.arguments import check_arguments
from ..jobs.counterexamples import SAVED, folder_of
from ..jobs.queries.contract import location
from ..jobs.verdicts import ConformanceReport, Inconclusive, Violated
from ..laws.base import REFERENCE, Comparison
from ..laws.on_spark.changelog import Changelog
from ..outcomes.outcomes import Difference, Outcome, differences
from ..registration.registration import registration_of
from ..runner.shrinking import shrink, size, trimmed, without_clock_advances
from ..system.arguments import checked, folder_at
from ..witnesses.base import Witness
from ..witnesses.spark.witness import JobWitness

if TYPE_CHECKING:
    from ..witnesses.spark.witness import Job

BATCHES = 6
"""How many batches a job's histories have."""
LEAST = 10
"""So few histories are no sample, whatever they cover."""
SHOWN = 5


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
    if folder is not None:
        _replay_saved(witness, options, operator, folder, job)
    drawn = draw_covering(operator, options, histories, seed, BATCHES)
    failing = differing(witness, drawn.histories)
    if failing:
        counterexample, path = _smallest(witness, failing[0], seed, folder, job)
        head = f"{len(failing)} of {histories} histories differ from the reference."
        raise _violated(head, counterexample, path, job)
    name = witness.name if job is None else location(job)
    missing = [*[f"{LEAST} histories at the least"] * (histories < LEAST), *drawn.missing]
    if missing:
        rest = len(missing) - SHOWN
        named = "; ".join([*missing[:SHOWN], *[f"and {rest} more"] * (rest > 0)])
        raise Inconclusive(
            f"inconclusive: {name} agrees with the reference on all histories ({histories}), but that shows "
            f"nothing of {operator}, for they leave unmet: {named}. Give more histories, such as "
            f"histories={max(300, 4 * histories)}, or another seed than {seed}.",
            job=name,
        )
    return ConformanceReport(name, operator, dict(options), histories, seed, drawn.covered)


def differing(witness: Witness, histories: Sequence[History]) -> list[History]:
    """Return the histories on which a witness differs from the reference."""
    return [one for one, found in zip(histories, _differences(witness, histories), strict=True) if found]


def _differences(witness: Witness, histories: Sequence[History]) -> list[list[Difference]]:
    """Return for each history where the witness's changelog differs from the reference's."""
    expected = [Outcome.of_play(history.name, play(history)) for history in histories]
    return [differences(*both) for both in zip(expected, witness.evaluate(histories), strict=True)]


def _replay_saved(witness: Witness, options: Mapping[str, Any], operator: str, folder: Path, job: object) -> None:
    """Replay the saved counterexamples, all at once; a warning names those of other options, which aren't replayed.

    Raises:
        Violated: The witness still differs on one.
        BadInput: One can't be read.
    """
    __tracebackhide__ = True
    histories, others = [], []
    for history, metadata in saved(folder, operator):
        if dict(history.options) == dict(options):
            histories.append(history)
        else:
            others.append(metadata.folder.name)
    if others:
        warnings.warn(
            f"saved under other options, and not replayed: {', '.join(others)} in {folder / operator}: "
            "remove what is of no more use",
            stacklevel=4,
        )
    outcomes = witness.evaluate(histories) if histories else []
    replayed = [_counterexample(witness, *one, 0) for one in zip(histories, outcomes, strict=True)]
    failing = [counterexample for counterexample in replayed if counterexample.differences]
    if failing:
        smallest = min(failing, key=lambda counterexample: size(counterexample.history))
        count = f"{len(failing)} of {len(histories)} saved counterexamples"
        head = f"{count} still differ from the reference; no other history was drawn."
        raise _violated(head, smallest, folder / operator / smallest.history.name, job)


def _smallest(
    witness: Witness, history: History, seed: int, folder: Path | None, job: object
) -> tuple[Counterexample, Path | None]:
    """Shrink a history on which a witness differs, where it differs on it alone too; save it before and after."""

    def fails(candidates: Sequence[History]) -> list[bool]:
        return [bool(found) for found in _differences(witness, candidates)]

    store = None if folder is None else FolderStore(folder, job)

    def written(history: History) -> tuple[Counterexample, Path | None]:
        counterexample = _counterexample(witness, history, witness.evaluate([history])[0], seed)
        return counterexample, None if store is None else store.save(counterexample)

    first, before = written(history)
    if not first.confirmed:
        return first, before
    smallest = shrink(history, fails)
    for plainer in (without_clock_advances(smallest), trimmed(smallest)):
        if plainer.lines != smallest.lines and fails([plainer])[0]:
            smallest = plainer
            break
    counterexample, after = written(smallest)
    if store is not None and before is not None and before != after:
        store.forget(before)
    return counterexample, after


def _counterexample(witness: Witness, history: History, outcome: Outcome, seed: int) -> Counterexample:
    """Make a counterexample of a witness's outcome of a history alone, and where that differs from the reference."""
    reference = Outcome.of_play(history.name, play(history))
    found = differences(reference, outcome)
    sides = (REFERENCE, reference), (witness.name, outcome)
    says = Changelog().sentence(registration_of(history.operator))
    said = verdict_sentence(says, Comparison(*sides, found)) if found else f"violated: {says}; but in its cohort only."
    unconfirmed = "" if found else ALONE
    return Counterexample(
        Changelog.name, said, history, *sides, found, bool(found), seed, subject="job", unconfirmed=unconfirmed
    )


def _violated(head: str, counterexample: Counterexample, path: Path | None, job: object) -> Violated:
    """Return the failure on a counterexample: its text, where it is saved, and the test to paste."""
    lines = [head, counterexample_text(counterexample)]
    if path is not None:
        lines += [f"Saved in {path}, and replayed first the next time.", ""]
    test = None if job is None else test_to_paste(counterexample, job)
    if test is not None:
        lines += ["The test to paste:", "", test]
    return Violated("\n".join(lines), counterexample, job=job, path=path)

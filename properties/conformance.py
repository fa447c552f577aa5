"""Checks one witness, a user's own job as a rule, against the reference of an operator, over drawn histories.

It says *conforms* by returning. It fails as *violated* on the smallest history found on which the witness differs, and
as *inconclusive* where it differs on none, but the histories leave a coverage goal unmet: then they show nothing.

A counterexample is kept in the folder of its test before it is shrunk, and asked first the next time.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..reference.errors import BadInput
from ..reference.histories import History, parse_history
from ..reference.operators import operator_named
from ..reference.play import play
from .coverage import draw_covering
from .findings import Finding, account, forget, save, sentence
from .laws import LAWS
from .outcomes import Difference, Outcome, differences
from .shrinking import shrink, size, trimmed, without_heartbeats
from .store import saved

if TYPE_CHECKING:
    from .spark_witness import Job

Witness: TypeAlias = Callable[[Sequence[History]], list[Outcome]]
"""Gives what comes out of each history."""

BATCHES = 6
"""How many batches a job's histories have."""
LEAST = 10
"""So few histories are no sample, whatever they cover."""
SHOWN = 5
KEPT = Path(".streamproof/jobs")
"""Where the counterexamples of jobs are kept, below the root folder of the tests."""


class Inconclusive(AssertionError):
    """Nothing differed, but the histories drawn leave some coverage goal unmet, so that they show nothing."""


def assert_conforms(
    job: Job,
    options: Mapping[str, Any],
    histories: int = 300,
    seed: int = 0,
    operator: str = "session_windows",
    *,
    folder: Path | None = None,
) -> None:
    """Check a streaming job against the reference over random, out-of-order histories, all in one query.

    Their times scale with the options' durations. They cover what `streamproof check` asks for: the situations of the
    operator, and for each duration that one of them tells it from one that is 1 ms longer or shorter.

    Args:
        job: Takes a streaming DataFrame with the columns key (string), value (as the options' aggregate wants it),
            timestamp (bigint, ms) and order (bigint, the order of arrival), and gives a streaming DataFrame in append
            mode with the columns key, window (struct of start and end; the end is the last record's timestamp), value
            and timestamp. A null value is a tombstone. A column `ordinal`, where there is one, orders a key's changes.
        options: The options that the job implements, as in a history file; durations in ms.
        histories: How many histories to draw.
        seed: What they are drawn from.
        operator: The operator's name.
        folder: Where its counterexamples are kept, and asked first; they are not kept without. The fixture `conforms`
            gives each test a folder of its own.

    Raises:
        AssertionError: The job differs from the reference; the message has the smallest history and both outcomes.
        Inconclusive: It doesn't differ, but the histories leave coverage goals unmet; the message names them.
        BadInput: The options are none of the operator's, there are no histories to draw, or a kept counterexample
            can't be read or written.
        StreamproofError: The query failed, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    check_witness(_on_spark(job), options, histories, seed, operator, folder=folder, job=job)


def assert_conforms_on(job: Job, history: str) -> None:
    """Check a streaming job against the reference on one history, given as the text of a history file.

    Raises:
        AssertionError: The job differs from the reference on it.
        BadInput: The text is no history.
        StreamproofError: The query failed, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    check_on(_on_spark(job), history)


def check_on(witness: Witness, text: str, name: str = "the job") -> None:
    """Check any witness on one history, as `assert_conforms_on` checks a job.

    Raises:
        AssertionError: It differs from the reference.
        BadInput: The text is no history.
    """
    __tracebackhide__ = True
    history = parse_history(text)
    finding = _finding(history, witness([history])[0], 0, name)
    if finding.differences:
        raise AssertionError(account(finding))


def kept_folder(root: Path, test: str) -> Path:
    """Give the folder of a test's counterexamples; the test is called by its node id, `tests/test_x.py::test_y[z]`."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", test)[-80:].strip("-")
    return root / KEPT / f"{readable}-{sha256(test.encode()).hexdigest()[:8]}"


def running_test() -> str | None:
    """Give the node id of the test that pytest is running, or None outside of tests."""
    running = os.environ.get("PYTEST_CURRENT_TEST")
    return None if running is None else running.rpartition(" ")[0]


def _on_spark(job: Job) -> Witness:
    from .spark_witness import Plan, answer

    return partial(answer, plan=Plan(job=job))


def check_witness(
    witness: Witness,
    options: Mapping[str, Any],
    histories: int = 300,
    seed: int = 0,
    operator: str = "session_windows",
    name: str = "the job",
    folder: Path | None = None,
    job: object = None,
) -> None:
    """Check any witness as `assert_conforms` checks a job; `name` is what messages call it, `job` what tests import.

    Raises:
        AssertionError: It differs from the reference.
        Inconclusive: It doesn't differ, but the histories leave coverage goals unmet.
        BadInput: The options are none of the operator's, or there are no histories to draw.
    """
    __tracebackhide__ = True
    operator_named(operator).declare(options)
    if not isinstance(histories, int) or histories < 1:
        raise BadInput(f"histories is {histories!r}: give a whole number, 1 or more; 300 is a good one")
    if folder is not None:
        _ask_kept(witness, options, operator, name, folder, job)
    drawn = draw_covering(operator, options, histories, seed, BATCHES)
    failing = differing(witness, drawn.histories)
    if failing:
        finding, kept = _smallest(witness, failing[0], seed, name, folder, job)
        raise AssertionError(
            f"{len(failing)} of {histories} histories differ from the reference.\n{_told(finding, kept, job)}"
        )
    missing = [*[f"{LEAST} histories at the least"] * (histories < LEAST), *drawn.missing]
    if missing:
        rest = len(missing) - SHOWN
        named = "; ".join([*missing[:SHOWN], *[f"and {rest} more"] * (rest > 0)])
        raise Inconclusive(
            f"inconclusive: {name} agrees with the reference on all histories ({histories}), but that shows nothing of "
            f"{operator}, for they leave unmet: {named}. Give more histories, such as "
            f"histories={max(300, 4 * histories)}, or another seed than {seed}."
        )


def differing(witness: Witness, histories: Sequence[History]) -> list[History]:
    """Give the histories on which a witness differs from the reference."""
    parted = _parted(witness, histories)
    return [history for history, found in zip(histories, parted, strict=True) if found]


def _parted(witness: Witness, histories: Sequence[History]) -> list[list[Difference]]:
    """Give for each history where the witness's changelog differs from the reference's."""
    expected = [Outcome.of_play(history.name, play(history)) for history in histories]
    return [differences(*both) for both in zip(expected, witness(histories), strict=True)]


def _ask_kept(
    witness: Witness, options: Mapping[str, Any], operator: str, name: str, folder: Path, job: object
) -> None:
    """Ask the kept counterexamples again, all at once; those of other options are named, for they say nothing here.

    Raises:
        AssertionError: The witness still differs on one.
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
            f"kept under other options, and not asked: {', '.join(others)} in {folder / operator}: "
            "remove what is of no more use",
            stacklevel=4,
        )
    outcomes = witness(histories) if histories else []
    asked = [_finding(history, outcome, 0, name) for history, outcome in zip(histories, outcomes, strict=True)]
    failing = [finding for finding in asked if finding.differences]
    if failing:
        smallest = min(failing, key=lambda finding: size(finding.history))
        told = _told(smallest, folder / operator / smallest.history.name, job)
        count = f"{len(failing)} of {len(histories)} kept counterexamples"
        raise AssertionError(f"{count} still differ from the reference; no other history was drawn.\n{told}")


def _smallest(
    witness: Witness, history: History, seed: int, name: str, folder: Path | None, job: object
) -> tuple[Finding, Path | None]:
    """Shrink a history on which a witness differs, where it differs on it alone too; keep it before and after."""

    def fails(candidates: Sequence[History]) -> list[bool]:
        return [bool(found) for found in _parted(witness, candidates)]

    def keep(finding: Finding) -> Path | None:
        return (
            None
            if folder is None
            else save(finding, folder, test_to_paste(finding, job) if finding.confirmed else None)
        )

    first = _finding(history, witness([history])[0], seed, name)
    before = keep(first)
    if not first.confirmed:
        return first, before
    smallest = shrink(history, fails)
    for plainer in (without_heartbeats(smallest), trimmed(smallest)):
        if plainer.lines != smallest.lines and fails([plainer])[0]:
            smallest = plainer
            break
    finding = _finding(smallest, witness([smallest])[0], seed, name)
    after = keep(finding)
    if before is not None and before != after:
        forget(before)
    return finding, after


def _finding(history: History, outcome: Outcome, seed: int, name: str) -> Finding:
    """Make a finding of what a witness gave for a history alone, and where that differs from the reference."""
    reference = Outcome.of_play(history.name, play(history))
    found = differences(reference, outcome)
    law = LAWS["changelog"]
    said = sentence(law.sentence, name, found[0]) if found else f"violated: {law.sentence}; but in its cohort only."
    sides = ("reference", reference), (name, outcome)
    return Finding(law.name, said, history, *sides, found, bool(found), seed, subject="job")


def _told(finding: Finding, kept: Path | None, job: object) -> str:
    """The account of a counterexample, where it is kept, and the test to paste."""
    lines = [account(finding)]
    if kept is not None:
        lines += [f"Kept in {kept}, and asked first the next time.", ""]
    if finding.confirmed and job is not None:
        lines += ["The test to paste:", "", test_to_paste(finding, job)]
    return "\n".join(lines)


def test_to_paste(finding: Finding, job: object) -> str:
    """Give a pytest test that fails as long as the job differs on the counterexample."""
    name, module = getattr(job, "__qualname__", ""), getattr(job, "__module__", "")
    imported, called, hint = "", "my_job", "  # the job that was checked"
    if name.isidentifier() and module != "__main__":
        imported, called, hint = f"from {module} import {name}\n", name, ""
    # A history's text is ASCII, and in JSON three quotes never stand in a row.
    return (
        f"{imported}from streamproof.properties.conformance import assert_conforms_on\n\n"
        f'HISTORY = r"""\n{finding.history.to_text()}"""\n\n\n'
        f"def test_{finding.name.replace('-', '_')}() -> None:\n"
        f"    assert_conforms_on({called}, HISTORY){hint}\n"
    )

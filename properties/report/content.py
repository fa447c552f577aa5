"""The content of a report as plain data: counts and verdicts of laws, and counterexamples.

A report is created from checks of operators, users' jobs or specifications, and written as HTML, text, JSON, JUnit XML
and SARIF. A report contains the counterexamples, but only the number of all other histories. Texts are unescaped, as
users wrote them; the functions that write files escape the texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..checking.checked import Checked, VerdictName
from ..counterexamples.tables import RowAndSide
from ..counterexamples.text import ComparedLine, versions

Unit: TypeAlias = Literal["ms", "us"]
_LINE_OF_FILE = re.compile(r"\(([^()]+):(\d+)\)")
_SCRIPT = re.compile(r"[^,]+?\.(?:py|ipynb|sql|ya?ml)(?=$|[, ])")
StepKind: TypeAlias = Literal["record", "tombstone", "advance", "delivery"]


@dataclass(frozen=True)
class DrawnArrival:
    """An arrival of a history, ready for drawing.

    Attributes:
        batch: The arrival's batch, from 0.
        kind: A record, a table's tombstone, a clock advance, or a delivery of a message.
        text: The text beside the arrival's mark.
        time: The arrival's event time; None if an arrival has no event time.
        clock: The clock's time at the arrival; None if unknown.
        remark: The reason why the arrival has no effect, such as `dropped: late`; empty otherwise.
        number: The arrival's number, from 0.
    """

    batch: int
    kind: StepKind
    text: str
    time: int | None
    clock: int | None
    remark: str
    number: int


@dataclass(frozen=True)
class Timeline:
    """A history, ready for drawing: event time against arrival.

    Attributes:
        steps: The arrivals, in order.
        batches: The number of batches.
        clock: The name of the clock, such as `watermark`.
        last_clock: The clock at the end.
        marked_batch: The first batch in which the outcomes differ; None for the end.
        marked_step: The first arrival at which the outcomes differ, if known.
        unit: The unit of times: milliseconds, or microseconds since 1970.
        names: The name of each batch; if empty, batches are numbered from 0.
    """

    steps: Sequence[DrawnArrival]
    batches: int
    clock: str
    last_clock: int | None = None
    marked_batch: int | None = None
    marked_step: int | None = None
    unit: Unit = "ms"
    names: Sequence[str] = ()

    def name_of(self, batch: int) -> str:
        """Return the name of a batch, by its index."""
        return self.names[batch] if self.names else f"batch {batch}"


@dataclass(frozen=True)
class Vote:
    """A witness's vote on a counterexample's history.

    Attributes:
        witness: The witness.
        says: A phrase that says with which outcome the witness agrees, or why the witness didn't run.
        agrees: Whether the witness agrees with the expected outcome; None if the witness didn't run, or agrees with
            both outcomes.
    """

    witness: str
    says: str
    agrees: bool | None


@dataclass(frozen=True)
class Found:
    """A counterexample.

    Attributes:
        subject: The subject of the check, such as `session_windows, on Spark`.
        law: The broken law.
        sentence: The violation in words: the law, the key and batch, the expected and the actual outcome.
        expected_by: The witness with the expected outcome.
        actual_by: The witness with the actual outcome.
        where: The place of the first difference, such as `key a, batch 0`.
        timeline: The history, ready for drawing.
        compared: The expected and the actual outcome, side by side.
        votes: The vote of each witness.
        history: The whole history as a file.
        original: The original history of a variant, as a file; empty if the history isn't a variant.
        test: The test to paste; empty if there is none.
        unconfirmed: The reason why the counterexample isn't confirmed; empty if confirmed.
        path: The path of the saved counterexample; empty if not saved.
        seed: The seed of the draw.
        file: The job's file; empty if unknown.
        line: The job's line in the file; None if unknown.
        arrivals: The lines of the history, as objects.
        rows: The expected and the emitted rows, as in a history file; empty for an operator.
    """

    subject: str
    law: str
    sentence: str
    expected_by: str
    actual_by: str
    where: str
    timeline: Timeline
    compared: Sequence[ComparedLine]
    votes: Sequence[Vote] = ()
    history: str = ""
    original: str = ""
    test: str = ""
    unconfirmed: str = ""
    path: str = ""
    seed: int | None = None
    file: str = ""
    line: int | None = None
    arrivals: Sequence[Mapping[str, Any]] = ()
    rows: Sequence[RowAndSide] = ()

    @property
    def first(self) -> ComparedLine | None:
        """Return the first line that differs."""
        return next((line for line in self.compared if line.differ), None)


@dataclass(frozen=True)
class Chart:
    """A behaviour found by a model checker, as a sequence chart.

    Attributes:
        subject: The model.
        law: The violated property.
        sentence: The property's text.
        svg: The chart, an SVG element with escaped texts.
        steps: The behaviour as text, with a line for each step and change.
        is_expected: Whether the model should violate the property.
    """

    subject: str
    law: str
    sentence: str
    svg: str
    steps: Sequence[str]
    is_expected: bool = False


@dataclass(frozen=True)
class Content:
    """A report.

    Attributes:
        verdict: The verdict of all checks.
        checks: The checks.
        found: The counterexamples.
        charts: The counterexamples of specifications.
        versions: The versions of the software involved.
        command: The command that repeats the checks; empty if there is none.
        missing: The missing checks, with the reasons, one sentence each; empty if all checks were completed.
    """

    verdict: VerdictName
    checks: Sequence[Checked]
    found: Sequence[Found] = ()
    charts: Sequence[Chart] = ()
    versions: str = ""
    command: str = ""
    missing: Sequence[str] = ()

    @property
    def counts(self) -> str:
        """Return the number of checks with each verdict, in words."""
        if len(self.checks) == 1:
            return "1 check"
        order: Sequence[VerdictName] = ("violated", "inconclusive", "conforms", "not checked")
        counts = Counter(check.verdict for check in self.checks)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
        return f"{len(self.checks)} checks, {said or 'none begun'}"


def place_of(job: str) -> tuple[str, int | None]:
    """Return the file and line in a job's name, such as `visits (jobs.py:9)`, or a script's path; otherwise no file."""
    if (found := _LINE_OF_FILE.search(job)) is not None:
        return found[1], int(found[2])
    script = _SCRIPT.match(job)
    return ("", None) if script is None else (script[0], None)


def content_of(
    checks: Sequence[Checked],
    found: Sequence[Found] = (),
    charts: Sequence[Chart] = (),
    command: str = "",
    ended: str = "",
) -> Content:
    """Return a report of checks, which conforms only if all checks conform.

    Args:
        checks: The checks.
        found: Their counterexamples.
        charts: The counterexamples of specifications.
        command: The command that repeats the checks; empty if there is none.
        ended: The reason why the checks ended early, in words; empty if all checks ended normally.
    """
    verdicts = {check.verdict for check in checks}
    verdict: VerdictName = "conforms" if verdicts == {"conforms"} else "inconclusive"
    verdict = "violated" if "violated" in verdicts else verdict
    missing = [f"{check.name}: {check.unfinished}" for check in checks if check.unfinished]
    return Content(verdict, checks, found, charts, versions(), command, [ended, *missing] if ended else missing)

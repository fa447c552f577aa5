"""What a report says, whatever was checked: counts and verdicts of laws, and counterexamples; as plain data.

It is made of the check of an operator, of a user's job or of a specification, and written as HTML, text, JSON and
JUnit XML. Histories go in as counts, but for those of counterexamples. Texts are as users wrote them: what writes them
escapes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..checking.checked import Checked, Verdict
from ..counterexamples.text import ComparedLine, versions

Unit: TypeAlias = Literal["ms", "us"]
Kind: TypeAlias = Literal["record", "tombstone", "advance", "delivery"]


@dataclass(frozen=True)
class Step:
    """An arrival of a history, as it is drawn.

    Attributes:
        batch: Its batch, from 0.
        kind: A record, a table's tombstone, a clock advance, or a delivery of a message.
        text: What is written beside it.
        time: Its event time; None where it has none.
        clock: What the clock said when it was judged; None where that isn't known.
        remark: Why it doesn't count, such as `dropped: late`; empty where it does.
        number: The arrival, from 0.
    """

    batch: int
    kind: Kind
    text: str
    time: int | None
    clock: int | None
    remark: str
    number: int


@dataclass(frozen=True)
class Timeline:
    """A history, as it is drawn: event time against arrival.

    Attributes:
        steps: What arrives, in order.
        batches: How many batches there are.
        clock: What the clock is called, such as `watermark`.
        last_clock: What it says at the end.
        marked_batch: The batch in which the outcomes differ first; None: at the end.
        marked_step: The arrival at which they do, where that is known.
        unit: The unit of times: milliseconds, or microseconds since 1970.
    """

    steps: Sequence[Step]
    batches: int
    clock: str
    last_clock: int | None = None
    marked_batch: int | None = None
    marked_step: int | None = None
    unit: Unit = "ms"


@dataclass(frozen=True)
class Vote:
    """What a witness says of a counterexample's history.

    Attributes:
        witness: The witness.
        says: Whether that is what is expected, or why it wasn't asked.
        agrees: Whether it is what is expected; None where it wasn't asked, or says the same as both.
    """

    witness: str
    says: str
    agrees: bool | None


@dataclass(frozen=True)
class Found:
    """A counterexample.

    Attributes:
        subject: What was checked, such as `session_windows, on Spark`.
        law: What is broken.
        sentence: The reason in words: what should hold, where it fails, what was expected and what came.
        expected_by: Who says what is expected.
        actual_by: From whom it came.
        where: Where they differ first, such as `key a, batch 0`.
        timeline: The history, as it is drawn.
        compared: What is expected and what came, side by side.
        votes: What each witness says.
        history: The history as a file, whole.
        original: The history that it is a variant of, as a file; empty where it is none.
        test: The test to paste; empty where there is none.
        unconfirmed: Why it isn't confirmed, if it isn't.
        path: Where it is saved; empty where it isn't.
        seed: What it was drawn from.
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

    @property
    def first(self) -> ComparedLine | None:
        """The first line that differs."""
        return next((line for line in self.compared if line.differ), None)


@dataclass(frozen=True)
class Chart:
    """A behaviour that a model checker found, as a sequence chart.

    Attributes:
        subject: The model.
        law: The property that is violated.
        sentence: What it says.
        svg: The chart, an SVG element whose texts are escaped.
        steps: The behaviour as text, a line for each step and change.
        is_expected: Whether the model should violate it.
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
        verdict: The verdict of all.
        checks: What was checked.
        found: The counterexamples.
        charts: Those of specifications.
        versions: The versions that it depends on.
        command: The command that does it again; empty where there is none.
        missing: What is missing, and why, a sentence each; none where everything was finished.
    """

    verdict: Verdict
    checks: Sequence[Checked]
    found: Sequence[Found] = ()
    charts: Sequence[Chart] = ()
    versions: str = ""
    command: str = ""
    missing: Sequence[str] = ()

    @property
    def counts(self) -> str:
        """How many checks came to which verdict, in words."""
        if len(self.checks) == 1:
            return "1 check"
        order: Sequence[Verdict] = ("violated", "inconclusive", "conforms", "not checked")
        counts = Counter(check.verdict for check in self.checks)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
        return f"{len(self.checks)} checks, {said or 'none begun'}"


MARKS: Mapping[Verdict, str] = {"conforms": "✓", "violated": "✗", "inconclusive": "?", "not checked": "-"}
"""What stands before a verdict, so that it is seen without colour."""


def content_of(
    checks: Sequence[Checked],
    found: Sequence[Found] = (),
    charts: Sequence[Chart] = (),
    command: str = "",
    ended: str = "",
) -> Content:
    """Return a report of checks, which conforms only if all of them do.

    Args:
        checks: The checks.
        found: Their counterexamples.
        charts: Those of specifications.
        command: The command that does the same again; empty where there is none.
        ended: What ended the checks before they were done, in words; empty where nothing did.
    """
    verdicts = {check.verdict for check in checks}
    verdict: Verdict = "conforms" if verdicts == {"conforms"} else "inconclusive"
    verdict = "violated" if "violated" in verdicts else verdict
    missing = [f"{check.name}: {check.unfinished}" for check in checks if check.unfinished]
    return Content(verdict, checks, found, charts, versions(), command, [ended, *missing] if ended else missing)

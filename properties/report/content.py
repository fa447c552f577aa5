"""What a report says, whatever was checked: counts and verdicts of laws, and counterexamples; as plain data.

It is made of the check of an operator, of a user's job or of a specification, and written as HTML, text, JSON and
JUnit XML. Histories go in as counts, but for those of counterexamples. Texts are as users wrote them: what writes them
escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["conforms", "violated", "inconclusive", "not checked"]
Unit: TypeAlias = Literal["ms", "us"]
Kind: TypeAlias = Literal["record", "tombstone", "advance", "delivery"]


@dataclass(frozen=True)
class LawCount:
    """A law, and what came of it.

    Attributes:
        law: The law's name.
        says: The law, as a sentence.
        witnesses: The witnesses whose answers it compares.
        verdict: Its verdict.
        histories: How many histories it judged.
        violations: On how many of them it is broken.
        why: Why it is inconclusive or not checked, if it is.
        met: In how many of its histories each of its coverage goals was met.
        not_met: Its coverage goals that no history met.
    """

    law: str
    says: str
    witnesses: Sequence[str]
    verdict: Verdict
    histories: int = 0
    violations: int = 0
    why: str = ""
    met: Mapping[str, int] = field(default_factory=dict)
    not_met: Sequence[str] = ()


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
class Compared:
    """A line of what is expected and what came, side by side.

    Attributes:
        when: `batch 0`, `arrival 3` or `at the end`.
        expected: What is expected; empty for nothing.
        actual: What came.
        differ: Whether that is otherwise.
    """

    when: str
    expected: str
    actual: str
    differ: bool


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
    compared: Sequence[Compared]
    votes: Sequence[Vote] = ()
    history: str = ""
    original: str = ""
    test: str = ""
    unconfirmed: str = ""
    path: str = ""
    seed: int | None = None

    @property
    def first(self) -> Compared | None:
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
class Checked:
    """What was checked, and what each law says of it.

    Attributes:
        name: What it is called, such as `session_windows, on Spark`.
        verdict: Its verdict.
        laws: The laws.
        histories: How many histories were run, or how many states were found.
        queries: In how many streaming queries.
        seconds: How long it took.
        seeds: The seeds, in words.
        covered: In how many drawn histories each coverage goal was met.
        notes: What else is to be said, a sentence each.
        unfinished: What is missing, if it wasn't finished: `not begun` or `not finished`.
        counted: What `histories` counts.
    """

    name: str
    verdict: Verdict
    laws: Sequence[LawCount]
    histories: int = 0
    queries: int = 0
    seconds: float = 0.0
    seeds: str = ""
    covered: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    unfinished: str = ""
    counted: Literal["histories", "distinct states"] = "histories"


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


MARKS: Mapping[Verdict, str] = {"conforms": "✓", "violated": "✗", "inconclusive": "?", "not checked": "-"}
"""What stands before a verdict, so that it is seen without colour."""


def sentence_of(verdict: Verdict, checks: Sequence[Checked]) -> str:
    """Return the verdict of a report in a sentence: how many checks came to which."""
    order: Sequence[Verdict] = ("violated", "inconclusive", "conforms", "not checked")
    counts = {one: sum(check.verdict == one for check in checks) for one in order}
    said = ", ".join(f"{count} {one}" for one, count in counts.items() if count)
    return f"{verdict}: 1 check" if len(checks) == 1 else f"{verdict}: {len(checks)} checks, {said or 'none begun'}"


def missing(checks: Sequence[Checked], ended: str) -> list[str]:
    """Return what a report lacks, a sentence each: why, and which checks aren't finished.

    Args:
        checks: The checks.
        ended: What ended the command before it was done, in words; empty where nothing did.
    """
    return [ended, *(f"{check.name}: {check.unfinished}" for check in checks if check.unfinished)] if ended else []

"""A counterexample: a history that breaks a law, with all data for saving it, and for checking the law on it again."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from ...reference.core.history import History
from ..generators.columns.histories.text import to_text
from ..generators.columns.model import JobHistory, Source
from ..laws.all import Subject
from ..laws.base import REFERENCE, Comparison
from ..laws.case import Case
from ..outcomes.notation import both_shown
from ..outcomes.outcomes import Difference, are_same
from ..system.visible import visible
from ..witnesses.run_options import RunOptions
from .tables import BatchWatermarks, RowAndSide

ALONE = "outside its cohort, the history conforms, so the histories of the cohort aren't independent"
NOT_RECHECKED = "the check ended before it rechecked the law"
AnyHistory = TypeVar("AnyHistory", History, JobHistory)
NO_SIDE: tuple[str, Any] = ("", None)


@dataclass(frozen=True, kw_only=True)
class Counterexample(Generic[AnyHistory]):
    """A history that breaks a law: two witnesses disagree, or a job's output differs from the expected output.

    A counterexample read from its folder contains no outcomes, and nothing derived from outcomes.

    Attributes:
        law: The name of the broken law; for a job, the invariant or the oracle.
        history: The smallest history found.
        subject: The subject of the check: `spark`, `reference`, or a `job`.
        mutant: The name of the mutant that replaced the operator's logic; None without a mutant.
        original: The original history, if the law compares a variant with its original.
        way: The run options of the law's second run, if any; for a job, the run options of the query. None if not
            saved.
        confirmed: Whether the history also breaks the law when run alone, outside its cohort (the histories that share
            a query).
        unconfirmed: The reason why the counterexample isn't confirmed; empty if confirmed.
        seed: The seed of the check; None if not saved.
        versions: The versions of streamproof and its libraries in the check; empty if not saved.
        folder: The folder of a saved counterexample.
        sentence: The verdict in one sentence.
        expected: The witness with the expected outcome, and the outcome; for a job, the oracle and an `Expected`.
        actual: The other witness and its outcome; for a job, the job's name and the rows of each batch; for a sink, the
            final rows in a single list.
        differences: The differences between the outcomes; for a job, the first difference, or none if a repeated run
            didn't differ.
        sources: The job's inputs; empty for an operator.
        rows: The expected and the emitted rows of a job, side by side; for a table, up to the first difference.
        watermarks: The watermarks of each batch of a job; empty if unknown.
        compared: What the check of a job compared, and with which tolerance, in words.
        is_of_run: Whether the history is from a run in production; final batches without rows aren't shown.
    """

    law: str
    history: AnyHistory
    subject: Subject | Literal["job"] = "spark"
    mutant: str | None = None
    original: AnyHistory | None = None
    way: RunOptions | None = None
    confirmed: bool = True
    unconfirmed: str = ""
    seed: int | None = None
    versions: str = ""
    folder: Path = Path()
    sentence: str = ""
    expected: tuple[str, Any] = NO_SIDE
    actual: tuple[str, Any] = NO_SIDE
    differences: Sequence[Difference] = ()
    sources: Sequence[Source] = ()
    rows: Sequence[RowAndSide] = ()
    watermarks: Sequence[BatchWatermarks] = ()
    compared: str = ""
    is_of_run: bool = False

    @property
    def case(self: Counterexample[History]) -> Case:
        """The history, its original and its run options, on which an operator's law is checked again."""
        return Case(self.history, self.original, self.way)

    @property
    def history_text(self) -> str:
        """The text of the history's file."""
        return self._text_of(self.history)

    @property
    def original_text(self) -> str | None:
        """The text of the original history's file; None without an original."""
        return None if self.original is None else self._text_of(self.original)

    def _text_of(self, history: AnyHistory) -> str:
        return to_text(history, self.sources) if isinstance(history, JobHistory) else history.to_text()

    @property
    def name(self) -> str:
        """The name of the counterexample's folder: the law (or `job`), and 12 digits of a hash of its identity."""
        if self.subject == "job":
            return f"job-{sha256(self.history_text.encode()).hexdigest()[:12]}"
        content: list[object] = [self.law, self.subject, self.mutant, self.history_text, self.original_text]
        content += [] if self.way is None else [self.way.to_json()]
        digest = sha256(json.dumps(content).encode()).hexdigest()[:12]
        return f"{re.sub(r'[^A-Za-z0-9_]+', '-', self.law).strip('-')}-{digest}"

    @property
    def difference(self) -> Difference | None:
        """The first difference; None without a difference."""
        return next(iter(self.differences), None)

    @property
    def awaits_recheck(self) -> bool:
        """Whether the law must still be rechecked, and the history shrunk."""
        return self.unconfirmed == NOT_RECHECKED


def verdict_sentence(says: str, comparison: Comparison) -> str:
    """Return the verdict in one sentence: the law, the key and batch of the difference, both outcomes.

    Args:
        says: The law's sentence.
        comparison: The comparison that found the violation; it contains at least one difference.
    """
    difference = comparison.differences[0]
    where = "at the end" if difference.when is None else f"in batch {difference.when}"
    left, right = difference.expected, difference.actual
    after = ""
    if isinstance(left, list) and isinstance(right, list):
        pairs = list(zip_longest(left, right))
        same = next((number for number, pair in enumerate(pairs) if not are_same(*pair)), 0)
        left, right = pairs[same] if pairs else (None, None)
        after = f", after {same} equal changes," if same else ""
    ours, theirs = both_shown(left, right)
    expected = comparison.expected[0]
    return (
        f"violated: {says}; but for key {visible(difference.key)} {where}{after} "
        f"{'the reference' if expected == REFERENCE else expected} emits {ours}, and {comparison.actual[0]} {theirs}."
    )

"""A counterexample: a history on which a law is broken, with all that is needed to ask again, and to save it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

from ...reference.core.history import History
from ..laws.all import Subject
from ..laws.base import REFERENCE, Comparison, Violation
from ..outcomes.outcomes import Difference, Outcome, are_same
from ..outcomes.shown import both_shown
from ..system.visible import visible
from ..witnesses.run_options import RunOptions

ALONE = "alone, outside its cohort, the history doesn't show it: what travels together isn't independent"
NOT_RECHECKED = "the law wasn't asked again before the check ended"


@dataclass(frozen=True)
class Counterexample:
    """A history on which two witnesses disagree.

    Attributes:
        law: The name of the law that is broken.
        sentence: The verdict in one sentence.
        history: The smallest history that was found.
        left: What is expected, and by whom.
        right: What came, and from whom.
        differences: Where they differ.
        confirmed: Whether the history alone, outside its cohort, shows it too, when the law is asked again.
        seed: The seed of the run.
        subject: What was checked.
        mutant: The mutant that stood in for the operator's own logic, if any.
        original: The history that `history` is a variant of, where the law relates the two.
        unconfirmed: Why it isn't confirmed, if it isn't.
        way: How the law ran it again, if it did.
    """

    law: str
    sentence: str
    history: History
    left: tuple[str, Outcome]
    right: tuple[str, Outcome]
    differences: Sequence[Difference]
    confirmed: bool
    seed: int
    subject: Subject = "spark"
    mutant: str | None = None
    original: History | None = None
    unconfirmed: str = ""
    way: RunOptions | None = None

    @property
    def name(self) -> str:
        """Its name for files; as `name_of`."""
        return name_of(self, self.history)


@dataclass(frozen=True)
class Metadata:
    """What is known of a saved counterexample besides its history.

    Attributes:
        folder: Where it is.
        law: The name of the law that it breaks.
        subject: What was checked.
        operator: The operator's name.
        mutant: The mutant that stood in for the operator's own logic, if any.
        confirmed: Whether the history alone, outside its cohort, broke the law too.
        seed: The seed of the run that found it; None where it was saved without.
        versions: The versions that it was found with; empty where it was saved without.
        original: The history that its history is a metamorphic variant of, where the law relates the two.
        way: How the law ran it again, if it did; None where it was saved without.
    """

    folder: Path
    law: str
    subject: Subject
    operator: str
    mutant: str | None = None
    confirmed: bool = True
    seed: int | None = None
    versions: str = ""
    original: History | None = None
    way: RunOptions | None = None


Saved: TypeAlias = tuple[History, Metadata]


def counterexample_of(
    law: str,
    sentence: str,
    violation: Violation,
    unconfirmed: str,
    *,
    seed: int,
    subject: Subject = "spark",
    mutant: str | None = None,
) -> Counterexample:
    """Make a counterexample of a violation.

    Args:
        law: The name of the law that is broken.
        sentence: What the law says of the operator.
        violation: The case on which it is broken.
        unconfirmed: Why it isn't confirmed; empty where it is.
        seed: The seed of the run.
        subject: What was checked.
        mutant: The mutant that stood in for the operator's own logic, if any.
    """
    case, comparison = violation.case, violation.comparison
    return Counterexample(
        law,
        verdict_sentence(sentence, comparison),
        case.history,
        comparison.expected,
        comparison.actual,
        comparison.differences,
        not unconfirmed,
        seed,
        subject=subject,
        mutant=mutant,
        original=case.original,
        unconfirmed=unconfirmed,
        way=case.way,
    )


def verdict_sentence(says: str, comparison: Comparison) -> str:
    """Return the verdict in one sentence: what should hold, where it fails, what was expected by whom and what came.

    Args:
        says: What the law says.
        comparison: The broken case's comparison; with differences.
    """
    difference = comparison.differences[0]
    where = "at the end" if difference.when is None else f"in batch {difference.when}"
    left, right = difference.left, difference.right
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


def name_of(counterexample: Counterexample | Metadata, history: History) -> str:
    """Return a counterexample's name for files: its law, and 12 digits of a hash of what makes it that counterexample.

    Args:
        counterexample: The counterexample, or its metadata.
        history: Its history.
    """
    law, original, way = counterexample.law, counterexample.original, counterexample.way
    content: list[object] = [law, counterexample.subject, counterexample.mutant, history.to_text()]
    content.append(None if original is None else original.to_text())
    content += [] if way is None else [way.to_json()]
    digest = sha256(json.dumps(content).encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_]+', '-', law).strip('-')}-{digest}"

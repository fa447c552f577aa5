"""A counterexample: a history on which a law is broken, with everything needed to save it and to ask again."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from ...reference.core.history import History
from ..laws.all import Subject
from ..laws.base import REFERENCE, Comparison
from ..laws.case import Case
from ..outcomes.notation import both_shown
from ..outcomes.outcomes import Difference, Outcome, are_same
from ..system.visible import visible
from ..witnesses.run_options import RunOptions

ALONE = "alone, outside its cohort, the history doesn't show it: what travels together isn't independent"
NOT_RECHECKED = "the law wasn't asked again before the check ended"


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A counterexample as it is saved: the history and its metadata.

    Attributes:
        law: The name of the law that is broken.
        history: The smallest history that was found.
        subject: What was checked: `spark` or `reference`.
        mutant: The mutant that replaced the operator's own logic, if any.
        original: The history that `history` is a variant of, if the law relates the two.
        way: How the law ran it again, if it did; None if it was saved without.
        confirmed: Whether the history breaks the law alone, outside its cohort, too.
        seed: The seed of the run; None if it was saved without.
        versions: The versions that it was found with; empty if it was saved without.
        folder: Its folder, once it is saved.
    """

    law: str
    history: History
    subject: Subject = "spark"
    mutant: str | None = None
    original: History | None = None
    way: RunOptions | None = None
    confirmed: bool = True
    seed: int | None = None
    versions: str = ""
    folder: Path = Path()

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self.history.operator

    @property
    def case(self) -> Case:
        """The case for asking the law again."""
        return Case(self.history, self.original, self.way)

    @property
    def name(self) -> str:
        """Its name for files: its law, and 12 digits of a hash of its identity."""
        content: list[object] = [self.law, self.subject, self.mutant, self.history.to_text()]
        content.append(None if self.original is None else self.original.to_text())
        content += [] if self.way is None else [self.way.to_json()]
        digest = sha256(json.dumps(content).encode()).hexdigest()[:12]
        return f"{re.sub(r'[^A-Za-z0-9_]+', '-', self.law).strip('-')}-{digest}"


@dataclass(frozen=True, kw_only=True)
class Counterexample(Saved):
    """A history on which two witnesses disagree.

    Attributes:
        sentence: The verdict in one sentence.
        left: The witness with the expected outcome, and that outcome.
        right: The other witness, and its outcome.
        differences: The differences between them.
        unconfirmed: The reason why it isn't confirmed, if it isn't.
    """

    sentence: str
    left: tuple[str, Outcome]
    right: tuple[str, Outcome]
    differences: Sequence[Difference]
    unconfirmed: str = ""

    @property
    def awaits_recheck(self) -> bool:
        """Whether the law is still to be asked again about it, and the history to be shrunk."""
        return self.unconfirmed == NOT_RECHECKED


def verdict_sentence(says: str, comparison: Comparison) -> str:
    """Return the verdict in one sentence: the law, where it fails, the expected and the actual outcome.

    Args:
        says: The law's sentence.
        comparison: The broken case's comparison; with differences.
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

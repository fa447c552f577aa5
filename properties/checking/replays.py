"""Replay saved counterexamples by the law that each counterexample broke."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...reference.core.errors import MissingTool
from ...reference.core.history import History
from ..counterexamples.counterexample import Counterexample
from ..laws.all import LAWS, Subject
from ..laws.base import OWN, CannotRecheck, Comparison, Law
from ..laws.case import Case
from ..witnesses.spark.witness import QueryWitness
from .running import OnStep

Replayed: TypeAlias = tuple[Counterexample[History], Comparison]
"""A replayed counterexample, the law that judged the replay, and the differences; without differences, the law
holds.
"""


def replay(
    saved: Sequence[Counterexample[History]],
    laws: Mapping[str, Law],
    subject: Subject,
    progress: OnStep,
    witness: QueryWitness = OWN,
) -> Iterator[Replayed]:
    """Replay saved counterexamples, one law after the other, in shared queries where possible.

    On Spark, the changelog law judges a counterexample whose own law can't be rechecked. If no law can judge it,
    `progress` receives the reason.

    Args:
        saved: The saved counterexamples of a store.
        laws: The laws of the check, by their names.
        subject: The implementation that the check runs: `spark` or `reference`.
        progress: The callback that receives the name of each step before the step starts.
        witness: Runs on Spark.

    Raises:
        StreamproofError: Spark doesn't start, or a query fails.
    """
    by_law: dict[str, list[Counterexample[History]]] = {}
    for one in saved:
        by_law.setdefault(_law_of(one, laws, subject), []).append(one)
    for name, of_law in by_law.items():
        progress(f"replaying {len(of_law)} saved counterexample{'s' * (len(of_law) > 1)} of {name!r}")
        law = laws.get(name) or LAWS[subject].get(name)
        if law is None or name not in laws:
            for one in of_law:
                progress(f"not replayed: {one.folder}: this check doesn't include the law {name!r}")
            continue
        try:
            yield from _asked(law, of_law, witness)
        except CannotRecheck:
            for one in of_law:
                yield from _alone(law, one, laws, subject, progress, witness)
        except MissingTool as missing:
            if subject != "reference":
                raise
            progress(f"not replayed: {missing}")


def _law_of(saved: Counterexample[History], laws: Mapping[str, Law], subject: Subject) -> str:
    """Return the law that the counterexample broke; on Spark, return the nearest law if the broken law can't be
    rechecked.
    """
    has_schedule = saved.history.has_schedule
    asked = saved.law in laws and (saved.law == "schedules") == has_schedule
    if saved.law in laws and laws[saved.law].needs_original and saved.original is None:
        asked = False  # the file of an earlier version lacks the original
    if asked or subject != "spark":
        return saved.law
    return "schedules" if has_schedule else "changelog"


def _asked(law: Law, of_law: Sequence[Counterexample[History]], witness: QueryWitness) -> Iterator[Replayed]:
    if law.needs_original:
        comparisons = [law.recheck([one.case], witness)[0] for one in of_law]
    else:
        # Give the histories different names, because they share a query.
        cases = [Case(replace(one.history, name=f"saved {number}"), way=one.way) for number, one in enumerate(of_law)]
        comparisons = law.recheck(cases, witness)
    for one, comparison in zip(of_law, comparisons, strict=True):
        yield _by(law, one), comparison


def _alone(
    law: Law,
    saved: Counterexample[History],
    laws: Mapping[str, Law],
    subject: Subject,
    progress: OnStep,
    witness: QueryWitness,
) -> Iterator[Replayed]:
    try:
        yield _by(law, saved), law.recheck([saved.case], witness)[0]
    except CannotRecheck as reason:
        if subject == "spark" and not saved.history.has_schedule:
            changelog = laws["changelog"]
            yield _by(changelog, saved), changelog.recheck([Case(saved.history)], witness)[0]
        else:
            progress(f"not replayed: {saved.folder}: {reason}")


def _by(law: Law, saved: Counterexample[History]) -> Counterexample[History]:
    """Return a counterexample in the form for the law that replays it: without fields that only the broken law uses."""
    return saved if law.name == saved.law else replace(saved, law=law.name, original=None, way=None)

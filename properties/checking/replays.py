"""Replays saved counterexamples: each is asked about by the check that found it, and by the law that it broke there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...reference.core.errors import MissingTool
from ...reference.core.history import History
from ..counterexamples.counterexample import Saved
from ..laws.all import LAWS, Subject
from ..laws.base import OWN, CannotRecheck, Comparison, Law
from ..laws.case import Case
from ..witnesses.run_options import RunOptions
from ..witnesses.spark.witness import QueryWitness
from .running import Progress


@dataclass(frozen=True)
class Replayed:
    """A saved counterexample that was asked about again.

    Attributes:
        law: The law that it was asked about.
        history: Its history.
        original: The history that it is a variant of, where the law relates the two.
        seed: The seed of the run that found it, where that was saved.
        comparison: What came out; without differences the law holds by now.
        way: How the law ran it again, where it was saved so.
    """

    law: str
    history: History
    original: History | None
    seed: int | None
    comparison: Comparison
    way: RunOptions | None = None


def replay(
    saved: Sequence[Saved],
    laws: Mapping[str, Law],
    subject: Subject,
    progress: Progress,
    witness: QueryWitness = OWN,
) -> Iterator[Replayed]:
    """Ask about saved counterexamples again, law by law; those that may travel together do.

    On Spark, one whose law can't be asked again is asked about by the changelog; else `progress` says why it isn't
    replayed.

    Args:
        saved: The counterexamples, as a store returns them.
        laws: The laws of the check, by name.
        subject: What is checked.
        progress: Is given the name of each step before it starts.
        witness: What runs on Spark.

    Raises:
        StreamproofError: Spark couldn't be started, or a query failed.
    """
    by_law: dict[str, list[Saved]] = {}
    for one in saved:
        by_law.setdefault(_law_of(one, laws, subject), []).append(one)
    for name, of_law in by_law.items():
        progress(f"replaying {len(of_law)} saved counterexample{'s' * (len(of_law) > 1)} of {name!r}")
        law = laws.get(name) or LAWS[subject].get(name)
        if law is None or name not in laws:
            for _, metadata in of_law:
                progress(f"not replayed: {metadata.folder}: this check asks no law {name!r}")
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


def _law_of(one: Saved, laws: Mapping[str, Law], subject: Subject) -> str:
    """Return the law to ask: the one that it broke, or on Spark, where that one can't be asked, the nearest to it."""
    history, metadata = one
    asked = metadata.law in laws and (metadata.law == "schedules") == history.has_schedule
    if metadata.law in laws and laws[metadata.law].needs_original and metadata.original is None:
        asked = False  # of an earlier version, which didn't save it
    if asked or subject != "spark":
        return metadata.law
    return "schedules" if history.has_schedule else "changelog"


def _asked(law: Law, of_law: Sequence[Saved], witness: QueryWitness) -> Iterator[Replayed]:
    if law.needs_original:
        comparisons = [law.recheck([_case(one)], witness)[0] for one in of_law]
    else:
        # Named apart, for they travel together.
        cases = [
            Case(replace(history, name=f"saved {number}"), way=metadata.way)
            for number, (history, metadata) in enumerate(of_law)
        ]
        comparisons = law.recheck(cases, witness)
    for (history, metadata), comparison in zip(of_law, comparisons, strict=True):
        yield _replayed(law, (history, metadata), comparison)


def _alone(
    law: Law,
    one: Saved,
    laws: Mapping[str, Law],
    subject: Subject,
    progress: Progress,
    witness: QueryWitness,
) -> Iterator[Replayed]:
    history, metadata = one
    try:
        yield _replayed(law, one, law.recheck([_case(one)], witness)[0])
    except CannotRecheck as reason:
        if subject == "spark" and not history.has_schedule:
            changelog = laws["changelog"]
            yield _replayed(changelog, one, changelog.recheck([Case(history)], witness)[0])
        else:
            progress(f"not replayed: {metadata.folder}: {reason}")


def _case(one: Saved) -> Case:
    return Case(one[0], one[1].original, one[1].way)


def _replayed(law: Law, one: Saved, comparison: Comparison) -> Replayed:
    history, metadata = one
    original, way = (metadata.original, metadata.way) if law.name == metadata.law else (None, None)
    return Replayed(law.name, history, original, metadata.seed, comparison, way)

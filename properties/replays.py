"""Replays saved counterexamples: each is asked about by the check that found it, and by the law that it broke there."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..reference.errors import MissingTool
from ..reference.histories import History
from .recheck import RELATED, Answer, CannotAsk, answer_again, answers_again
from .spark_witness import PLAIN, Plan
from .store import Metadata, Subject, digest, saved

Saved = tuple[History, Metadata]


@dataclass(frozen=True)
class Replayed:
    """A saved counterexample that was asked about again.

    Attributes:
        law: The law that it was asked about.
        history: Its history.
        metadata: What was saved of it.
        answer: What came out; without differences the law holds by now.
    """

    law: str
    history: History
    metadata: Metadata
    answer: Answer


def of_check(folder: Path, operator: str, subject: Subject, mutant: str | None = None) -> list[Saved]:
    """Give the saved counterexamples that a check replays: its own, and of mutants none but the one that is checked.

    Spark has the batch clock: under stream time it would rightly say something else.

    Raises:
        BadInput: A saved counterexample, whosever it is, can't be read any more.
    """
    mine = {
        digest(metadata.law, subject, metadata.mutant, history, metadata.original): (history, metadata)
        for history, metadata in saved(folder, operator)
        if metadata.subject == subject
        and metadata.mutant in (None, mutant)
        and (subject == "reference" or history.clock == "batch")
    }
    return list(mine.values())  # one of an earlier version that has been saved anew counts once


def replay(
    counterexamples: Sequence[Saved],
    laws: Container[str],
    progress: Callable[[str], None],
    subject: Subject = "spark",
    plan: Plan = PLAIN,
) -> Iterator[Replayed]:
    """Ask about saved counterexamples again, law by law; those that may travel together do.

    On Spark, one whose law can't be asked again is held to the changelog; else `progress` says why it isn't replayed.

    Args:
        counterexamples: As `of_check` gives them.
        laws: The names of the laws of the check.
        progress: Called with the name of each step before it starts.
        subject: Whose check this is.
        plan: How Spark runs them.

    Raises:
        StreamproofError: Spark couldn't be started, or a query failed.
    """
    by_law: dict[str, list[Saved]] = {}
    for one in counterexamples:
        by_law.setdefault(_law_of(one, laws, subject), []).append(one)
    for law, of_law in by_law.items():
        progress(f"replaying {len(of_law)} saved counterexample{'s' * (len(of_law) > 1)} of {law!r}")
        try:
            answers = _answers(law, of_law, subject, plan)
        except CannotAsk:
            for one in of_law:
                yield from _alone(law, one, progress, subject, plan)
        except MissingTool as missing:
            if subject == "spark":
                raise
            progress(f"not replayed: {missing}")
        else:
            for (history, metadata), answer in zip(of_law, answers, strict=True):
                yield Replayed(law, history, metadata, answer)


def _law_of(one: Saved, laws: Container[str], subject: Subject) -> str:
    """The law to ask: the one that it broke, or on Spark, where that one can't be asked, the nearest to it."""
    history, metadata = one
    asked = metadata.law in laws and (metadata.law == "schedules") == history.has_schedule
    if metadata.law in RELATED and metadata.original is None:
        asked = False  # of an earlier version, which didn't save it
    if asked or subject != "spark":
        return metadata.law
    return "schedules" if history.has_schedule else "changelog"


def _answers(law: str, of_law: Sequence[Saved], subject: Subject, plan: Plan) -> list[Answer]:
    if law in RELATED:
        return [answer_again(law, history, plan, subject, metadata.original) for history, metadata in of_law]
    histories = [replace(history, name=f"saved {number}") for number, (history, _) in enumerate(of_law)]
    return answers_again(law, histories, plan, subject)


def _alone(law: str, one: Saved, progress: Callable[[str], None], subject: Subject, plan: Plan) -> Iterator[Replayed]:
    history, metadata = one
    try:
        yield Replayed(law, history, metadata, answer_again(law, history, plan, subject, metadata.original))
    except CannotAsk as reason:
        if subject == "spark" and not history.has_schedule:
            yield Replayed("changelog", history, metadata, answer_again("changelog", history, plan))
        else:
            progress(f"not replayed: {metadata.folder}: {reason}")

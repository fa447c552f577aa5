"""Check a saved counterexample again, alone: the functions that a pasted test calls, and by which it is confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...reference.core.history import History, parse_history
from ..checking.mutation import witness_of
from ..counterexamples.counterexample import verdict_sentence
from ..counterexamples.text import side_by_side, versions
from ..laws.all import Subject, law_named
from ..laws.base import CannotRecheck, Comparison
from ..laws.case import Case
from ..laws.metamorphic.reruns import RerunLaw
from ..registration.registration import registration_of
from ..witnesses.run_options import RunOptions, run_options


def assert_holds(
    law: str,
    history: str,
    *,
    original: str | None = None,
    subject: Subject = "spark",
    mutant: str | None = None,
    way: Mapping[str, Any] | None = None,
) -> None:
    """Check a counterexample again, and fail as long as the law is broken on it.

    Args:
        law: The law's name, as a check reports it.
        history: The text of a history file.
        original: The text of the history that `history` is a variant of, where the law relates the two.
        subject: The subject of the check: `spark` or `reference`.
        mutant: The mutant that runs instead of the operator's own logic, if any.
        way: How the law ran the history again, if it did, such as `{"stop_after": [1, 2]}`: the batches (from 0) after
            which the query is stopped and restarted (`stop_after`); the batches in which it crashes between output and
            commit (`crash_in`, or at another moment: `[1, True, "before its output"]`); the number of shuffle
            `partitions`; and the number of `state_groups` that its keys are spread over.

    Raises:
        AssertionError: The law is broken; the message has both outcomes side by side.
        BadInput: A text is no history file, there is no such law, operator or mutant, or the law can't be checked on
            this history alone.
        MissingTool: The machine lacks what the law needs, such as Java or Kafka's jars.
        StreamproofError: A query failed.
    """
    __tracebackhide__ = True
    parsed = parse_history(history)
    related = None if original is None else parse_history(original, "original", "original")
    asked = None if way is None else run_options(way)
    comparison = recheck(law, parsed, subject=subject, mutant=mutant, original=related, way=asked)
    if comparison.differences:
        keys = {difference.key for difference in comparison.differences}
        says = law_named(law, subject).sentence(registration_of(parsed.operator))
        lines = [verdict_sentence(says, comparison), "", "History:"]
        lines += ["    " + line for line in parsed.to_text().splitlines()]
        lines += ["", *side_by_side(comparison.expected, comparison.actual, keys), "", f"{versions()}."]
        raise AssertionError("\n".join(lines))


def recheck(
    law: str,
    history: History,
    *,
    subject: Subject = "spark",
    mutant: str | None = None,
    original: History | None = None,
    way: RunOptions | None = None,
) -> Comparison:
    """Ask a law about one history again, alone.

    Args:
        law: The law's name, as a check reports it.
        history: The history: a counterexample, as it was saved.
        subject: What was checked: `spark` or `reference`.
        mutant: The mutant that runs instead of the operator's own logic, if any.
        original: The history that `history` is a variant of, for the laws that relate the two.
        way: The way in which a law runs histories again; by default the law chooses its ways.

    Returns:
        The expected and the actual outcome, and their differences; none if the law holds.

    Raises:
        CannotRecheck: The law is unknown, or it can't be asked about this history alone; the message says why.
        BadInput: The operator or the mutant is unknown.
        MissingTool: The machine lacks what the law needs, such as Java or Kafka's jars.
        StreamproofError: A query failed.
    """
    asked = law_named(law, subject)
    reason = asked.not_checked(registration_of(history.operator))
    if reason is not None:
        raise CannotRecheck(f"the law {law!r} isn't asked of {history.operator}: {reason}")
    if way is not None and not isinstance(asked, RerunLaw):
        raise CannotRecheck(f"the law {law!r} runs no history again: leave way out")
    return asked.recheck([Case(history, original, way)], witness_of(history.operator, mutant))[0]

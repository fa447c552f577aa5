"""Check a law on a single history again: `assert_holds` for pasted tests, `recheck` to confirm counterexamples."""

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
    """Check a law on a counterexample again, and fail if the history still breaks the law.

    Args:
        law: The law's name, as a check reports it.
        history: The text of a history file.
        original: The text of the original history, if `history` is a variant of it.
        subject: The subject of the check: `spark` or `reference`.
        mutant: The mutant that runs instead of the operator's own logic, if any.
        way: The run options of the law's second run, if any, such as `{"stop_after": [1, 2]}`. `stop_after` are the
            batches (from 0) after which the query is stopped and restarted. `crash_in` are the batches in which the
            query crashes between output and commit, or at another moment: `[1, True, "before its output"]`.
            `partitions` is the number of shuffle partitions, `state_groups` the number of groups of keys.

    Raises:
        AssertionError: The law is broken; the message has both outcomes side by side.
        BadInput: A text isn't a history file, the law, operator or mutant is unknown, or the law can't be checked on a
            single history.
        MissingTool: The machine lacks a tool that the law needs, such as Java or Kafka's jars.
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
    """Check a law on a single history again.

    Args:
        law: The law's name, as a check reports it.
        history: The history of a saved counterexample.
        subject: The subject of the check: `spark` or `reference`.
        mutant: The mutant that runs instead of the operator's own logic, if any.
        original: The original history, if `history` is a variant of it.
        way: The run options of the second run, for a law that runs histories again; by default the law chooses.

    Returns: The expected and the actual outcome, and their differences; no differences if the law holds.

    Raises:
        CannotRecheck: The law is unknown, or can't be checked on this single history; the message says why.
        BadInput: The operator or the mutant is unknown.
        MissingTool: The machine lacks a tool that the law needs, such as Java or Kafka's jars.
        StreamproofError: A query failed.
    """
    asked = law_named(law, subject)
    reason = asked.not_checked(registration_of(history.operator))
    if reason is not None:
        raise CannotRecheck(f"the law {law!r} isn't checked for {history.operator}: {reason}")
    if way is not None and not isinstance(asked, RerunLaw):
        raise CannotRecheck(f"the law {law!r} has no run options: leave way out")
    return asked.recheck([Case(history, original, way)], witness_of(history.operator, mutant))[0]

"""Check a saved counterexample again, alone: the function that a pasted test calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...reference.core.history import parse_history
from ..checking.recheck import recheck
from ..counterexamples.counterexample import verdict_sentence
from ..counterexamples.text import side_by_side, versions
from ..laws.all import Subject, law_named
from ..registration.registration import registration_of
from ..witnesses.run_options import run_options


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

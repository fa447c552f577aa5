"""Checks one witness, a user's own job as a rule, against the reference of an operator, over drawn histories.

It says *conforms* by returning. It fails as *violated* on the smallest history found on which the witness differs, and
as *inconclusive* where it differs on none, but the histories leave a coverage goal unmet: then they show nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..reference.errors import BadInput
from ..reference.histories import History
from ..reference.operators import operator_named
from ..reference.play import play
from .coverage import draw_covering
from .findings import Finding, account, sentence
from .laws import LAWS
from .outcomes import Difference, Outcome, differences
from .shrinking import shrink, trimmed, without_heartbeats

if TYPE_CHECKING:
    from .spark_witness import Job

Witness: TypeAlias = Callable[[Sequence[History]], list[Outcome]]
"""Gives what comes out of each history."""

BATCHES = 6
"""How many batches a job's histories have."""
LEAST = 10
"""So few histories are no sample, whatever they cover."""
SHOWN = 5


class Inconclusive(AssertionError):
    """Nothing differed, but the histories drawn leave some coverage goal unmet, so that they show nothing."""


def assert_conforms(
    job: Job,
    options: Mapping[str, Any],
    histories: int = 300,
    seed: int = 0,
    operator: str = "session_windows",
) -> None:
    """Check a streaming job against the reference over random, out-of-order histories, all in one query.

    Their times scale with the options' durations. They cover what `streamproof check` asks for: the situations of the
    operator, and for each duration that one of them tells it from one that is 1 ms longer or shorter.

    Args:
        job: Takes a streaming DataFrame with the columns key (string), value (as the options' aggregate wants it),
            timestamp (bigint, ms) and order (bigint, the order of arrival), and gives a streaming DataFrame in append
            mode with the columns key, window (struct of start and end; the end is the last record's timestamp), value
            and timestamp. A null value is a tombstone. A column `ordinal`, where there is one, orders a key's changes.
        options: The options that the job implements, as in a history file; durations in ms.
        histories: How many histories to draw.
        seed: What they are drawn from.
        operator: The operator's name.

    Raises:
        AssertionError: The job differs from the reference; the message has the smallest history and both outcomes.
        Inconclusive: It doesn't differ, but the histories leave coverage goals unmet; the message names them.
        BadInput: The options are none of the operator's, or there are no histories to draw.
        StreamproofError: The query failed, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    from .spark_witness import Plan, answer

    check_witness(partial(answer, plan=Plan(job=job)), options, histories, seed, operator)


def check_witness(
    witness: Witness,
    options: Mapping[str, Any],
    histories: int = 300,
    seed: int = 0,
    operator: str = "session_windows",
    name: str = "the job",
) -> None:
    """Check any witness as `assert_conforms` checks a job; `name` is what messages call it.

    Raises:
        AssertionError: It differs from the reference.
        Inconclusive: It doesn't differ, but the histories leave coverage goals unmet.
        BadInput: The options are none of the operator's, or there are no histories to draw.
    """
    __tracebackhide__ = True
    operator_named(operator).declare(options)
    if not isinstance(histories, int) or histories < 1:
        raise BadInput(f"histories is {histories!r}: give a whole number, 1 or more; 300 is a good one")
    drawn = draw_covering(operator, options, histories, seed, BATCHES)
    failing = differing(witness, drawn.histories)
    if failing:
        finding = _smallest(witness, failing[0], seed, name)
        raise AssertionError(f"{len(failing)} of {histories} histories differ from the reference.\n{account(finding)}")
    missing = [*[f"{LEAST} histories at the least"] * (histories < LEAST), *drawn.missing]
    if missing:
        rest = len(missing) - SHOWN
        named = "; ".join([*missing[:SHOWN], *[f"and {rest} more"] * (rest > 0)])
        raise Inconclusive(
            f"inconclusive: {name} agrees with the reference on all histories ({histories}), but that shows nothing of "
            f"{operator}, for they leave unmet: {named}. Give more histories, such as "
            f"histories={max(300, 4 * histories)}, or another seed than {seed}."
        )


def differing(witness: Witness, histories: Sequence[History]) -> list[History]:
    """Give the histories on which a witness differs from the reference."""
    parted = _parted(witness, histories)
    return [history for history, found in zip(histories, parted, strict=True) if found]


def _parted(witness: Witness, histories: Sequence[History]) -> list[list[Difference]]:
    """Give for each history where the witness's changelog differs from the reference's."""
    expected = [Outcome.of_play(history.name, play(history)) for history in histories]
    return [differences(*both) for both in zip(expected, witness(histories), strict=True)]


def _smallest(witness: Witness, history: History, seed: int, name: str) -> Finding:
    """Shrink a history on which a witness differs, where it differs on it alone too."""

    def fails(candidates: Sequence[History]) -> list[bool]:
        return [bool(found) for found in _parted(witness, candidates)]

    confirmed = fails([history])[0]
    if confirmed:
        history = shrink(history, fails)
        for plainer in (without_heartbeats(history), trimmed(history)):
            if plainer.lines != history.lines and fails([plainer])[0]:
                history = plainer
                break
    reference, (outcome,) = Outcome.of_play(history.name, play(history)), witness([history])
    found = differences(reference, outcome)
    law = LAWS["changelog"]
    said = sentence(law.sentence, name, found[0]) if found else f"violated: {law.sentence}; but in its cohort only."
    return Finding(
        law.name, said, history, ("reference", reference), (name, outcome), found, confirmed, seed, subject="job"
    )

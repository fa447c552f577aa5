"""Ask a law about a history again, alone: a pasted test does this, and a counterexample is *confirmed* by it."""

from __future__ import annotations

from ...reference.core.history import History
from ..laws.all import Subject, law_named
from ..laws.base import CannotRecheck, Comparison
from ..laws.case import Case
from ..laws.metamorphic.reruns import RerunLaw
from ..registration.registration import registration_of
from ..witnesses.run_options import RunOptions
from ..witnesses.spark.witness import QueryWitness, SparkWitness
from .mutation import chosen


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


def witness_of(operator: str, mutant: str | None = None) -> QueryWitness:
    """Return the witness that runs an operator's own implementation, or a mutant of it.

    Args:
        operator: The operator's name.
        mutant: The mutant's name.

    Raises:
        BadInput: The operator or the mutant is unknown.
    """
    if mutant is None:
        return SparkWitness()
    (found,) = chosen(operator, [mutant])
    return SparkWitness(found.logic, mutant)

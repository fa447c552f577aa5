"""Mutants of an operator's logic on Spark: their declaration, and the logic that runs many mutants in one query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...spark_impl.runtime.logic import Key, Logic
from .key_space import owner

MakeLogic = Callable[[Any], Any]
"""Returns the logic of a definition; for an operator in stages, the named tuple of each stage's logic."""


@dataclass(frozen=True)
class Mutant:
    """A mutant of a stateful operator.

    Attributes:
        operator: The operator.
        name: The mutant's name on the command line.
        logic: The mutated logic.
        right: The operator's own logic.
        profile: The name of the operator's options (the profile) with which histories check the mutant.
        sentence: The bug, in one sentence.
        scheduled: Whether the bug has an effect only while messages wait; the mutant is then checked under schedules of
            deliveries.
    """

    operator: str
    name: str
    logic: MakeLogic
    right: MakeLogic
    profile: str
    sentence: str
    scheduled: bool = False


def mutants_of(
    operator: str,
    right: MakeLogic,
    profile: str,
    logics: Iterable[type],
    elsewhere: Mapping[str, Iterable[type]] = MappingProxyType({}),
    scheduled: bool = False,
) -> dict[str, Mutant]:
    """Return the mutants of an operator, by name.

    Args:
        operator: The operator's name.
        right: The operator's own logic: a `Logic`, or a function that returns the named tuple of its stages' logics.
        profile: The profile of the histories that check the mutants.
        logics: The mutated logics; a mutated stage is a subclass of the right stage.
        elsewhere: Mutated logics that `profile` doesn't detect, by the name of the profile that does.
        scheduled: Whether the bugs have an effect only while messages wait.
    """
    profiles = {logic: other for other, shown in elsewhere.items() for logic in shown}
    return {
        name_of(logic): Mutant(
            operator,
            name_of(logic),
            logic if isinstance(right, type) else _beside(right, logic),
            right,
            profiles.get(logic, profile),
            sentence_of(logic),
            scheduled,
        )
        for logic in logics
    }


def _beside(right: MakeLogic, bug: type) -> MakeLogic:
    """Return a maker of the mutated logic; in an operator of stages, the other stages keep their right logic."""

    def make(definition: Any) -> Any:
        stages = right(definition)
        if isinstance(stages, Logic):
            return bug(definition)
        (stage,) = (name for name, logic in stages._asdict().items() if issubclass(bug, type(logic)))
        return stages._replace(**{stage: bug(definition)})

    return make


def name_of(logic: type) -> str:
    """Return a mutant's name: its class's name, in lower case with underscores."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in logic.__name__).lstrip("_")


def sentence_of(logic: type) -> str:
    """Return the bug of a mutant, in one sentence, from its docstring."""
    return (logic.__doc__ or "").split("\n")[0].rstrip(".")


class LogicByHistory(Logic[Any]):
    """Passes each key to its history's mutant, so that many mutants share a query.

    Mutant `i` processes the cohort's histories from index `starts[i]` on.
    """

    def __init__(self, right: Logic[Any], mutants: Sequence[Logic[Any]], starts: Sequence[int]) -> None:
        self.right = right
        self.keeps_null_keys = right.keeps_null_keys
        self.logics = mutants
        self.starts = starts

    @property
    def retention_ms(self) -> int | None:
        """The retention (ms) of all mutants, if the operator has a retention."""
        return getattr(self.right, "retention_ms", None)

    @retention_ms.setter
    def retention_ms(self, retention_ms: int | None) -> None:
        for logic in (self.right, *self.logics):
            logic.retention_ms = retention_ms  # type: ignore[attr-defined]

    def for_key(self, key: Key) -> Logic[Any]:
        """Return the mutant of the key's history; the cohort's reserved key has the right logic."""
        owned = None if key[0] is None else owner(key[0])
        if owned is None:
            return self.right
        return self.logics[sum(start <= owned[0] for start in self.starts) - 1]

"""What seeded bugs of every operator share: their names, and how they travel together in one cohort."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...spark_impl.keyed import Arrived, Key, Logic, Told
from ..cohorts import owner

MakeLogic = Callable[[Any], Any]
"""Makes of a definition the logic, or of an operator in stages the named tuple of each stage's logic."""


@dataclass(frozen=True)
class Mutant:
    """A seeded bug of a stateful operator.

    Attributes:
        operator: The operator.
        name: What the command calls it.
        logic: The mutated logic.
        right: The operator's own logic.
        shape: The shape of histories that it is held to.
        sentence: What is wrong with it.
    """

    operator: str
    name: str
    logic: MakeLogic
    right: MakeLogic
    shape: str
    sentence: str


def mutants_of(
    operator: str, right: MakeLogic, shape: str, logics: Iterable[type], elsewhere: dict[type, str] | None = None
) -> dict[str, Mutant]:
    """Give mutants by name; `elsewhere` names the shape of those that another shape than the common one shows."""
    shapes = elsewhere or {}
    return {
        name_of(logic): Mutant(operator, name_of(logic), logic, right, shapes.get(logic, shape), sentence_of(logic))
        for logic in logics
    }


def staged_mutants_of(operator: str, stages: MakeLogic, bugs: Mapping[type, tuple[str, str]]) -> dict[str, Mutant]:
    """Give mutants of an operator in stages by name: of each bug's logic, which stage has it, and the shape."""

    def with_bug(bug: type, stage: str) -> MakeLogic:
        return lambda definition: stages(definition)._replace(**{stage: bug(definition)})

    return {
        name_of(bug): Mutant(operator, name_of(bug), with_bug(bug, stage), stages, shape, sentence_of(bug))
        for bug, (stage, shape) in bugs.items()
    }


def name_of(logic: type) -> str:
    """Give a mutant's name: its class's, in lower case with underscores."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in logic.__name__).lstrip("_")


def sentence_of(logic: type) -> str:
    """Say what is wrong with a mutant, from its docstring."""
    return (logic.__doc__ or "").split("\n")[0].rstrip(".")


class SharingState(Logic[Any]):
    """Mixed into a logic: a row meets the state of the key that had the row before, not that of its own."""

    before: Any = None

    def take(self, key: Key, kept: Any, row: Arrived, clock: int) -> list[Told]:
        """Take a row into the state of another key."""
        met, self.before = (kept if self.before is None else self.before), kept
        return super().take(key, met, row, clock)


class Travelling(Logic[Any]):
    """Hands each key to the mutant that its history belongs to: bugs travel in cohorts too.

    The history with place `p` in the cohort belongs to the mutant whose bounds hold `p`.
    """

    def __init__(self, right: Logic[Any], mutants: Sequence[Logic[Any]], starts: Sequence[int]) -> None:
        self.right = right
        self.keeps_null_keys = right.keeps_null_keys
        self.logics = mutants
        self.starts = starts

    @property
    def retention_ms(self) -> int | None:
        """How long rows are kept (ms), where an operator is told: by all of them."""
        return getattr(self.right, "retention_ms", None)

    @retention_ms.setter
    def retention_ms(self, retention_ms: int | None) -> None:
        for logic in (self.right, *self.logics):
            logic.retention_ms = retention_ms  # type: ignore[attr-defined]

    def for_key(self, key: Key) -> Logic[Any]:
        """Give the mutant of the key's history; the cohort's own key has the right logic."""
        owned = None if key[0] is None else owner(key[0])
        if owned is None:
            return self.right
        return self.logics[sum(start <= owned[0] for start in self.starts) - 1]


def travelling(mutants: Sequence[Mutant], starts: Sequence[int]) -> MakeLogic:
    """Give what makes a `Travelling` of a definition; mutant `i` has the histories from `starts[i]` on."""

    def make(definition: Any) -> Any:
        right: Any = mutants[0].right(definition)
        logics = [mutant.logic(definition) for mutant in mutants]
        if isinstance(right, Logic):
            return Travelling(right, logics, starts)
        stages = [Travelling(one, [logic[stage] for logic in logics], starts) for stage, one in enumerate(right)]
        return right._replace(**dict(zip(right._fields, stages, strict=True)))

    return make

"""What the replays of all modules share: what a step does, and how two states are held against each other."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Set
from typing import Any, NamedTuple, Protocol, TypeAlias

from ...reference.errors import BadInput
from ...reference.histories import Line
from ..pytla import Step, Trace, Value

Constants: TypeAlias = Mapping[str, Value]
State: TypeAlias = Mapping[str, Value]


class Action(NamedTuple):
    """What a step of a behaviour does.

    Attributes:
        line: The line of a history that does the same.
        place: Of a delivery: how many older messages of its route are overtaken; 0 but for a seeded bug.
    """

    line: Line
    place: int = 0


class Machine(Protocol):
    """What a behaviour is replayed on. Where behaviours part, `copy.deepcopy` gives each its own."""

    def take(self, action: Action) -> object:
        """Do what a step does."""
        ...

    def seen(self) -> Mapping[str, Any]:
        """Give the state by its parts, as `ModuleReplay.expected` does of the model."""
        ...


class ModuleReplay(Protocol):
    """How the behaviours of one module are replayed, under the constants of a model."""

    @property
    def operator(self) -> str:
        """The operator that the module is about."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options, as in a history file."""
        ...

    @property
    def clock(self) -> str:
        """The clock, as in a history file."""
        ...

    def action(self, before: Step, after: Step) -> Action:
        """Read what a step does, of the states before and after it.

        Raises:
            BadInput: No action of the module makes this step.
        """
        ...

    def expected(self, step: Step) -> Mapping[str, Any]:
        """Give the model's state after a step, part by part, each named as in a message.

        Raises:
            BadInput: It is no state of the module.
        """
        ...

    def machine(self) -> Machine:
        """Start a reference, with the seeded bug that the constants name, if they do."""
        ...


def steps_of(trace: Trace, replay: ModuleReplay) -> Iterator[tuple[Step, Action]]:
    """Give the steps of a behaviour with what each does, without the initial state and those that do nothing.

    Raises:
        BadInput: A step can't be read.
    """
    for before, after in zip(trace.steps, trace.steps[1:], strict=False):
        if not is_stuttering(before, after):
            yield after, replay.action(before, after)


def is_stuttering(before: Step, after: Step) -> bool:
    """Whether a step does nothing, as at the end of a behaviour: TLC calls it Finished, or doesn't name it."""
    return after.action in (None, "Finished") and after.state == before.state


class Difference(NamedTuple):
    """Where two states part: in what, and what each has there (None: nothing)."""

    what: str
    ours: Any
    model: Any


def difference(ours: Mapping[str, Any], model: Mapping[str, Any]) -> Difference | None:
    """Give the first part in which two states differ; of a part with rows the first row."""
    for part, expected in model.items():
        seen = ours[part]
        if seen == expected:
            continue
        if isinstance(seen, Mapping) and isinstance(expected, Mapping):
            rows = sorted((row for row in {**seen, **expected} if seen.get(row) != expected.get(row)), key=str)
            row = rows[0] if isinstance(rows[0], str) else " ".join(filter(None, rows[0]))
            return Difference(f"{part} {row}", seen.get(rows[0]), expected.get(rows[0]))
        return Difference(part, seen, expected)
    return None


def unreadable(step: Step, module: str, why: str) -> BadInput:
    """Say why a step can't be read."""
    action = f" ({step.action})" if step.action else ""
    return BadInput(f"step {step.number}{action}: {why}: replay the behaviours of {module} alone, as TLC gives them")


def require_constants(constants: Constants, module: str, names: Iterable[str]) -> None:
    """Refuse the constants of a model that lack one.

    Raises:
        BadInput: The message names the first one that is missing.
    """
    for name in names:
        if name not in constants:
            raise BadInput(f"the constant {name} of {module} is missing: give all constants of the model")


def require_mutant(mutant: str, module: str, mutants: Iterable[str]) -> None:
    """Refuse a mutant that the module hasn't.

    Raises:
        BadInput: The message lists those that it has.
    """
    known = list(mutants)
    if mutant not in known:
        raise BadInput(f"no mutant of {module} is {mutant!r}: use one of {', '.join(known)}")


def require_variables(step: Step, module: str, variables: Set[str]) -> None:
    """Refuse a state that isn't the module's.

    Raises:
        BadInput: The message names the first variable that is missing.
    """
    missing = sorted(variables - step.state.keys())
    if missing:
        raise unreadable(step, module, f"it has no variable {missing[0]}")


def require_action(step: Step, module: str, actions: Container[str]) -> None:
    """Refuse a step whose action isn't the module's; one without a name is read from its states.

    Raises:
        BadInput: The message names the step.
    """
    if step.action is not None and step.action not in actions:
        raise unreadable(step, module, "the module has no such action")

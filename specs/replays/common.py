"""Parts shared by the replays of all modules: actions, and the comparison of two states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from ...reference.core.clocks import Clock
from ...reference.core.errors import BadInput
from ...reference.core.history import ClockAdvance, Cut, Line
from ...reference.core.operator import Behaviour
from ...reference.core.records import Output, Record
from ..pytla import Step, TlaValue, Trace

ModelConstants: TypeAlias = Mapping[str, TlaValue]
SpecState: TypeAlias = Mapping[str, TlaValue]
AnyBehaviour = TypeVar("AnyBehaviour", bound=Behaviour)


class Action(NamedTuple):
    """The action of a step of a behaviour.

    Attributes:
        line: The line of a history with the same effect.
        overtaken: The number of older messages on its route that a delivery overtakes; 0 except for a mutant.
    """

    line: Line
    overtaken: int = 0


class Machine(Protocol):
    """An implementation that replays behaviours. If behaviours branch, `copy.deepcopy` copies the machine for each."""

    def take(self, action: Action) -> object:
        """Execute a step's action."""

    def seen(self) -> Mapping[str, Any]:
        """Return the state by its parts, like the model's state in `ModuleReplay.expected`."""


class ReferenceMachine(Generic[AnyBehaviour]):
    """The reference's state machine, or a mutant, which executes actions."""

    def __init__(self, behaviour: AnyBehaviour, clock: Clock) -> None:
        self.behaviour, self.clock = behaviour, clock
        self.outputs: list[Output] = []

    def take(self, action: Action) -> list[Output]:
        """Execute a step's action, and return the outputs."""
        if isinstance(action.line, Record):
            emitted = self.behaviour.arrive(action.line)
        else:
            if isinstance(action.line, ClockAdvance):
                self.clock.observe(action.line.timestamp)
            elif isinstance(action.line, Cut):
                self.clock.cut()
            emitted = self.behaviour.advance()
        self.outputs += emitted
        return emitted


class NotInModule(Exception):
    """An unknown value or step of the module, which the message names."""


class ModuleReplay(ABC):
    """The replay of a module's behaviours, for the constants of a model.

    Attributes:
        module: The module's name.
        variables: Its variables.
        actions: The module's actions by name; empty if the states identify a step.
        operator: The operator that the module specifies.
        options: The operator's options, as in a history file.
        clock: The clock, as in a history file.

    Args:
        constants: The constants of the model.
        names: The required constants.

    Raises:
        BadInput: A constant is missing; the message names the first missing constant.
    """

    module: ClassVar[str]
    variables: ClassVar[frozenset[str]]
    actions: ClassVar[frozenset[str]] = frozenset()
    operator: ClassVar[str]
    options: Mapping[str, Any]
    clock: str = "stream_time"

    def __init__(self, constants: ModelConstants, names: Iterable[str]) -> None:
        for name in names:
            if name not in constants:
                raise BadInput(f"the constant {name} of {self.module} is missing: give all constants of the model")

    @abstractmethod
    def machine(self) -> Machine:
        """Return a new reference, with the mutant that the constants name, if any."""

    def expected(self, step: Step) -> Mapping[str, Any]:
        """Return the model's state after a step, by the names of its parts, such as a table or a queue.

        Raises:
            BadInput: The state isn't a state of the module.
        """
        missing = sorted(self.variables - step.state.keys())
        if missing:
            raise self._unreadable(step, f"it has no variable {missing[0]}")
        try:
            return self._parts(step.state)
        except NotInModule as error:
            raise self._unreadable(step, str(error)) from None
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise self._unreadable(step, f"a value isn't one of the module's ({error!r})") from None

    def action(self, before: Step, after: Step) -> Action:
        """Read a step's action from the states before and after the step.

        Raises:
            BadInput: No action of the module has this effect.
        """
        if self.actions and after.action is not None and after.action not in self.actions:
            raise self._unreadable(after, "the module has no such action")
        self.expected(before)
        self.expected(after)
        try:
            return self._action(before, after)
        except NotInModule as error:
            raise self._unreadable(after, str(error)) from None

    @abstractmethod
    def _parts(self, state: Any) -> Mapping[str, Any]: ...

    @abstractmethod
    def _action(self, before: Step, after: Step) -> Action: ...

    def _mutant(self, constants: ModelConstants, mutants: Iterable[str]) -> str:
        mutant, known = str(constants["Mutant"]), list(mutants)
        if mutant not in known:
            raise BadInput(f"{self.module} has no mutant {mutant!r}: use one of {', '.join(known)}")
        return mutant

    def _unreadable(self, step: Step, why: str) -> BadInput:
        number = f"step {step.number}" + (f" ({step.action})" if step.action else "")
        return BadInput(f"{number}: {why}: replay only behaviours of {self.module}, unchanged from TLC")


def steps_of(trace: Trace, replay: ModuleReplay) -> Iterator[tuple[Step, Action]]:
    """Return a behaviour's steps with their actions, except the initial state and steps that change nothing.

    Raises:
        BadInput: A step of the behaviour is unreadable.
    """
    for before, after in zip(trace.steps, trace.steps[1:], strict=False):
        if not is_stuttering(before, after):
            yield after, replay.action(before, after)


def is_stuttering(before: Step, after: Step) -> bool:
    """Return whether a step changes nothing, as at the end of a behaviour (TLC's action Finished)."""
    return after.action in (None, "Finished") and after.state == before.state


class DifferingPart(NamedTuple):
    """A difference between two states: the differing part, and both values (None for a missing value)."""

    what: str
    ours: Any
    model: Any


def difference(ours: Mapping[str, Any], model: Mapping[str, Any]) -> DifferingPart | None:
    """Return the first part in which two states differ; in a part with rows, the first row."""
    for part, expected in model.items():
        seen = ours[part]
        if seen == expected:
            continue
        if isinstance(seen, Mapping) and isinstance(expected, Mapping):
            rows = sorted((row for row in {**seen, **expected} if seen.get(row) != expected.get(row)), key=str)
            row = rows[0] if isinstance(rows[0], str) else " ".join(filter(None, rows[0]))
            return DifferingPart(f"{part} {row}", seen.get(rows[0]), expected.get(rows[0]))
        return DifferingPart(part, seen, expected)
    return None

"""The results of a run of TLC: counts, coverage, and a counterexample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .values import TlaValue

TlcOutcome = Literal["passed", "invariant", "action property", "temporal property", "deadlock"]
"""The outcome of a run; `deadlock` occurs only in the result of a `DeadlockReached`."""

Phase = Literal["parsing", "initial states", "searching", "temporal properties", "simulating"]
"""The current phase of TLC."""


class Location(NamedTuple):
    """A range of a TLA+ module; lines and columns count from 1, and the end is inclusive."""

    module: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return (
            f"line {self.line}, col {self.column} to line {self.end_line}, col {self.end_column} "
            f"of module {self.module}"
        )


class Step(NamedTuple):
    """A state of a behaviour, and the action that led to it.

    `number` counts from 1. `action` is "Initial" for the first state, and None if TLC doesn't name the action
    (simulation). `location` is the action's place in its module, or None for the first state, or if TLC doesn't report
    it.
    """

    number: int
    action: str | None
    state: Mapping[str, TlaValue]
    location: Location | None = None


@dataclass(frozen=True)
class Trace:
    """A behaviour: a list of states that begins with an initial state.

    A behaviour ends with its last step, or continues for ever. If the behaviour returns to an earlier step by
    `loop_action`, `loop` is the number of this step. If `stutters` is true, the behaviour stays in its last state.
    """

    steps: tuple[Step, ...]
    loop: int | None = None
    stutters: bool = False
    loop_action: str | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)


class ActionCounts(NamedTuple):
    """The number of steps of an action: `taken` counts every step, and `distinct` only steps to a new state."""

    distinct: int
    taken: int


@dataclass(frozen=True)
class Progress:
    """TLC's progress, as it reports about every minute and at the start of each phase.

    `seconds` is the time since the start of the run.
    """

    phase: Phase
    seconds: float
    generated: int = 0
    distinct: int = 0
    left_on_queue: int = 0
    depth: int = 0


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Attributes:
        outcome: "passed", or the kind of the violated property.
        violated: The name of the violated invariant or property. The name is None if no property is violated, or TLC
            doesn't name the property. TLC names no temporal property, so the name is known only if the model has a
            single temporal property.
        trace: The behaviour that violates the property.
        distinct: The number of distinct states, up to the violation if there is one; 0 if TLC stopped at an initial
            state, before counting.
        generated: The number of generated states, including repetitions.
        left_on_queue: The number of unexplored states: 0 after an exhaustive search.
        depth: The largest distance of a state from the initial states, in states.
        seconds: The time of the whole run, including Java's start.
        coverage: The coverage by action, if requested, including the initial predicate.
        warnings: TLC's warnings, one string each.
    """

    outcome: TlcOutcome
    violated: str | None
    trace: Trace | None
    distinct: int
    generated: int
    left_on_queue: int
    depth: int
    seconds: float
    coverage: Mapping[str, ActionCounts] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Return whether every property holds."""
        return self.outcome == "passed"


@dataclass(frozen=True)
class Simulation:
    """The result of a simulation, and its random `behaviours`.

    If a property is violated, the simulation ends, and `result.trace` is the violating behaviour.
    """

    result: Result
    behaviours: tuple[Trace, ...]

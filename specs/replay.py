"""Replay TLC's behaviours on the reference: after each action, the reference and the model must be in the same state.

A module with a replay has a file in `replays/`; `REPLAYS` lists them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from ..reference.core.errors import BadInput
from ..reference.core.history import Delivery, History
from .pytla import Step, Trace
from .replays.common import DifferingPart, Machine, ModelConstants, ModuleReplay, difference, is_stuttering, steps_of
from .replays.foreign_key_join import ForeignKeyJoinReplay
from .replays.foreign_key_kafka import WITHOUT_KEY
from .replays.one_to_many_join import OneToManyJoinReplay
from .replays.session_windows import SessionWindowsReplay
from .replays.stream_stream_join import StreamStreamJoinReplay
from .replays.table_table_join import TableTableJoinReplay

REPLAYS: Mapping[str, Callable[[ModelConstants], ModuleReplay]] = {
    "ForeignKeyJoin": ForeignKeyJoinReplay,
    "OneToManyJoin": OneToManyJoinReplay,
    "SessionWindows": SessionWindowsReplay,
    "StreamStreamJoin": StreamStreamJoinReplay,
    "TableTableJoin": TableTableJoinReplay,
}
"""The replays by module; each takes the constants of a model."""


class Disagreement(NamedTuple):
    """The first difference between a behaviour and the code.

    Attributes:
        behaviour: The behaviour's number among the replayed behaviours, from 1.
        step: The number of the step after which the code and the model differ, as in the trace; 1 is the initial state.
        action: The step's action.
        what: The part of the state in which the code and the model differ.
        ours: The value of the differing part in the replay, or None if the part is missing.
        model: The model's value.
    """

    behaviour: int
    step: int
    action: str
    what: str
    ours: Any
    model: Any

    def __str__(self) -> str:
        return (
            f"behaviour {self.behaviour}, step {self.step} ({self.action}): {self.what}: "
            f"the replay has {_shown(self.ours)}, the model {_shown(self.model)}"
        )

    @classmethod
    def after(cls, behaviour: int, step: Step, found: DifferingPart) -> Disagreement:
        """Return the disagreement after a step.

        Args:
            behaviour: The behaviour's number, from 1.
            step: The step.
            found: The difference between the two states after the step.
        """
        return cls(behaviour, step.number, step.action or "no action", *found)


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, default=repr)


class ReplayResult(NamedTuple):
    """The result of a replay.

    Attributes:
        behaviours: The number of replayed behaviours.
        actions: The number of replayed actions; behaviours with a common beginning may share its actions. A behaviour
            ends at its first disagreement.
        disagreements: The first disagreement of each behaviour that disagrees.
        divergences: The number of behaviours that each named divergence explains; these behaviours don't count as
            disagreements.
    """

    behaviours: int
    actions: int
    disagreements: tuple[Disagreement, ...]
    divergences: Mapping[str, int] = {}


def replay(traces: Iterable[Trace], constants: ModelConstants, module: str) -> ReplayResult:
    """Replay behaviours on the reference, action by action.

    If the constants name a mutant, the reference contains the same bug. If a behaviour begins like the previous
    behaviour, the replay continues from a copy after the common steps.

    Args:
        traces: The behaviours, which are read one at a time, so millions are possible.
        constants: All constants of the behaviours' model.
        module: The module's name.

    Raises:
        BadInput: The module has no replay, or a step is unreadable; the message names the step.
    """
    of_module = replay_named(module)(constants)
    actions, behaviours = 0, 0
    disagreements = []
    path: list[_Reached] = []
    for behaviours, trace in enumerate(traces, 1):
        shared = _alike(path, trace.steps)
        del path[shared:]
        for number, step in enumerate(trace.steps[shared:], shared):
            if not path:
                machine = of_module.machine()
            elif path[-1].found is not None:
                break
            else:
                machine = deepcopy(path[-1].machine)
                before = trace.steps[number - 1]
                if not is_stuttering(before, step):
                    machine.take(of_module.action(before, step))
                    actions += 1
            path.append(_Reached(step, machine, difference(machine.seen(), of_module.expected(step))))
        if path[-1].found is not None:
            disagreements.append(Disagreement.after(behaviours, path[-1].step, path[-1].found))
    return ReplayResult(behaviours, actions, tuple(disagreements))


class _Reached(NamedTuple):
    """The replay of a behaviour up to a step: the code's machine after the step, and the disagreement after the
    step.
    """

    step: Step
    machine: Machine
    found: DifferingPart | None


def _alike(path: Sequence[_Reached], steps: Sequence[Step]) -> int:
    """Count the initial steps of a behaviour that the previous behaviour shares."""
    for number, (reached, step) in enumerate(zip(path, steps, strict=False)):
        if reached.step.state is not step.state or reached.step.action != step.action:
            return number
    return min(len(path), len(steps))


def history_of(trace: Trace, constants: ModelConstants, module: str) -> History:
    """Return a behaviour as a history whose lines are its actions; `History.to_text` returns the text of its file.

    The timestamp of a change is its number, in ms.

    Args:
        trace: The behaviour.
        constants: All constants of the behaviour's model.
        module: The module's name.

    Raises:
        BadInput: The behaviour can't be replayed, or a message overtakes another on its route, which no history can
            express.
    """
    of_module = replay_named(module)(constants)
    lines = []
    for step, action in steps_of(trace, of_module):
        if action.overtaken:
            raise BadInput(
                f"step {step.number}: a message overtakes another on its route, which no history can express: "
                "replay the behaviour on the reference"
            )
        if isinstance(action.line, Delivery) and action.line.foreign_key == WITHOUT_KEY:
            raise BadInput(
                f"step {step.number}: a message without a foreign key is forwarded, which no history can express: "
                "replay the behaviour on the reference"
            )
        lines.append(action.line)
    return History(of_module.operator, of_module.options, tuple(lines), of_module.clock, name=module)


def replay_named(module: str) -> Callable[[ModelConstants], ModuleReplay]:
    """Return the object that reads and replays a module's behaviours.

    Raises:
        BadInput: The module has no replay; the message lists the modules with a replay.
    """
    if module not in REPLAYS:
        raise BadInput(f"the behaviours of {module} can't be replayed: use one of {', '.join(REPLAYS)}")
    return REPLAYS[module]

"""Replay behaviours of `StreamStreamJoin.tla` as histories, on the reference.

TLC doesn't report the parameters of actions, so the replay derives each step's action from the arrivals. The value of a
record is its index among the arrivals, from 1, as in the model. The replay compares the output as a list, with its
order and timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...reference.core.clocks import Clock, make_clock
from ...reference.core.history import CUT, ClockAdvance
from ...reference.core.operator import operator_named
from ...reference.core.records import Change, Record
from ...reference.definitions.joins import BOTH, StreamStreamJoin
from ...reference.stream_stream_join import Behaviour
from ..pytla import Step
from .common import Action, ModelConstants, ModuleReplay, NotInModule, ReferenceMachine
from .session_windows_mutants import ClockFollows
from .stream_stream_join_mutants import MUTANTS

DURATIONS = {"before_ms": "Before", "after_ms": "After", "grace_ms": "Grace"}
CHOICES = {"join": "Join", "emit": "Emit"}
"""The operator's options, each with the constant of the module that has the same meaning."""


class StreamStreamJoinReplay(ModuleReplay):
    """Reads behaviours of `StreamStreamJoin.tla`, under the constants of a model.

    Raises:
        BadInput: A constant is missing, or has a value that the module doesn't define.
    """

    module = "StreamStreamJoin"
    operator = "stream_stream_join"
    variables = frozenset({"arrived", "clock", "buffer", "emitted"})
    actions = frozenset({"Arrive", "Heartbeat", "Cut"})

    def __init__(self, constants: ModelConstants) -> None:
        super().__init__(constants, ("Mutant", "Clock", *DURATIONS.values(), *CHOICES.values()))
        self.mutant, self.clock = self._mutant(constants, MUTANTS), str(constants["Clock"])
        durations = {option: constants[name] for option, name in DURATIONS.items()}
        choices = {option: str(constants[name]) for option, name in CHOICES.items()}
        self.options = {**durations, **choices}
        self.join: StreamStreamJoin = operator_named(self.operator).declare(self.options)

    def machine(self) -> StreamStreamJoinMachine:
        """Return a new reference, with the mutant that the constants name, if any."""
        clock: Clock = ClockFollows() if self.mutant == "clock goes back" else make_clock(self.clock)
        return StreamStreamJoinMachine(self.join, clock, self.mutant)

    def _parts(self, state: Any) -> Mapping[str, Any]:
        buffered = {f"on the {side}": _rows(state["buffer"][side], self.join) for side in BOTH}
        emitted = [_output(one, state["arrived"]) for one in state["emitted"]]
        return {"clock": state["clock"], "emitted": emitted, **buffered}

    def _action(self, before: Step, after: Step) -> Action:
        old: Any = before.state["arrived"]
        new: Any = after.state["arrived"]
        if len(new) != len(old) + 1 or new[:-1] != old:
            raise NotInModule("no action of the module makes this step")
        what, timestamp = new[-1]["input"], new[-1]["timestamp"]
        if what in BOTH:
            return Action(Record(what, str(new[-1]["key"]), len(new), timestamp))
        return Action(ClockAdvance(timestamp) if what == "heartbeat" else CUT)


def _output(emitted: Any, arrived: Any) -> tuple[str, list[int | None], int]:
    """Return an output of the model in the reference's form: key, value, timestamp."""
    values = [number if isinstance(number, int) else None for number in (emitted["left"], emitted["right"])]
    records = [arrived[number - 1] for number in values if number is not None]
    return str(records[0]["key"]), values, max(record["timestamp"] for record in records)


def _rows(rows: Any, join: StreamStreamJoin) -> Mapping[str, str]:
    return {str(row["number"]): _state(row["matched"], join) for row in rows}


def _state(matched: bool, join: StreamStreamJoin) -> str:
    """Return the part of a row to compare; `matched` only matters with emit `close`."""
    return "matched" if matched and join.emit == "close" else "buffered"


class StreamStreamJoinMachine(ReferenceMachine[Behaviour]):
    """The reference's state machine, or a mutant, which executes actions."""

    def __init__(self, join: StreamStreamJoin, clock: Clock, mutant: str = "none") -> None:
        super().__init__(MUTANTS[mutant](join, clock), clock)
        self.join = join

    def seen(self) -> Mapping[str, Any]:
        """Return the parts of the state by name: the clock, the emitted rows, and the stored rows of each side."""
        emitted = [(one.key, one.value, one.timestamp) for one in self.outputs if isinstance(one, Change)]
        return {"clock": self.clock.now, "emitted": emitted, **{f"on the {side}": self.rows(side) for side in BOTH}}

    def rows(self, side: str) -> Mapping[str, str]:
        """Return the stored rows of one input by their number."""
        buffered = self.behaviour.buffers[side].values()
        return {str(row.record.value): _state(row.matched, self.join) for rows in buffered for row in rows}

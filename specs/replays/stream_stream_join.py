"""How behaviours of `StreamStreamJoin.tla` are replayed: as histories, on the reference.

TLC names no parameters, so what a step does is read from what has arrived. The value of a record is its place among
the arrivals, from 1, as in the model. What is told is compared as a list: in order, and with its timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...reference.clocks import Clock, make_clock
from ...reference.histories import CUT, Cut, Heartbeat
from ...reference.joins import BOTH, StreamStreamJoin
from ...reference.operators import operator_named
from ...reference.records import Change, Output, Record
from ..pytla import Step
from .common import (
    Action,
    Constants,
    require_action,
    require_constants,
    require_mutant,
    require_variables,
    unreadable,
)
from .session_windows_mutants import ClockFollows
from .stream_stream_join_mutants import MUTANTS

MODULE = "StreamStreamJoin"
OPERATOR = "stream_stream_join"
DURATIONS = {"before_ms": "Before", "after_ms": "After", "grace_ms": "Grace"}
CHOICES = {"join": "Join", "emit": "Emit"}
"""The operator's options, and the constants that say the same."""
VARIABLES = frozenset({"arrived", "clock", "buffer", "told"})
ACTIONS = frozenset({"Arrive", "Heartbeat", "Cut"})


class StreamStreamJoinReplay:
    """Reads behaviours of `StreamStreamJoin.tla`, under the constants of a model.

    Raises:
        BadInput: A constant is missing or isn't one of the module's values.
    """

    operator = OPERATOR

    def __init__(self, constants: Constants) -> None:
        require_constants(constants, MODULE, ("Mutant", "Clock", *DURATIONS.values(), *CHOICES.values()))
        self.mutant, self.clock = str(constants["Mutant"]), str(constants["Clock"])
        require_mutant(self.mutant, MODULE, MUTANTS)
        durations = {option: constants[name] for option, name in DURATIONS.items()}
        choices = {option: str(constants[name]) for option, name in CHOICES.items()}
        self.options: Mapping[str, Any] = {**durations, **choices}
        self.join: StreamStreamJoin = operator_named(OPERATOR).declare(self.options)

    def machine(self) -> StreamStreamJoinMachine:
        """Start the reference, with the seeded bug that the constants name, if they do."""
        clock: Clock = ClockFollows() if self.mutant == "clock goes back" else make_clock(self.clock)
        return StreamStreamJoinMachine(self.join, clock, self.mutant)

    def expected(self, step: Step) -> Mapping[str, Any]:
        """Give the model's state after a step, part by part."""
        state: Any = step.state
        require_variables(step, MODULE, VARIABLES)
        try:
            arrived = state["arrived"]
            buffered = {f"on the {side}": _rows(state["buffer"][side], self.join) for side in BOTH}
            return {"clock": state["clock"], "told": [_output(one, arrived) for one in state["told"]], **buffered}
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise unreadable(step, MODULE, f"a value is none of the module's ({error!r})") from None

    def action(self, before: Step, after: Step) -> Action:
        """Read what a step does."""
        require_action(after, MODULE, ACTIONS)
        self.expected(before)
        self.expected(after)
        old: Any = before.state["arrived"]
        new: Any = after.state["arrived"]
        if len(new) != len(old) + 1 or new[:-1] != old:
            raise unreadable(after, MODULE, "no action of the module makes this step")
        what, timestamp = new[-1]["input"], new[-1]["timestamp"]
        if what in BOTH:
            return Action(Record(what, str(new[-1]["key"]), len(new), timestamp))
        return Action(Heartbeat(timestamp) if what == "heartbeat" else CUT)


def _output(told: Any, arrived: Any) -> tuple[str, list[int | None], int]:
    """Give an output of the model as the reference tells it: key, value, timestamp."""
    values = [number if isinstance(number, int) else None for number in (told["left"], told["right"])]
    records = [arrived[number - 1] for number in values if number is not None]
    return str(records[0]["key"]), values, max(record["timestamp"] for record in records)


def _rows(rows: Any, join: StreamStreamJoin) -> Mapping[str, str]:
    return {str(row["number"]): _state(row["matched"], join) for row in rows}


def _state(matched: bool, join: StreamStreamJoin) -> str:
    """Say what there is to compare of a row; only on close does it matter whether it has found a partner."""
    return "matched" if matched and join.emit == "close" else "buffered"


class StreamStreamJoinMachine:
    """The reference, or one with a seeded bug, on which actions are taken."""

    def __init__(self, join: StreamStreamJoin, clock: Clock, mutant: str = "none") -> None:
        self.join = join
        self.clock = clock
        self.behaviour = MUTANTS[mutant](join, clock)
        self.outputs: list[Output] = []

    def take(self, action: Action) -> list[Output]:
        """Do what a step does, and give what is told."""
        line = action.line
        if isinstance(line, Record):
            told = self.behaviour.arrive(line)
        else:
            if isinstance(line, Heartbeat):
                self.clock.observe(line.timestamp)
            elif isinstance(line, Cut):
                self.clock.cut()
            told = self.behaviour.advance()
        self.outputs += told
        return told

    def seen(self) -> Mapping[str, Any]:
        """Give the state by its parts."""
        told = [(one.key, one.value, one.timestamp) for one in self.outputs if isinstance(one, Change)]
        return {"clock": self.clock.now, "told": told, **{f"on the {side}": self.rows(side) for side in BOTH}}

    def rows(self, side: str) -> Mapping[str, str]:
        """Give the buffered rows of a side by their number."""
        buffered = self.behaviour.buffers[side].values()
        return {str(row.record.value): _state(row.matched, self.join) for rows in buffered for row in rows}

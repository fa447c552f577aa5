"""Replay behaviours of `SessionWindows.tla` as histories, on the reference.

TLC doesn't report the parameters of actions, so the replay derives each step's action from the states before and after
the step. Every record has the value 1, and the aggregate counts. The model's store may delete expired sessions at any
time, which no history line expresses. A clock advance without effect represents such a deletion. The replay compares
stores only within the retention. The replay compares the folded changelog with the reference's state machine and with
its meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ...reference.core.clocks import Clock, make_clock
from ...reference.core.history import CUT, ClockAdvance
from ...reference.core.operator import operator_named
from ...reference.core.records import Accepted, Change, Dropped, Output, Record, fold
from ...reference.definitions.windows import SessionWindows
from ...reference.session_windows import Behaviour, meaning
from ..pytla import Step
from .common import Action, ModelConstants, ModuleReplay, NotInModule, ReferenceMachine
from .session_windows_mutants import MUTANTS, ClockFollows, Revises

DURATIONS = {"gap_ms": "Gap", "grace_ms": "Grace", "retention_ms": "Retention"}
CHOICES = {"emit": "Emit", "late": "Late"}
"""The operator's options, each with the constant of the module that has the same meaning."""


class SessionWindowsReplay(ModuleReplay):
    """Reads behaviours of `SessionWindows.tla`, under the constants of a model.

    Raises:
        BadInput: A constant is missing, or has a value that the module doesn't define.
    """

    module = "SessionWindows"
    operator = "session_windows"
    variables = frozenset({"store", "clock", "largest", "emitted", "emissions", "accepted", "dropped"})
    actions = frozenset({"Arrive", "ArriveWithoutKey", "Cut", "Forget"})

    def __init__(self, constants: ModelConstants) -> None:
        super().__init__(constants, ("Mutant", "Clock", "Closed", *DURATIONS.values(), *CHOICES.values()))
        self.clock, self.closed = str(constants["Clock"]), str(constants["Closed"])
        self.mutant = self._mutant(constants, MUTANTS)
        durations = {option: constants[name] for option, name in DURATIONS.items()}
        choices = {option: str(constants[name]) for option, name in CHOICES.items()}
        self.options = {**durations, **choices}
        self.windows: SessionWindows = operator_named(self.operator).declare(self.options)

    def machine(self) -> SessionMachine:
        """Return a new reference, with the mutant that the constants name, if any."""
        clock: Clock = ClockFollows() if self.mutant == "clock follows" else make_clock(self.clock)
        behaviour = Revises if self.closed == "revised" else MUTANTS[self.mutant]
        return SessionMachine(self.windows, clock, behaviour)

    def _parts(self, state: Any) -> Mapping[str, Any]:
        clock = state["clock"]
        if not isinstance(clock, int):
            raise NotInModule(f"the clock is {clock}, not a number")
        edge = self.windows.expiry_edge(clock)
        emitted = {row: count for row, count, _ in _sessions(state["emitted"])}
        parts = {
            "clock": clock,
            "accepted": _records(state["accepted"]),
            "dropped": _records(state["dropped"]),
            "stored session": {row: count for row, count, end in _sessions(state["store"]) if end >= edge},
            "emitted session": emitted,
            "emissions": state["emissions"],
        }
        is_right = self.mutant == "none" and self.closed == "final"
        return {**parts, "meant session": emitted} if is_right else parts  # the module's FoldIsMeaning

    def _action(self, before: Step, after: Step) -> Action:
        old, new = before.state, after.state
        came = [*_came(old["accepted"], new["accepted"]), *_came(old["dropped"], new["dropped"])]
        if len(came) > 1:
            raise NotInModule("several records arrive at once")
        for record in came:
            return Action(Record("events", record["key"], 1, record["timestamp"]))
        if old["clock"] != new["clock"]:
            # The clock has moved without a record of the model: at a cut or, in a mutant, by a record without a key.
            return Action(CUT if self.clock == "batch" else Record("events", None, 1, int(str(new["clock"]))))
        if old["store"] != new["store"]:
            return Action(ClockAdvance(int(str(new["clock"]))))
        if old == new:
            return Action(Record("events", None, 1, 0))
        raise NotInModule("no action of the module makes this step")


def _sessions(by_key: Any) -> Iterable[tuple[str, int, int]]:
    for key, sessions in by_key.items():
        for session in sessions:
            yield f"{key} [{session['start']}, {session['end']}]", session["count"], session["end"]


def _records(records: Any) -> Mapping[str, int]:
    return Counter(_shown(record["key"], record["timestamp"], record["clock"]) for record in records)


def _shown(key: Any, timestamp: int, clock: int) -> str:
    return f"{key}@{timestamp} at {clock}"


def _came(before: Any, after: Any) -> list[Any]:
    return [record for record in after if record not in before]


class SessionMachine(ReferenceMachine[Behaviour]):
    """The reference's state machine, or a mutant, which executes actions."""

    def __init__(self, windows: SessionWindows, clock: Clock, behaviour: type[Behaviour] = Behaviour) -> None:
        super().__init__(behaviour(windows, clock), clock)
        self.windows = windows
        self.accepted: list[Accepted] = []
        self.dropped: list[Accepted] = []

    def take(self, action: Action) -> list[Output]:
        """Execute a step's action, and return the outputs."""
        emitted = super().take(action)
        if isinstance(action.line, Record) and action.line.key is not None:
            late = bool(emitted) and isinstance(emitted[-1], Dropped)
            (self.dropped if late else self.accepted).append(Accepted(action.line, self.clock.now))
        return emitted

    def seen(self) -> Mapping[str, Any]:
        """Return the reference's state, part by part."""
        edge = self.windows.expiry_edge(self.clock.now)
        stored = {
            f"{key} [{start}, {end}]": count
            for key, sessions in self.behaviour.store.sessions.items()
            for (end, start), count in sessions.items()
            if end >= edge
        }
        changes = [output for output in self.outputs if isinstance(output, Change)]
        return {
            "clock": self.clock.now,
            "accepted": _counted(self.accepted),
            "dropped": _counted(self.dropped),
            "stored session": stored,
            "emitted session": _rows(fold(changes)),
            "emissions": len(changes) if self.windows.emit == "close" else 0,
            "meant session": _rows(meaning(self.windows, self.accepted, self.clock.now)),
        }


def _counted(taken: Iterable[Accepted]) -> Mapping[str, int]:
    return Counter(_shown(one.record.key, one.record.timestamp, one.clock) for one in taken)


def _rows(table: Mapping[Any, tuple[Any, int]]) -> Mapping[str, int]:
    return {f"{key} [{window[0]}, {window[1]}]": count for (key, window), (count, _) in table.items()}

"""How behaviours of `SessionWindows.tla` are replayed: as histories, on the reference.

TLC names no parameters, so what a step does is read from the states before and after it. Every record has the value 1,
and the sessions are counted. The store of the model forgets when it likes, which is no line of a history: a heartbeat
that doesn't move the clock stands for it, and stores are held against each other as far as the retention reaches. What
the changelog folds to is held against both the reference's behaviour and its meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ...reference.clocks import Clock, make_clock
from ...reference.histories import CUT, Cut, Heartbeat
from ...reference.operators import operator_named
from ...reference.records import Accepted, Change, Dropped, Output, Record, fold
from ...reference.session_windows import Behaviour, meaning
from ...reference.windows import SessionWindows
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
from .session_windows_mutants import MUTANTS, ClockFollows, Revises

MODULE = "SessionWindows"
OPERATOR = "session_windows"
DURATIONS = {"gap_ms": "Gap", "grace_ms": "Grace", "retention_ms": "Retention"}
CHOICES = {"emit": "Emit", "late": "Late"}
"""The operator's options, and the constants that say the same."""
VARIABLES = frozenset({"store", "clock", "largest", "told", "tellings", "accepted", "dropped"})
ACTIONS = frozenset({"Arrive", "ArriveWithoutKey", "Cut", "Forget"})


class SessionWindowsReplay:
    """Reads behaviours of `SessionWindows.tla`, under the constants of a model.

    Raises:
        BadInput: A constant is missing or isn't one of the module's values.
    """

    operator = OPERATOR

    def __init__(self, constants: Constants) -> None:
        require_constants(constants, MODULE, ("Mutant", "Clock", "Closed", *DURATIONS.values(), *CHOICES.values()))
        self.mutant, self.clock, self.closed = (str(constants[name]) for name in ("Mutant", "Clock", "Closed"))
        require_mutant(self.mutant, MODULE, MUTANTS)
        durations = {option: constants[name] for option, name in DURATIONS.items()}
        choices = {option: str(constants[name]) for option, name in CHOICES.items()}
        self.options: Mapping[str, Any] = {**durations, **choices}
        self.windows: SessionWindows = operator_named(OPERATOR).declare(self.options)

    def machine(self) -> SessionMachine:
        """Start the reference, with the seeded bug that the constants name, if they do."""
        clock: Clock = ClockFollows() if self.mutant == "clock follows" else make_clock(self.clock)
        behaviour = Revises if self.closed == "revised" else MUTANTS[self.mutant]
        return SessionMachine(self.windows, clock, behaviour)

    def expected(self, step: Step) -> Mapping[str, Any]:
        """Give the model's state after a step, part by part."""
        state = step.state
        require_variables(step, MODULE, VARIABLES)
        clock = state["clock"]
        if not isinstance(clock, int):
            raise unreadable(step, MODULE, f"the clock is {clock}, which is no number")
        try:
            edge = self.windows.expiry_edge(clock)
            stored = {row: count for row, count, end in _sessions(state["store"]) if end >= edge}
            told = {row: count for row, count, _ in _sessions(state["told"])}
            parts = {
                "clock": clock,
                "accepted": _records(state["accepted"]),
                "dropped": _records(state["dropped"]),
                "stored session": stored,
                "told session": told,
                "tellings": state["tellings"],
            }
        except (AttributeError, KeyError, TypeError) as error:
            raise unreadable(step, MODULE, f"a value is none of the module's ({error!r})") from None
        is_right = self.mutant == "none" and self.closed == "final"
        return {**parts, "meant session": told} if is_right else parts  # the module's FoldIsMeaning

    def action(self, before: Step, after: Step) -> Action:
        """Read what a step does."""
        require_action(after, MODULE, ACTIONS)
        self.expected(before)
        self.expected(after)
        old, new = before.state, after.state
        came = [*_came(old["accepted"], new["accepted"]), *_came(old["dropped"], new["dropped"])]
        if len(came) > 1:
            raise unreadable(after, MODULE, "several records come at once")
        for record in came:
            return Action(Record("events", record["key"], 1, record["timestamp"]))
        if old["clock"] != new["clock"]:
            # Without a record the clock moves at a cut alone, or by a bug.
            return Action(CUT if self.clock == "batch" else Record("events", None, 1, int(str(new["clock"]))))
        if old["store"] != new["store"]:
            return Action(Heartbeat(int(str(new["clock"]))))
        if old == new:
            return Action(Record("events", None, 1, 0))
        raise unreadable(after, MODULE, "no action of the module makes this step")


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


class SessionMachine:
    """The reference, or one with a seeded bug, on which actions are taken."""

    def __init__(self, windows: SessionWindows, clock: Clock, behaviour: type[Behaviour] = Behaviour) -> None:
        self.clock = clock
        self.behaviour = behaviour(windows, clock)
        self.windows = windows
        self.outputs: list[Output] = []
        self.accepted: list[Accepted] = []
        self.dropped: list[Accepted] = []

    def take(self, action: Action) -> list[Output]:
        """Do what a step does, and give what is told."""
        line = action.line
        told: list[Output] = []
        if isinstance(line, Record):
            told = self.behaviour.arrive(line)
            late = bool(told) and isinstance(told[-1], Dropped)
            if line.key is not None:
                (self.dropped if late else self.accepted).append(Accepted(line, self.clock.now))
        elif isinstance(line, Heartbeat):
            self.clock.observe(line.timestamp)
            told = self.behaviour.advance()
        elif isinstance(line, Cut):
            self.clock.cut()
            told = self.behaviour.advance()
        self.outputs += told
        return told

    def seen(self) -> Mapping[str, Any]:
        """Give the state by its parts."""
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
            "told session": _rows(fold(changes)),
            "tellings": len(changes) if self.windows.emit == "close" else 0,
            "meant session": _rows(meaning(self.windows, self.accepted, self.clock.now)),
        }


def _counted(taken: Iterable[Accepted]) -> Mapping[str, int]:
    return Counter(_shown(one.record.key, one.record.timestamp, one.clock) for one in taken)


def _rows(table: Mapping[Any, tuple[Any, int]]) -> Mapping[str, int]:
    return {f"{key} [{window[0]}, {window[1]}]": count for (key, window), (count, _) in table.items()}

"""How behaviours of `TableTableJoin.tla` are replayed: as histories, on the reference.

TLC names no parameters, so what a step does is read from the states before and after it. A change that is made waits
in a queue, which is nothing to the join yet: a heartbeat that doesn't move the clock stands for it. The change comes
when it is taken, with its number among all that were taken as its timestamp (ms).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...reference.clocks import StreamTime
from ...reference.errors import BadInput
from ...reference.histories import Heartbeat
from ...reference.joins import BOTH, TableTableJoin
from ...reference.operators import operator_named
from ...reference.records import Change, Output, Record, fold
from ..pytla import ModelValue, Step
from .common import (
    Action,
    Constants,
    require_action,
    require_constants,
    require_mutant,
    require_variables,
    unreadable,
)
from .table_table_join_mutants import MUTANTS, TellsOnce

MODULE = "TableTableJoin"
OPERATOR = "table_table_join"
VARIABLES = frozenset({"log", "queue", "tables", "result", "told"})
ACTIONS = frozenset({"Make", "Take"})


class TableTableJoinReplay:
    """Reads behaviours of `TableTableJoin.tla`, under the constants of a model.

    Raises:
        BadInput: A constant is missing or isn't one of the module's values.
    """

    operator = OPERATOR
    clock = "stream_time"

    def __init__(self, constants: Constants) -> None:
        require_constants(constants, MODULE, ("Join", "Tombstones", "Mutant"))
        self.mutant, self.tombstones = str(constants["Mutant"]), str(constants["Tombstones"])
        require_mutant(self.mutant, MODULE, MUTANTS)
        if self.tombstones not in ("again", "once"):
            raise BadInput(f"Tombstones of {MODULE} is {self.tombstones!r}: use again or once")
        self.options: Mapping[str, Any] = {"join": str(constants["Join"])}
        self.join: TableTableJoin = operator_named(OPERATOR).declare(self.options)

    def machine(self) -> TableTableJoinMachine:
        """Start the reference, with the seeded bug that the constants name, if they do."""
        return TableTableJoinMachine(self.join, self.mutant, self.tombstones)

    def expected(self, step: Step) -> Mapping[str, Any]:
        """Give the model's state after a step, part by part."""
        state: Any = step.state
        require_variables(step, MODULE, VARIABLES)
        try:
            return {
                **{f"{side} row": _present(state["tables"][side].items()) for side in BOTH},
                "result": _present((key, _shown(row)) for key, row in state["result"].items()),
                "told": [(str(one["key"]), _shown(one["row"])) for one in state["told"]],
            }
        except (AttributeError, KeyError, TypeError) as error:
            raise unreadable(step, MODULE, f"a value is none of the module's ({error!r})") from None

    def action(self, before: Step, after: Step) -> Action:
        """Read what a step does."""
        require_action(after, MODULE, ACTIONS)
        self.expected(before)
        self.expected(after)
        old: Any = before.state
        new: Any = after.state
        if old["log"] != new["log"]:
            return Action(Heartbeat(0))
        taken = sum(len(new["log"][side]) - len(new["queue"][side]) for side in BOTH)
        for side in BOTH:
            queue = old["queue"][side]
            for place, change in enumerate(queue):
                if queue[:place] + queue[place + 1 :] == new["queue"][side]:
                    return Action(Record(side, str(change["key"]), _value(change["value"]), taken))
        raise unreadable(after, MODULE, "no action of the module makes this step")


def _value(value: Any) -> Any:
    return None if isinstance(value, ModelValue) else value


def _shown(row: Any) -> list[Any] | None:
    return None if isinstance(row, ModelValue) else [_value(row["left"]), _value(row["right"])]


def _present(rows: Iterable[tuple[Any, Any]]) -> Mapping[str, Any]:
    return {str(key): value for key, value in rows if _value(value) is not None}


class TableTableJoinMachine:
    """The reference, or one with a seeded bug, on which actions are taken."""

    def __init__(self, join: TableTableJoin, mutant: str = "none", tombstones: str = "again") -> None:
        behaviour = TellsOnce if tombstones == "once" else MUTANTS[mutant]
        self.behaviour = behaviour(join, StreamTime())
        self.outputs: list[Output] = []
        self.told: list[Output] = []

    def take(self, action: Action) -> list[Output]:
        """Do what a step does, and give what is told."""
        line = action.line
        self.told = self.behaviour.arrive(line) if isinstance(line, Record) else self.behaviour.advance()
        self.outputs += self.told
        return self.told

    def seen(self) -> Mapping[str, Any]:
        """Give the state by its parts."""
        tables = self.behaviour.tables.tables
        return {
            **{f"{side} row": {key: value for (key, _), (value, _) in tables[side].items()} for side in BOTH},
            "result": {key: value for (key, _), (value, _) in fold(self.outputs).items()},
            "told": [(one.key, one.value) for one in self.told if isinstance(one, Change)],
        }

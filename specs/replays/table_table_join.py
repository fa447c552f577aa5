"""Replay behaviours of `TableTableJoin.tla` as histories, on the reference.

TLC doesn't report the parameters of actions, so the replay derives each step's action from the states before and after
the step. In the model, a change first waits in a queue outside the join. A clock advance without effect represents the
step that adds a change to its queue. In the replay, the change arrives when it leaves the queue. The change's timestamp
is its number among all arrived changes (ms).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...reference.core.clocks import StreamTime
from ...reference.core.errors import BadInput
from ...reference.core.history import ClockAdvance
from ...reference.core.operator import operator_named
from ...reference.core.records import Change, Output, Record, fold
from ...reference.definitions.joins import BOTH, TableTableJoin
from ...reference.table_table_join import Behaviour
from ..pytla import ModelValue, Step
from .common import Action, ModelConstants, ModuleReplay, NotInModule, ReferenceMachine
from .table_table_join_mutants import MUTANTS, EmitsOnce


class TableTableJoinReplay(ModuleReplay):
    """Reads behaviours of `TableTableJoin.tla`, under the constants of a model.

    Raises:
        BadInput: A constant is missing, or has a value that the module doesn't define.
    """

    module = "TableTableJoin"
    operator = "table_table_join"
    variables = frozenset({"log", "queue", "tables", "result", "emitted"})
    actions = frozenset({"Make", "Take"})

    def __init__(self, constants: ModelConstants) -> None:
        super().__init__(constants, ("Join", "Tombstones", "Mutant"))
        self.mutant, self.tombstones = self._mutant(constants, MUTANTS), str(constants["Tombstones"])
        if self.tombstones not in ("again", "once"):
            raise BadInput(f"Tombstones of {self.module} is {self.tombstones!r}: use again or once")
        self.options = {"join": str(constants["Join"])}
        self.join: TableTableJoin = operator_named(self.operator).declare(self.options)

    def machine(self) -> TableTableJoinMachine:
        """Return a new reference, with the mutant that the constants name, if any."""
        return TableTableJoinMachine(self.join, self.mutant, self.tombstones)

    def _parts(self, state: Any) -> Mapping[str, Any]:
        return {
            **{f"{side} row": _present(state["tables"][side].items()) for side in BOTH},
            "result": _present((key, _shown(row)) for key, row in state["result"].items()),
            "emitted": [(str(one["key"]), _shown(one["row"])) for one in state["emitted"]],
        }

    def _action(self, before: Step, after: Step) -> Action:
        old: Any = before.state
        new: Any = after.state
        if old["log"] != new["log"]:
            return Action(ClockAdvance(0))
        taken = sum(len(new["log"][side]) - len(new["queue"][side]) for side in BOTH)
        for side in BOTH:
            queue = old["queue"][side]
            for index, change in enumerate(queue):
                if queue[:index] + queue[index + 1 :] == new["queue"][side]:
                    return Action(Record(side, str(change["key"]), _value(change["value"]), taken))
        raise NotInModule("no action of the module makes this step")


def _value(value: Any) -> Any:
    return None if isinstance(value, ModelValue) else value


def _shown(row: Any) -> list[Any] | None:
    return None if isinstance(row, ModelValue) else [_value(row["left"]), _value(row["right"])]


def _present(rows: Iterable[tuple[Any, Any]]) -> Mapping[str, Any]:
    return {str(key): value for key, value in rows if _value(value) is not None}


class TableTableJoinMachine(ReferenceMachine[Behaviour]):
    """The reference's state machine, or a mutant, which executes actions."""

    def __init__(self, join: TableTableJoin, mutant: str = "none", tombstones: str = "again") -> None:
        behaviour = EmitsOnce if tombstones == "once" else MUTANTS[mutant]
        clock = StreamTime()
        super().__init__(behaviour(join, clock), clock)
        self.emitted: list[Output] = []

    def take(self, action: Action) -> list[Output]:
        """Execute a step's action, and return the outputs."""
        self.emitted = super().take(action)
        return self.emitted

    def seen(self) -> Mapping[str, Any]:
        """Return the reference's state, part by part."""
        tables = self.behaviour.tables.tables
        return {
            **{f"{side} row": {key: value for (key, _), (value, _) in tables[side].items()} for side in BOTH},
            "result": {key: value for (key, _), (value, _) in fold(self.outputs).items()},
            "emitted": [(one.key, one.value) for one in self.emitted if isinstance(one, Change)],
        }

"""Replay behaviours of `OneToManyJoin.tla` as changes of both tables, on the reference.

The reference sends no messages, because a change takes effect at once. So the replay replaces each delivery by a clock
advance. Whenever no row waits for its delivery in the model, the replay compares the reference's output with the
model's result. The reference doesn't include the table by left key, which a user adds. TLC doesn't report the
parameters of actions, so the replay derives each step's action from the states before and after the step. A left row is
the value `{"version": …, "foreign_key": …}`, a right row `{"version": …, "key": …}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...reference.core.clocks import StreamTime
from ...reference.core.errors import BadInput
from ...reference.core.history import ClockAdvance
from ...reference.core.operator import operator_named
from ...reference.core.records import Record, fold
from ...reference.definitions.joins import OneToManyJoin
from ...reference.one_to_many_join import Behaviour, combined
from ..pytla import Step, TlaValue
from .common import Action, ModelConstants, ModuleReplay, NotInModule, ReferenceMachine, SpecState

OPTIONS = {"join": "Join", "protocol": "Protocol", "null_foreign_key": "NullForeignKey"}
"""The operator's options, each with the constant of the module that has the same meaning."""
CHANGES = {"left": "left_changes", "right": "right_changes"}


class OneToManyJoinReplay(ModuleReplay):
    """Reads behaviours of `OneToManyJoin.tla`, under the constants of a model.

    Raises:
        BadInput: A constant is missing, has a value that the module doesn't define, or names a mutant.
    """

    module = "OneToManyJoin"
    operator = "one_to_many_join"
    variables = frozenset(
        {"left", "right", "rows", "kept", "result", "results", "collected", "newest", *CHANGES.values()}
    )
    actions = frozenset(
        {"UpdateLeft", "DeleteLeft", "ChangeLeft", "UpdateRight", "DeleteRight", "ChangeRight"}
        | {"DeliverRow", "DeliverResult"}
    )

    def __init__(self, constants: ModelConstants) -> None:
        super().__init__(constants, ("None", "Mutant", *OPTIONS.values()))
        if constants["Mutant"] != "none":
            raise BadInput(
                f"the reference can't be the mutant {str(constants['Mutant'])!r}, because it has no messages: "
                f'replay a model of {self.module} whose Mutant is "none"'
            )
        self.none = constants["None"]
        named = {option: str(constants[name]) for option, name in OPTIONS.items()}
        self.options = {"foreign_key": "foreign_key", **named}
        self.join: OneToManyJoin = operator_named(self.operator).declare(self.options)

    def machine(self) -> JoinMachine:
        """Start the reference."""
        clock = StreamTime()
        return JoinMachine(Behaviour(self.join, clock), clock)

    def _action(self, before: Step, after: Step) -> Action:
        old, new = before.state, after.state
        was, now = self._tables(old), self._tables(new)
        sides = [side for side, count in CHANGES.items() if old[count] != new[count]]
        if len(sides) > 1:
            raise NotInModule("both tables change at once")
        for side in sides:
            table = f"{side} table"
            rows = [row for row in {**was[table], **now[table]} if was[table].get(row) != now[table].get(row)]
            # A delete of a missing row doesn't show the row's key; the result is the same for any key.
            rows = rows or [key for key, row in _items(new[side]) if row == self.none]
            if len(rows) < 1:
                raise NotInModule(f"it doesn't show which row of the {table} changes")
            number = sum(int(str(new[count])) for count in CHANGES.values())
            return Action(Record(side, rows[0], now[table].get(rows[0]), number))
        if (old["left"], old["right"]) != (new["left"], new["right"]) or old == new:
            raise NotInModule("no action of the module makes this step")
        return Action(ClockAdvance(0))

    def _tables(self, state: SpecState) -> dict[str, Any]:
        return {
            f"{side} table": {key: self._row(row) for key, row in _items(state[side]) if row != self.none}
            for side in CHANGES
        }

    def _parts(self, state: Any) -> Mapping[str, Any]:
        """Return the tables and, if no row waits for its delivery, the result."""
        tables = self._tables(state)
        if any(queue for _, queue in _items(state["rows"])):
            return tables
        by_both_keys = {
            name: {
                combined(None if foreign_key == str(self.none) else foreign_key, key): value
                for foreign_key, by_key in _items(state[name])
                for key, value in _items(by_key)
                if value != self.none
            }
            for name in ("kept", "result")
        }
        return {
            **tables,
            "kept": {keys: self._row(kept["row"]) for keys, kept in by_both_keys["kept"].items()},
            "result": {
                keys: [self._row(pair["left"]), self._row(pair["right"])]
                for keys, pair in by_both_keys["result"].items()
            },
        }

    def _row(self, row: Any) -> Any:
        if row == self.none:
            return None
        return {field: None if value == self.none else value for field, value in row.items()}


def _items(function: TlaValue) -> Iterable[tuple[str, Any]]:
    if not isinstance(function, Mapping):
        raise TypeError(f"{function} is no function")
    return [(str(key), value) for key, value in function.items()]


class JoinMachine(ReferenceMachine[Behaviour]):
    """The reference of the join, which executes actions."""

    def seen(self) -> Mapping[str, Any]:
        """Return the reference's state, part by part."""
        behaviour = self.behaviour
        return {
            "left table": {key: row for key, row in behaviour.left.items() if row is not None},
            "right table": {key: row for key, (row, _) in behaviour.right.items()},
            "kept": {combined(*keys): row for keys, (row, _) in behaviour.rows.items()},
            "result": {keys: value for (keys, _), (value, _) in fold(self.outputs).items()},
        }

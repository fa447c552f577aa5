"""How behaviours of `OneToManyJoin.tla` are replayed: the changes of both tables, on the reference.

The reference has no messages: a change is answered where it is made. So deliveries do nothing there (a heartbeat stands
for each), and what was told is held against the model's result whenever no row waits in the model. The grouping by left
key is the user's, and has no reference. TLC names no parameters, so what a step does is read from the states before and
after it. A left row is the value `{"version": …, "foreign_key": …}`, a right row `{"version": …, "key": …}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...reference.clocks import StreamTime
from ...reference.errors import BadInput
from ...reference.histories import Heartbeat
from ...reference.joins import OneToManyJoin
from ...reference.one_to_many_join import Behaviour, combined
from ...reference.operators import operator_named
from ...reference.records import Output, Record, fold
from ..pytla import Step, Value
from .common import Action, Constants, State, require_action, require_constants, require_variables, unreadable

MODULE = "OneToManyJoin"
OPERATOR = "one_to_many_join"
OPTIONS = {"join": "Join", "protocol": "Protocol", "null_foreign_key": "NullForeignKey"}
"""The operator's options, and the constants that say the same."""
CHANGES = {"left": "left_changes", "right": "right_changes"}
VARIABLES = frozenset({"left", "right", "rows", "kept", "result", "results", "collected", "newest", *CHANGES.values()})
ACTIONS = frozenset(
    {"UpdateLeft", "DeleteLeft", "ChangeLeft", "UpdateRight", "DeleteRight", "ChangeRight"}
    | {"DeliverRow", "DeliverResult"}
)


class OneToManyJoinReplay:
    """Reads behaviours of `OneToManyJoin.tla`, under the constants of a model.

    Raises:
        BadInput: A constant is missing or isn't one of the module's values, or names a mutant.
    """

    operator = OPERATOR
    clock = "stream_time"

    def __init__(self, constants: Constants) -> None:
        require_constants(constants, MODULE, ("None", "Mutant", *OPTIONS.values()))
        if constants["Mutant"] != "none":
            raise BadInput(
                f"the reference can't have the bug {str(constants['Mutant'])!r}, for it has no messages: "
                f'replay a model of {MODULE} whose Mutant is "none"'
            )
        self.none = constants["None"]
        named = {option: str(constants[name]) for option, name in OPTIONS.items()}
        self.options: Mapping[str, Any] = {"foreign_key": "foreign_key", **named}
        self.join: OneToManyJoin = operator_named(OPERATOR).declare(self.options)

    def machine(self) -> JoinMachine:
        """Start the reference."""
        return JoinMachine(self.join)

    def expected(self, step: Step) -> Mapping[str, Any]:
        """Give the model's state after a step, part by part: the result where no row waits, else the tables alone."""
        state = step.state
        require_variables(step, MODULE, VARIABLES)
        try:
            return self._parts(state)
        except (AttributeError, KeyError, TypeError) as error:
            raise unreadable(step, MODULE, f"a value is none of the module's ({error!r})") from None

    def action(self, before: Step, after: Step) -> Action:
        """Read what a step does."""
        require_action(after, MODULE, ACTIONS)
        was, now = self.expected(before), self.expected(after)
        old, new = before.state, after.state
        sides = [side for side, count in CHANGES.items() if old[count] != new[count]]
        if len(sides) > 1:
            raise unreadable(after, MODULE, "both tables change at once")
        for side in sides:
            table = f"{side} table"
            rows = [row for row in {**was[table], **now[table]} if was[table].get(row) != now[table].get(row)]
            # A delete of what isn't there shows no key; whichever it was, the result is the same.
            rows = rows or [key for key, row in _items(new[side]) if row == self.none]
            if len(rows) < 1:
                raise unreadable(after, MODULE, f"it can't be told which row of the {table} changes")
            number = sum(int(str(new[count])) for count in CHANGES.values())
            return Action(Record(side, rows[0], now[table].get(rows[0]), number))
        if (old["left"], old["right"]) != (new["left"], new["right"]) or old == new:
            raise unreadable(after, MODULE, "no action of the module makes this step")
        return Action(Heartbeat(0))

    def _parts(self, state: State) -> Mapping[str, Any]:
        tables = {
            f"{side} table": {key: self._row(row) for key, row in _items(state[side]) if row != self.none}
            for side in CHANGES
        }
        if any(queue for _, queue in _items(state["rows"])):
            return tables
        by_both_keys = {
            name: {
                combined(None if place == str(self.none) else place, key): value
                for place, by_key in _items(state[name])
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


def _items(function: Value) -> Iterable[tuple[str, Any]]:
    if not isinstance(function, Mapping):
        raise TypeError(f"{function} is no function")
    return [(str(key), value) for key, value in function.items()]


class JoinMachine:
    """The reference, on which actions are taken."""

    def __init__(self, join: OneToManyJoin) -> None:
        self.behaviour = Behaviour(join, StreamTime())
        self.told: list[Output] = []

    def take(self, action: Action) -> list[Output]:
        """Do what a step does, and give what is told."""
        told = self.behaviour.arrive(action.line) if isinstance(action.line, Record) else []
        self.told += told
        return told

    def seen(self) -> Mapping[str, Any]:
        """Give the state by its parts."""
        behaviour = self.behaviour
        return {
            "left table": {key: row for key, row in behaviour.left.items() if row is not None},
            "right table": {key: row for key, (row, _) in behaviour.right.items()},
            "kept": {combined(*keys): row for keys, (row, _) in behaviour.kept.items()},
            "result": {keys: value for (keys, _), (value, _) in fold(self.told).items()},
        }

"""Replay behaviours of `ForeignKeyJoin.tla` as histories with manual delivery, on the reference's protocol.

TLC doesn't report the parameters of actions, so the replay derives each step's action from the states before and after
the step. A left row is the value `{"version": …, "foreign_key": …}`, a right row `{"version": …, "key": …}`. The
model's hash of a row is the row itself; the reference's digests are converted back to rows for the comparison.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from ...reference.core.clocks import StreamTime
from ...reference.core.errors import BadInput
from ...reference.core.history import Delivery, History, Line
from ...reference.core.operator import operator_named
from ...reference.core.records import Change, Key, Output, Record
from ...reference.core.records import Value as Row
from ...reference.definitions.joins import ForeignKeyJoin
from ...reference.foreign_key_protocol import Protocol, Response, Route, Subscription, digest_of, prefix_of
from ..pytla import Step, TlaValue, Trace
from .common import Action, ModelConstants, ModuleReplay, NotInModule, SpecState, steps_of
from .foreign_key_kafka import KAFKA, WITHOUT_KEY
from .foreign_key_mutants import MUTANTS, RoutesOutOfOrder

MODULE = "ForeignKeyJoin"
OPERATOR = "foreign_key_join"
LEFT_ROW = ("version", "foreign_key")
RIGHT_ROW = ("version", "key")
OPTIONS = {"join": "Join", "protocol": "Protocol", "null_foreign_key": "NullForeignKey"}
"""The operator's options, each with the constant of the module that has the same meaning."""
MAY_CHANGE = {
    "left change": {"left", "subscriptions", "result", "left_changes", "together"},
    "right change": {"right", "responses", "right_changes", "together"},
    "subscription": {"subscriptions", "subscribed", "responses"},
    "response": {"responses", "result"},
}
"""The variables that each kind of action may change; an action keeps all other variables."""
_ACTIONS = {
    "UpdateLeft": "left change",
    "DeleteLeft": "left change",
    "ChangeLeft": "left change",  # the specification's action for a delete
    "UpdateRight": "right change",
    "DeleteRight": "right change",
    "ChangeRight": "right change",
    "DeliverSubscription": "subscription",
    "DeliverResponse": "response",
}
_KEPT_STATES = 50_000


class ForeignKeyJoinReplay(ModuleReplay):
    """Reads behaviours of `ForeignKeyJoin.tla`, under the constants of a model.

    Methods convert the values in a state, because the conversions need the constants.

    Raises:
        BadInput: A constant is missing, or has a value that the module doesn't define.
    """

    module = MODULE
    operator = OPERATOR
    variables = frozenset[str]().union(*MAY_CHANGE.values())

    def __init__(self, constants: ModelConstants) -> None:
        super().__init__(constants, ("None", "Mutant", *OPTIONS.values()))
        self.none = constants["None"]
        self.mutant = self._mutant(constants, MUTANTS)
        self.code = self._code(str(constants["Protocol"]))
        named = {option: str(constants[name]) for option, name in OPTIONS.items()}
        if self.code in KAFKA:
            named["protocol"], _ = KAFKA[self.code]
        self.options = {"foreign_key": "foreign_key", **named, "delivery": "manual"}
        self.join: ForeignKeyJoin = operator_named(OPERATOR).declare(self.options)
        # Behaviours of a graph share states, so read each state once; keep the state, because Python reuses ids.
        self._states: dict[int, tuple[SpecState, Mapping[str, Any]]] = {}
        self._steps: dict[tuple[int, int], tuple[SpecState, SpecState, Action]] = {}

    def _code(self, protocol: str) -> str:
        """Return the name of the model's protocol: a mutant, a protocol of Kafka, or `none` for the reference."""
        if protocol not in KAFKA:
            return self.mutant
        if self.mutant != "none":
            raise BadInput(f"{MODULE} has no mutant of the protocol {protocol!r}: override only one of the constants")
        return protocol

    @property
    def is_right(self) -> bool:
        """Return whether the protocol is right: not a mutant, not a protocol of Kafka, and with a response to every
        left change.
        """
        return self.code == "none" and self.join.answers_all

    def machine(self) -> ProtocolMachine:
        """Return a new protocol: the reference's, or the mutant or Kafka protocol that the constants name."""
        return ProtocolMachine(self.join, KAFKA[self.code][1] if self.code in KAFKA else MUTANTS[self.code])

    def expected(self, step: Step) -> Mapping[str, Any]:
        """Return the model's state after a step, part by part."""
        known = self._states.get(id(step.state))
        if known is None:
            known = step.state, super().expected(step)
            if len(self._states) >= _KEPT_STATES:
                self._states.clear()
            self._states[id(step.state)] = known
        return known[1]

    def action(self, before: Step, after: Step) -> Action:
        """Derive a step's action from the states before and after the step."""
        states = id(before.state), id(after.state)
        known = self._steps.get(states)
        if known is None:
            known = before.state, after.state, super().action(before, after)
            if len(self._steps) >= _KEPT_STATES:
                self._steps.clear()
            self._steps[states] = known
        return known[2]

    def joined(self, step: Step) -> dict[Key, list[Row]]:
        """Return the right result after a step, from the tables alone (the module's `JoinOf`)."""
        parts = self.expected(step)
        return join_of(self.join, parts["left table"], parts["right table"])

    # Conversion of the variables of a state

    def _parts(self, state: Any) -> Mapping[str, Any]:
        waiting: dict[Route, tuple[Mapping[str, Any], ...]] = {}
        for to, queue in self._routes(state["subscriptions"]):
            if messages := tuple(map(self._subscription, _queue(queue))):
                waiting["subscription", to, None] = messages
        for source, queues in self._routes(state["responses"]):
            for key, queue in self._items(queues):
                if messages := tuple(map(self._response, _queue(queue))):
                    waiting["response", source, key] = messages
        subscribed = {
            (to, key): row
            for to, hashes in self._items(state["subscribed"])
            for key, value in self._items(hashes)
            if (row := self._row(value, LEFT_ROW)) is not None
        }
        result = {key: pair for key, value in self._items(state["result"]) if (pair := self._pair(value)) is not None}
        return {
            "left table": self._table(state["left"], LEFT_ROW),
            "right table": self._table(state["right"], RIGHT_ROW),
            "subscribed": subscribed,
            "waiting": waiting,
            "result": result,
            "shown": dict.fromkeys(result, True),
        }

    def _table(self, table: TlaValue, fields: Sequence[str]) -> dict[Key, Row]:
        return {key: row for key, value in self._items(table) if (row := self._row(value, fields)) is not None}

    def _routes(self, function: TlaValue) -> list[tuple[Key, TlaValue]]:
        if not isinstance(function, Mapping):
            raise NotInModule(f"{function} isn't a function of keys")
        return [(WITHOUT_KEY if key == self.none else self._key(key), value) for key, value in function.items()]

    def _items(self, function: TlaValue) -> list[tuple[Key, TlaValue]]:
        if not isinstance(function, Mapping):
            raise NotInModule(f"{function} isn't a function of keys")
        return [(self._key(key), value) for key, value in function.items()]

    def _key(self, key: TlaValue) -> Key:
        if isinstance(key, (int, frozenset, tuple, Mapping)):
            raise NotInModule(f"the key {key} is neither a string nor a model value")
        return str(key)

    def _row(self, value: TlaValue, fields: Sequence[str]) -> Row:
        if value == self.none:
            return None
        version, key = _fields(value, fields)
        if isinstance(version, bool) or not isinstance(version, int):
            raise NotInModule(f"the version {version} isn't a number")
        return {fields[0]: version, fields[1]: None if key == self.none else self._key(key)}

    def _pair(self, value: TlaValue) -> list[Row] | None:
        if value == self.none:
            return None
        left, right = _fields(value, ("left", "right"))
        return [self._row(left, LEFT_ROW), self._row(right, RIGHT_ROW)]

    def _subscription(self, message: TlaValue) -> Mapping[str, Any]:
        key, hashed, instruction = _fields(message, ("key", "hash", "instruction"))
        return {"key": self._key(key), "asks": str(instruction), "hash": self._row(hashed, LEFT_ROW)}

    def _response(self, message: TlaValue) -> Mapping[str, Any]:
        hashed, value = _fields(message, ("hash", "value"))
        return {"brings": self._row(value, RIGHT_ROW), "hash": self._row(hashed, LEFT_ROW)}

    # Derivation of the action of a step

    def _action(self, before: Step, after: Step) -> Action:
        was, now = (self.expected(step) for step in (before, after))
        old, new = before.state, after.state
        causes: list[tuple[str, Route | None]] = [
            *(("left change", None) for _ in range(old["left_changes"] != new["left_changes"])),
            *(("right change", None) for _ in range(old["right_changes"] != new["right_changes"])),
            *(
                (route[0], route)
                for route, messages in was["waiting"].items()
                if len(now["waiting"].get(route, ())) < len(messages)
            ),
        ]
        if len(causes) != 1:
            what = " and ".join(kind if route is None else _shown(route) for kind, route in causes)
            raise NotInModule(f"several actions happen at once, {what}" if causes else "no action has this effect")
        kind, route = causes[0]
        if _ACTIONS.get(after.action or "", kind) != kind:
            raise NotInModule(f"it has the effect of a {kind}")
        for name in sorted(self.variables - MAY_CHANGE[kind]):
            if old[name] != new[name]:
                raise NotInModule(f"a {kind} changes {name}")
        if route is not None:
            index = _taken(was["waiting"][route], now["waiting"].get(route, ()), kind)
            if index and self.mutant != "routes out of order" and route[1] != WITHOUT_KEY:
                raise NotInModule(f"{_shown(route)}: a message overtakes another")
            return Action(Delivery(*route), index)
        side, table = kind.split()[0], f"{kind.split()[0]} table"
        rows = [row for row in {**was[table], **now[table]} if was[table].get(row) != now[table].get(row)]
        if len(rows) > 1:
            raise NotInModule(f"several rows of the {table} change")
        unsaid = self._unsaid_left if side == "left" else self._unsaid_right
        key = rows[0] if rows else unsaid(was, now, [key for key, _ in self._items(old[side])])
        count = sum(number for number in (new["left_changes"], new["right_changes"]) if isinstance(number, int))
        return Action(Record(side, key, now[table].get(key), count))

    def _unsaid_left(self, was: Mapping[str, Any], now: Mapping[str, Any], keys: list[Key]) -> Key:
        """Return the left key of a change that leaves its row unchanged, from the change's messages and results."""
        for route, message in _sent(was, now):
            if route[0] == "subscription":
                return str(message["key"])
        for key in keys:
            if was["result"].get(key) != now["result"].get(key):
                return key
        for key in keys:
            # A changed row without a foreign key and without output has the same effect for any left key.
            row = now["left table"].get(key)
            silent = (
                self.code in KAFKA
                or not self.join.answers_all
                or now["result"].get(key) == joined(self.join, row, None)
            )
            if silent and self.join.foreign_key_of(row) is None:
                return key
        raise NotInModule("it doesn't show which left row was changed")

    def _unsaid_right(self, was: Mapping[str, Any], now: Mapping[str, Any], keys: list[Key]) -> Key:
        """Return the right key of a change that leaves its row unchanged, from its messages."""
        answers = {route: message["brings"] for route, message in _sent(was, now)}
        for (_, source, _), row in sorted(answers.items(), key=str):
            if row is not None:
                return str(row["key"])
            if source not in now["right table"]:
                return source
        # The changed right row has no subscriber, or is missing and a wrong prefix scan found another key's
        # subscribers.
        subscribed = {to for to, _ in was["subscribed"]}
        absent = [key for key in keys if key not in now["right table"]]
        for key in [*(key for key in keys if not answers and key not in subscribed), *absent]:
            return key
        raise NotInModule("it doesn't show which right row was changed")


def _fields(value: TlaValue, names: Sequence[str]) -> list[TlaValue]:
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise NotInModule(f"{value} isn't a record of {', '.join(names)}")
    return [value[name] for name in names]


def _queue(value: TlaValue) -> tuple[TlaValue, ...]:
    if not isinstance(value, tuple):
        raise NotInModule(f"{value} is no queue")
    return value


def _taken(was: Sequence[Any], now: Sequence[Any], kind: str) -> int:
    for index in range(len(was)):
        if [*was[:index], *was[index + 1 :]] == [*now]:
            return index
    raise NotInModule(f"more than one {kind} leaves its queue")


def _sent(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[Route, Mapping[str, Any]]]:
    for route, messages in now["waiting"].items():
        for message in messages[len(was["waiting"].get(route, ())) :]:
            yield route, message


def _shown(route: Route) -> str:
    channel, *keys = route
    named = ("no key" if key == WITHOUT_KEY else key for key in keys)
    return " ".join(filter(None, ("a delivery on", channel, *named)))


class ProtocolMachine:
    """The reference's protocol, or a mutant, which executes actions."""

    def __init__(self, join: ForeignKeyJoin, protocol: type[Protocol] = Protocol) -> None:
        self.join = join
        self.protocol = protocol(join, StreamTime())
        self.result: dict[Key, list[Row]] = {}
        self.rows: dict[bytes | None, Row] = {None: None}

    def __deepcopy__(self, memo: dict[int, Any]) -> ProtocolMachine:
        """Copy the parts that change, and share the immutable rows and messages."""
        twin, protocol = copy(self), copy(self.protocol)
        twin.protocol, twin.result, twin.rows = protocol, dict(self.result), dict(self.rows)
        protocol.clock, protocol.left, protocol.right = copy(protocol.clock), copy(protocol.left), copy(protocol.right)
        protocol.left.table, protocol.left.shown = dict(protocol.left.table), set(protocol.left.shown)
        protocol.right.table = dict(protocol.right.table)
        protocol.right.subscriptions = dict(protocol.right.subscriptions)
        protocol.waiting = {route: messages.copy() for route, messages in protocol.waiting.items()}
        return twin

    def take(self, action: Action) -> list[Output]:
        """Execute a step's action, and return the outputs."""
        line = action.line
        emitted: Sequence[Output] = []
        if isinstance(line, Record):
            if line.input == "left":
                self.rows[digest_of(line.value)] = line.value
            emitted = self.protocol.arrive(line)
        elif isinstance(line, Delivery):
            if action.overtaken and isinstance(self.protocol, RoutesOutOfOrder):
                self.protocol.overtake((line.channel, line.foreign_key, line.key), action.overtaken)
            emitted = self.protocol.deliver(*line)
        for change in emitted:
            assert isinstance(change, Change)
            assert change.key is not None
            self.result.pop(change.key, None)
            if change.value is not None:
                self.result[change.key] = change.value
        return [*emitted]

    def seen(self) -> Mapping[str, Any]:
        """Return the protocol's state, part by part."""
        left, right, waiting = self.protocol.left, self.protocol.right, self.protocol.waiting
        return {
            "left table": left.table,
            "right table": {key: value for key, (value, _) in right.table.items()},
            "subscribed": {
                (_foreign_key(combined), key): self._row(digest)
                for combined, (key, digest) in right.subscriptions.items()
            },
            "waiting": {route: tuple(map(self._message, messages)) for route, messages in waiting.items()},
            "result": self.result,
            "shown": dict.fromkeys(left.shown, True),
        }

    def _message(self, message: Subscription | Response) -> Mapping[str, Any]:
        row = self._row(message.digest)
        if isinstance(message, Subscription):
            return {"key": message.key, "asks": message.instruction.value, "hash": row}
        return {"brings": message.value, "hash": row}

    def _row(self, digest: bytes | None) -> Row:
        return self.rows.get(digest, digest)


def _foreign_key(combined: bytes) -> Key:
    length = len(prefix_of(""))
    return combined[length : length + int.from_bytes(combined[:length], "big")].decode()


# Properties of the protocol in Python


def joined(join: ForeignKeyJoin, left: Row, right: Row) -> list[Row] | None:
    """Return the join of a left row with a right value, or None if the join has no result (the module's `Joined`).

    Args:
        join: The definition of the join.
        left: The left row, or None without a row.
        right: The right row of the left row's foreign key, or None without a row.
    """
    if left is None:
        return None
    if right is not None:
        return [left, right]
    shows = join.join == "left" and (left["foreign_key"] is not None or join.null_foreign_key == "keep")
    return [left, None] if shows else None


def join_of(join: ForeignKeyJoin, left: Mapping[Key, Row], right: Mapping[Key, Row]) -> dict[Key, list[Row]]:
    """Return the join of two tables (the module's `JoinOf`).

    Args:
        join: The definition of the join.
        left: The left table, without tombstones.
        right: The right table.
    """
    pairs = {key: joined(join, row, right.get(row["foreign_key"])) for key, row in left.items()}
    return {key: pair for key, pair in pairs.items() if pair is not None}


class Broken(NamedTuple):
    """A property that the code violates: its name in the module, and the arrival of the violation, from 0."""

    property: str
    arrival: int


def broken(machine: ProtocolMachine, actions: Sequence[Action]) -> list[Broken]:
    """Execute actions, and return the module's properties that the code violates, each at its first violation."""
    found: dict[str, int] = {}
    together: list[list[Row]] = []
    for arrival, action in enumerate(actions):
        emitted = [change for change in machine.take(action) if isinstance(change, Change) and change.value is not None]
        seen = machine.seen()
        meant = join_of(machine.join, seen["left table"], seen["right table"])
        together += meant.values()
        named = {
            (row["foreign_key"], key): row for key, row in seen["left table"].items() if row["foreign_key"] is not None
        }
        holds = {
            "QuietIsJoined": bool(seen["waiting"]) or seen["result"] == meant,
            "QuietIsSubscribed": bool(seen["waiting"]) or seen["subscribed"] == named,
            "NoResultForDeletedRow": all(change.key in seen["left table"] for change in emitted),
            "NoRowOfAnotherKey": all(
                right is None or right["key"] == left["foreign_key"] for left, right in (one.value for one in emitted)
            ),
            "NoFiction": all(pair in together for pair in seen["result"].values()),
        }
        for name, kept in holds.items():
            if not kept:
                found.setdefault(name, arrival)
    return [Broken(*one) for one in found.items()]


def completed(history: History) -> History:
    """Return a history with the same changes, whose deliveries fit the right protocol.

    The right protocol sends other messages than the mutant. So the function omits deliveries without a waiting message,
    and delivers messages that wait at the end.
    """
    protocol = Protocol(operator_named(OPERATOR).declare(history.options), StreamTime())
    lines: list[Line] = []
    pending = deque(history.lines)
    while pending or protocol.waiting:
        line = pending.popleft() if pending else Delivery(*next(iter(protocol.waiting)))
        if isinstance(line, Delivery):
            if (line.channel, line.foreign_key, line.key) not in protocol.waiting:
                continue
            protocol.deliver(*line)
        elif isinstance(line, Record):
            protocol.arrive(line)
        lines.append(line)
    return history.with_lines(lines)


class Contrast(NamedTuple):
    """The violated properties of a behaviour on the code with the model's mutant or protocol, and on the right code.

    Attributes:
        actions: The behaviour's actions.
        broken: The properties that the code violates with the model's mutant or protocol.
        right: The same changes and deliveries as a history of the right code: without the mutant or, without a mutant,
            with the protocol `answer`.
        broken_on_right: The properties that the right code violates.
    """

    actions: tuple[Action, ...]
    broken: tuple[Broken, ...]
    right: History
    broken_on_right: tuple[Broken, ...]


def contrast(trace: Trace, constants: ModelConstants) -> Contrast:
    """Run a behaviour on the code with the model's mutant or protocol, and the same history on the right code.

    Raises:
        BadInput: The behaviour is unreadable.
    """
    replay = ForeignKeyJoinReplay(constants)
    actions = tuple(action for _, action in steps_of(trace, replay))
    options = {**replay.options, **({"protocol": "answer"} if replay.mutant == "none" else {})}
    right = completed(History(OPERATOR, options, tuple(action.line for action in actions)))
    on_right = ProtocolMachine(operator_named(OPERATOR).declare(options))
    return Contrast(
        actions,
        tuple(broken(replay.machine(), actions)),
        right,
        tuple(broken(on_right, [Action(line) for line in right.lines])),
    )

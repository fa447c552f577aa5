"""The races of the foreign-key join as schedules, for any code that delivers messages one by one.

The notation of schedules is defined in findings.md: `R r1=x`: the right row r1 becomes x; the left row l becomes a with
the foreign key r1; `l=∅` deletes row l, `l=a|null` sets row l without a foreign key; `>r1` delivers the oldest
subscription that waits for r1, `<r1/l` delivers the oldest response from r1 to l.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from ..reference.core.clocks import StreamTime
from ..reference.core.errors import BadInput
from ..reference.core.history import Delivery, History, Line
from ..reference.core.operator import operator_named
from ..reference.core.records import Accepted, Key, Record, Table
from ..reference.core.records import Value as Row
from ..reference.foreign_key_protocol import Protocol

OPERATOR = "foreign_key_join"
SETUP = "R r1=x L l=a|r1 >r1 <r1/l"
"""The schedule before each race, after which the join shows (a|r1, x)."""


class Race(NamedTuple):
    """A race: a change that requests a response, and the changes before this response arrives.

    Attributes:
        name: The name of the race in commands.
        asks: The change whose response should retract the shown pair.
        silent: The next change, which gets no response in an inner join.
        schedule: The schedule after the setup; at its end no message waits.
        model: The model whose counterexample is this race.
        setup: The schedule before the race.
        join: The join with this race. A left join runs the races of inner joins, too, and ends with the right result.
    """

    name: str
    asks: str
    silent: str
    schedule: str
    model: str
    setup: str = SETUP
    join: str = "inner"

    def history(self, join: str = "inner") -> History:
        """Return the race as a history, including the setup.

        Args:
            join: `inner` or `left`; a left join shows rows without a foreign key, and sends other messages.
        """
        return History(OPERATOR, options_of(join), tuple(lines_of(f"{self.setup} {self.schedule}")), name=self.name)


RACES = {
    race.name: race
    for race in (
        Race(
            "delete-insert",
            "delete",
            "insert, its right row missing",
            "l=∅ >r1 l=b|r2 >r2 <r1/l",
            "ForeignKeyJoin_race_delete_insert",
        ),
        Race(
            "delete-insert-without-key",
            "delete",
            "insert without a foreign key",
            "l=∅ >r1 l=b|null <r1/l",
            "ForeignKeyJoin_race_delete_insert_without_key",
        ),
        Race(
            "lose-update",
            "lost key",
            "update without one",
            "l=b|null >r1 l=c|null <r1/l",
            "ForeignKeyJoin_race_lose_update",
        ),
        Race("lose-delete", "lost key", "delete", "l=b|null >r1 l=∅ <r1/l", "ForeignKeyJoin_race_lose_delete"),
        Race(
            "lose-gain",
            "lost key",
            "gained key, its right row missing",
            "l=b|null >r1 l=c|r2 >r2 <r1/l",
            "ForeignKeyJoin_race_lose_gain",
        ),
        Race(
            "move-update",
            "move to a right row that is missing",
            "update there",
            "l=b|r2 >r1 >r2 l=c|r2 <r2/l >r2",
            "ForeignKeyJoin_race_move_update",
        ),
        Race(
            "right-delete-update",
            "the right row's delete",
            "update",
            "R r1=∅ L l=b|r1 <r1/l >r1",
            "ForeignKeyJoin_race_update",
        ),
        Race(
            "delete-insert-same-key",
            "delete",
            "insert, its right row deleted meanwhile",
            "l=∅ >r1 R r1=∅ L l=b|r1 >r1 <r1/l",
            "ForeignKeyJoin_race_delete_insert_same_key",
        ),
        Race(
            "move",
            "move, also answered by the old key (KAFKA-18713, up to 3.9.0)",
            "the answer of the new key",
            "l=b|r2 >r1 >r2 <r2/l <r1/l",
            "ForeignKeyJoin_kafka_3_9_left_move",
            "R r2=y L l=a|r1 >r1 <r1/l",
            "left",
        ),
    )
}
"""The races by name, in the order of findings.md; last the repaired race of a left join."""


def chosen(names: list[str], join: str = "inner") -> list[Race]:
    """Return the races with these names; without names, all races for a join.

    Args:
        names: The names.
        join: `inner` or `left`.

    Raises:
        BadInput: The join has no race of this name; the message lists the known names.
    """
    asked = [name for name, race in RACES.items() if join in (race.join, "left")]
    for name in names:
        if name not in asked:
            raise BadInput(f"unknown race {name!r} of the {join} join: use one of {', '.join(asked)}")
    return [RACES[name] for name in names or asked]


def options_of(join: str) -> Mapping[str, Any]:
    """Return the options of the join that runs the races."""
    keeps = {"null_foreign_key": "keep"} if join == "left" else {}
    return {"foreign_key": "foreign_key", "join": join, **keeps, "delivery": "manual"}


def lines_of(schedule: str) -> Iterator[Line]:
    """Yield the lines of a schedule; the timestamp of a change is its number (ms)."""
    side, changes = "left", 0
    for token in schedule.split():
        if token in ("L", "R"):
            side = "left" if token == "L" else "right"
        elif token.startswith(">"):
            yield Delivery("subscription", token[1:], None)
        elif token.startswith("<"):
            foreign_key, _, key = token[1:].partition("/")
            yield Delivery("response", foreign_key, key)
        else:
            key, _, value = token.partition("=")
            yield Record(side, key, _row(side, value), changes)
            side, changes = "left", changes + 1


def _row(side: str, text: str) -> Row:
    if text == "∅":
        return None
    value, _, foreign_key = text.partition("|")
    return value if side == "right" else {"value": value, "foreign_key": None if foreign_key == "null" else foreign_key}


def meant(history: History) -> Table:
    """Return the join of a history's tables, by key: the right result when no message waits."""
    operator = operator_named(history.operator)
    accepted = [Accepted(record, record.timestamp) for record in history.records]
    table = operator.meaning(operator.declare(history.options), accepted, 0)
    assert isinstance(table, dict)
    return table


def interleavings(history: History, model: Callable[[Any, Any], Protocol] = Protocol) -> Iterator[History]:
    """Yield every history that the protocol allows for these changes in this order, up to the last message.

    Args:
        history: The history, whose deliveries are ignored.
        model: A function from a definition and a clock to the protocol.
    """
    definition = operator_named(history.operator).declare(history.options)
    records = history.records

    def after(protocol: Protocol, taken: int, lines: tuple[Line, ...]) -> Iterator[History]:
        routes = [Delivery(*route) for route in protocol.waiting]
        following: list[Record | Delivery] = [*records[taken : taken + 1], *routes]
        if not following:
            yield history.with_lines(lines)
        for line in following:
            twin = deepcopy(protocol)
            if isinstance(line, Record):
                twin.arrive(line)
            else:
                twin.deliver(*line)
            yield from after(twin, taken + isinstance(line, Record), (*lines, line))

    yield from after(model(definition, StreamTime()), 0, ())


def values_of(table: Table) -> dict[Key | None, Row]:
    """Return a table's values by key, without timestamps, which depend on the order of messages."""
    return {key: value for (key, _), (value, _) in table.items()}

"""The operators by name: what each takes, what it means and how it behaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from . import (
    foreign_key_join,
    one_to_many_join,
    range_aggregate,
    session_windows,
    stream_stream_join,
    stream_table_join,
    table_aggregate,
    table_table_join,
    window_aggregate,
    windowed_table,
)
from .aggregates import TableAggregate
from .clocks import Clock
from .declarations import Definition, declare
from .errors import BadInput
from .joins import ForeignKeyJoin, OneToManyJoin, StreamStreamJoin, StreamTableJoin, TableTableJoin
from .records import Accepted, Bag, Output, Record, Table, bag, fold
from .windows import RangeAggregate, SessionWindows, WindowAggregate, WindowedTable


class Behaviour(Protocol):
    """A state machine that takes one arrival at a time and tells what changes.

    One with channels also has `deliver(delivery)`, and `waiting`, the messages in them.
    """

    def arrive(self, record: Record) -> list[Output]:
        """Take a record; it moves the clock itself, for a dropped record may not. `Dropped` comes last, if at all."""
        ...

    def advance(self) -> list[Output]:
        """The clock has moved without a record: at a heartbeat, a cut or the end."""
        ...


@dataclass(frozen=True)
class Operator:
    """An operator of the reference.

    Attributes:
        name: Its one name, everywhere.
        definition: The class of its definitions.
        behaviour: Makes the state machine of a definition, on a clock.
        meaning: Gives the table (of a stream: the bag) of the accepted records of a definition, at a clock (ms).
    """

    name: str
    definition: type[Definition]
    behaviour: Callable[[Any, Clock], Behaviour]
    meaning: Callable[[Any, Iterable[Accepted], int], Table | Bag]

    def declare(self, options: Mapping[str, Any]) -> Any:
        """Turn options, as in a history file with durations in ms, into a definition.

        Raises:
            BadInput: An option is unknown, missing or refused; the message names it and the remedy.
        """
        return declare(self.name, self.definition, options)


def collect(definition: Definition, outputs: Iterable[Output]) -> Table | Bag:
    """Give what outputs come to: their fold, or of a stream the bag of them."""
    return bag(outputs) if definition.is_stream else fold(outputs)


def _operator(module: ModuleType, definition: type[Definition]) -> Operator:
    return Operator(module.__name__.rpartition(".")[2], definition, module.Behaviour, module.meaning)


OPERATORS = {
    operator.name: operator
    for operator in (
        _operator(session_windows, SessionWindows),
        _operator(window_aggregate, WindowAggregate),
        _operator(range_aggregate, RangeAggregate),
        _operator(stream_stream_join, StreamStreamJoin),
        _operator(stream_table_join, StreamTableJoin),
        _operator(table_table_join, TableTableJoin),
        _operator(table_aggregate, TableAggregate),
        _operator(windowed_table, WindowedTable),
        _operator(foreign_key_join, ForeignKeyJoin),
        _operator(one_to_many_join, OneToManyJoin),
    )
}


def operator_named(name: str) -> Operator:
    """Look an operator up by name.

    Raises:
        BadInput: There is none of that name; the message lists those there are.
    """
    if not isinstance(name, str) or name not in OPERATORS:
        raise BadInput(f"unknown operator {name!r}: use one of {', '.join(OPERATORS)}")
    return OPERATORS[name]

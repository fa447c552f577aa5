"""Operators of the reference: the interfaces of a model, and all models by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from .. import (
    foreign_key_join,
    one_to_many_join,
    range_aggregate,
    scd1,
    scd2,
    session_windows,
    stream_stream_join,
    stream_table_join,
    table_aggregate,
    table_table_join,
    window_aggregate,
    windowed_table,
)
from ..definitions.aggregates import TableAggregate
from ..definitions.changes import Scd1, Scd2
from ..definitions.declarations import Definition, declare
from ..definitions.joins import ForeignKeyJoin, OneToManyJoin, StreamStreamJoin, StreamTableJoin, TableTableJoin
from ..definitions.windows import RangeAggregate, SessionWindows, WindowAggregate, WindowedTable
from .clocks import Clock
from .errors import BadInput
from .records import Accepted, Bag, Output, Record, Table, bag, fold


class Behaviour(Protocol):
    """The state machine of an operator: processes one record at a time, and emits changes.

    A behaviour is made from a definition and a clock, and contains the operator's whole state. A behaviour doesn't see
    batches, and reads the time only from `clock.now`.
    """

    def arrive(self, record: Record) -> list[Output]:
        """Process a record; return the changes, with a `Dropped` at the end if the operator doesn't accept the record.

        The behaviour calls `clock.observe(record.timestamp)` itself, because some dropped records don't move the clock.

        Raises:
            BadInput: A value is invalid in a way that the definition's `check` can't detect.
        """
        ...

    def advance(self) -> list[Output]:
        """Emit the results that the clock has closed since the last call."""
        ...


class Meaning(Protocol):
    """The meaning of an operator: a pure function of the records that its behaviour accepted."""

    def __call__(self, definition: Any, accepted: Iterable[Accepted], clock: int, /) -> Table | Bag:
        """Return the resulting table, or the bag of all results if the result is a stream.

        First law of every operator: at the end of each batch, the folded changelog of the behaviour equals this table.

        Args:
            definition: The operator's options.
            accepted: The accepted records in order of arrival, each with the clock's time at its arrival (ms).
            clock: The clock's time at the end (ms), which decides which windows are closed and which rows stay
                unmatched.
        """
        ...


@dataclass(frozen=True)
class Operator:
    """An operator of the reference, or *model*: its name, options, behaviour and meaning.

    Attributes:
        name: The operator's name, which is also its module's name.
        definition: The class of the operator's options, a frozen dataclass that validates them.
        behaviour: Returns the state machine for a definition and a clock.
        meaning: Computes the table that equals the folded changelog of the behaviour.
    """

    name: str
    definition: type[Definition]
    behaviour: Callable[[Any, Clock], Behaviour]
    meaning: Meaning

    def declare(self, options: Mapping[str, Any]) -> Any:
        """Convert options, as in a history file (durations in ms), to a definition.

        Raises:
            BadInput: An option is unknown, missing or invalid; the message names it and the remedy.
        """
        return declare(self.name, self.definition, options)


def collect(definition: Definition, outputs: Iterable[Output]) -> Table | Bag:
    """Fold outputs into a table, or collect them in a bag if the result is a stream."""
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
        _operator(scd1, Scd1),
        _operator(scd2, Scd2),
    )
}


def operator_named(name: str) -> Operator:
    """Return an operator by its name.

    Raises:
        BadInput: No operator has this name; the message lists the known names.
    """
    if not isinstance(name, str) or name not in OPERATORS:
        raise BadInput(f"unknown operator {name!r}: use one of {', '.join(OPERATORS)}")
    return OPERATORS[name]

"""Send histories to DuckDB: the arrivals as one relation, and a statement over it.

Values aren't sent, because any JSON value must be returned unchanged: a result contains the positions of arrivals
instead. DuckDB gets only the values that a statement computes with: numbers and strings that an aggregate compares, and
keys in values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from ....reference.core.errors import BadInput
from ....reference.core.history import ClockAdvance, Cut, Delivery, History
from ....reference.core.records import Key, Record, Value
from ....reference.definitions.declarations import Definition
from ...registration.sql import AGGREGATES, CLOCK, Options, Sql
from .connection import connect

INT64 = range(-(2**63), 2**63)
NUMBERS = range(-(2**60), 2**60)
WIDE = pa.decimal128(38, 0)
COMPARED, ADDED = ("min", "max"), ("sum", "average")
INPUTS = ("events", "left", "right")


class Arrivals:
    """The arrivals of many histories of one operator, column by column; the arrivals also decode the results.

    Attributes:
        sql: The operator's statement.
        aggregates: The aggregate's name for each definition, by the definition's number (`count` without an aggregate).
        definitions: The options of each definition, as in a history file, and its clock, by the definition's number.
        definition_of: The number of each history's definition, by the history's index.
        keys: The history's index and the key that belong to each key number. Histories share no numbers. Within a
            history, a key in a value and the key itself have the same number.
        values: The values of the arrivals, by position; for an aggregate, only the components that the aggregate uses.
    """

    def __init__(self, sql: Sql) -> None:
        self.sql = sql
        self.aggregates: list[str] = []
        self.definitions: list[tuple[Options, str]] = []
        self.definition_of: list[int] = []
        self.keys: list[tuple[int, Key]] = []
        self.values: list[Value] = []
        self.compared: list[Value] = []
        self.added: list[Value] = []
        self.texts: list[str | None] = []
        self.rows: list[tuple[int, int, int, bool, int | None, int | None, int, int | None]] = []

    def add(self, histories: Sequence[History], definition: Definition) -> None:
        """Add the histories of a definition.

        Args:
            histories: The histories, with the same options and clock.
            definition: The reference's definition, which validates inputs and values.

        Raises:
            BadInput: A record has an unknown input or an invalid value, a history delivers messages, or the aggregate
                has no name.
        """
        options = histories[0].options
        _check_numbers(options)
        aggregated = self.sql.aggregated(options)
        name = "count" if aggregated is None else aggregated[0]
        if name not in AGGREGATES:
            raise BadInput(f"duckdb has no statement for the aggregate {name!r}: use one of {', '.join(AGGREGATES)}")
        self.aggregates.append(name)
        self.definitions.append((options, histories[0].clock))
        for history in histories:
            self.definition_of.append(len(self.definitions) - 1)
            try:
                self._add(history, options, definition)
            except BadInput as error:
                raise BadInput(f"{history.name}: {error}") from None

    def _add(self, history: History, options: Options, definition: Definition) -> None:
        index, number_of_definition = len(self.definition_of) - 1, len(self.definitions) - 1
        numbers: dict[Key, int] = {}

        def number_of(key: Key) -> int:
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(self.keys)
                self.keys.append((index, key))
            return number

        sql, check = self.sql, definition.check
        inputs = {name: INPUTS.index(name) for name in definition.inputs}
        aggregated, member_of = sql.aggregated(options), sql.member(options)
        key_named, number_named = sql.key_named(options), sql.number_named(options)
        name, aggregated_inputs = aggregated or ("count", ())
        compares = aggregated_inputs if name in COMPARED else ()
        adds = aggregated_inputs if name in ADDED else ()
        batch = 0
        for line in history.lines:
            if isinstance(line, Cut):
                batch += 1
                continue
            number = named = value = side = keyed = text = None
            if isinstance(line, Record):
                side, value = inputs.get(line.input), line.value
                if side is None:
                    known = ", ".join(inputs)
                    raise BadInput(f"unknown input {line.input!r}: {history.operator} has {known}")
                check(line)
                if sql.reads_values and value is not None:
                    text = json.dumps(value, sort_keys=True)
                if line.key is not None:
                    number, keyed = number_of(line.key), line.input
                    if key_named is not None and (other := key_named(line)) is not None:
                        named = number_of(other)
                    elif number_named is not None:
                        named = number_named(line)
                    if member_of is not None:
                        value = member_of(value)
            elif isinstance(line, Delivery):
                raise BadInput(f"{history.operator} has no channels to deliver from: leave the line out")
            is_heartbeat = isinstance(line, ClockAdvance)
            self.rows.append((number_of_definition, index, batch, is_heartbeat, side, number, line.timestamp, named))
            self.values.append(value)
            self.texts.append(text)
            self.compared.append(value if keyed in compares else None)
            self.added.append(value if keyed in adds else None)

    def relation(self) -> pa.Table:
        """Return the relation `arrivals`, which the SQL statements read."""
        columns = list(zip(*self.rows, strict=True)) or [()] * 8
        definition, history, batch, heartbeat, side, key, timestamp, named = columns
        named_keys = pa.array(named, pa.int64())
        position = pa.array(np.arange(len(key)), pa.int64())
        terms = value_columns(self.added)
        parts = {"position": position, **value_columns(self.compared)}
        parts |= {"whole_term": terms["whole"], "fraction_term": terms["fraction"]}
        return pa.table(
            {
                "definition": pa.array(definition, pa.int64()),
                "history": pa.array(history, pa.int64()),
                "batch": pa.array(batch, pa.int64()),
                "heartbeat": pa.array(heartbeat, pa.bool_()),
                "input": pa.DictionaryArray.from_arrays(pa.array(side, pa.int8()), pa.array(INPUTS)),
                "key": pa.array(key, pa.int64()),
                "timestamp": pa.array(timestamp, pa.int64()),
                "has_value": pa.array([value is not None for value in self.values], pa.bool_()),
                "foreign_key": named_keys,
                "group_key": named_keys,
                "looks_up": named_keys,
                "position": position,
                "json": pa.array(self.texts, pa.string()),
                "value": pa.StructArray.from_arrays([*parts.values()], [*parts]),
            }
        )

    def given(self) -> pa.Table:
        """Return the relation `definitions`: the number, the clock and the options as JSON of each definition."""
        return pa.table(
            {
                "definition": pa.array(range(len(self.definitions)), pa.int64()),
                "clock": pa.array([clock for _, clock in self.definitions], pa.string()),
                "options": pa.array([json.dumps(dict(options)) for options, _ in self.definitions], pa.string()),
            }
        )


def _check_numbers(options: Options) -> None:
    for option, value in options.items():
        if isinstance(value, Mapping):
            _check_numbers(value)
        elif isinstance(value, int) and value not in NUMBERS:
            raise BadInput(f"duckdb can't compute with {option} {value}: use a smaller number")


def value_columns(values: Sequence[Value]) -> dict[str, Any]:
    """Split values into whole numbers, fractions and texts.

    Raises:
        BadInput: A whole number has more than 38 digits, or a string isn't valid text.
    """
    wholes = [value if isinstance(value, int) else None for value in values]
    wide = any(whole is not None and whole not in INT64 for whole in wholes)
    try:
        return {
            "whole": pa.array(wholes, WIDE if wide else pa.int64()),
            "fraction": pa.array([value if isinstance(value, float) else None for value in values], pa.float64()),
            "text": pa.array([value if isinstance(value, str) else None for value in values], pa.string()),
        }
    except pa.ArrowInvalid:
        raise BadInput("duckdb can't take a whole number of more than 38 digits: use smaller numbers") from None
    except UnicodeEncodeError as error:
        raise BadInput(f"duckdb can't compare the string {error.object!r}: half a surrogate pair isn't text") from None


def run_statement(arrivals: Arrivals) -> pa.Table:
    """Run the statement of an operator on the arrivals of many histories.

    Raises:
        BadInput: A number or a sum has too many digits.
    """
    forms = ", ".join(f"'{name}': {AGGREGATES[name]}" for name in dict.fromkeys(arrivals.aggregates))
    with _database().cursor() as connection:
        connection.execute(f"CREATE TEMP MACRO aggregated(value, place) AS {{{forms}}}")
        connection.execute(
            f"CREATE TEMP MACRO clock_at(clock_kind, timestamp, moves, history, position, batch) AS {CLOCK}"
        )
        connection.register("arrivals", arrivals.relation())
        connection.register("definitions", arrivals.given())
        try:
            return connection.sql(arrivals.sql.statement).to_arrow_table()
        except (duckdb.OutOfRangeException, duckdb.ConversionException):
            raise BadInput("duckdb can't hold a sum of more than 38 digits: use smaller numbers") from None


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Return an empty database, opened once, because opening takes longer than most statements."""
    return connect()

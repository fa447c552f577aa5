"""How histories are sent to DuckDB: a cohort's arrivals as one relation, and a statement that is run on it.

Values stay behind, for any JSON value must come back as it was: an answer names the position of its arrival. Only what
a statement has to reckon with goes along: numbers and strings that an aggregate compares, keys that a value names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from ....reference.core.errors import BadInput
from ....reference.core.history import ClockAdvance, Cut, Delivery, History
from ....reference.core.records import Key, Record, Value
from ....reference.definitions.aggregates import AGGREGATES_OF_SAMZA
from ....reference.definitions.declarations import Definition
from ...registration.sql import Sql

INT64 = range(-(2**63), 2**63)
OPTIONS = range(-(2**60), 2**60)
WIDE = pa.decimal128(38, 0)
COMPARED = ("sum", "min", "max", "average")
INPUTS = ("events", "left", "right")


class Cohort:
    """The arrivals of many histories of one definition, column by column; what comes back is looked up here.

    Attributes:
        keys: By number: the index of the history among the histories, and the key. No two histories share a number;
            within one, a key that a value names is the same number as that key itself.
        values: By position: the values of the arrivals; of an aggregate, what is aggregated.
        histories: By position: the index of the arrival's history.

    Raises:
        BadInput: A record is on an input that the operator doesn't have, or the operator can't take its value; or there
            is a delivery, for which DuckDB has no channels.
    """

    def __init__(self, histories: Sequence[History], definition: Definition, sql: Sql) -> None:
        self.definition, self.sql = definition, sql
        self.keys: list[tuple[int, Key]] = []
        self.values: list[Value] = []
        self.histories: list[int] = []
        self.batches: list[int] = []
        self.heartbeats: list[bool] = []
        self.inputs: list[int | None] = []
        self.key_numbers: list[int | None] = []
        self.timestamps: list[int] = []
        self.named: list[Any] = []
        for index, history in enumerate(histories):
            try:
                self._add(index, history)
            except BadInput as error:
                raise BadInput(f"{history.name}: {error}") from None

    def _add(self, index: int, history: History) -> None:
        numbers: dict[Key, int] = {}

        def number_of(key: Key) -> int:
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(self.keys)
                self.keys.append((index, key))
            return number

        inputs = {name: INPUTS.index(name) for name in self.definition.inputs}
        check, member_of = self.definition.check, self.sql.member(self.definition)
        key_named, number_named = self.sql.key_named(self.definition), self.sql.number_named(self.definition)
        batch = 0
        for line in history.lines:
            if isinstance(line, Cut):
                batch += 1
                continue
            number = named = value = side = None
            if isinstance(line, Record):
                side, value = inputs.get(line.input), line.value
                if side is None:
                    known = ", ".join(inputs)
                    raise BadInput(f"unknown input {line.input!r}: {history.operator} has {known}")
                check(line)
                if line.key is not None:
                    number = number_of(line.key)
                    if key_named is not None and (other := key_named(line)) is not None:
                        named = number_of(other)
                    elif number_named is not None:
                        named = number_named(line)
                    if member_of is not None:
                        value = member_of(value)
            elif isinstance(line, Delivery):
                raise BadInput(f"{history.operator} has no channels to deliver from: leave the line out")
            self.histories.append(index)
            self.batches.append(batch)
            self.heartbeats.append(isinstance(line, ClockAdvance))
            self.inputs.append(side)
            self.key_numbers.append(number)
            self.timestamps.append(line.timestamp)
            self.values.append(value)
            self.named.append(named)

    def relation(self) -> pa.Table:
        """The arrivals as the statements read them."""
        aggregated = self.sql.aggregated(self.definition)
        columns = {}
        if aggregated is not None and aggregated[0].name in COMPARED:
            sides = {INPUTS.index(name) for name in aggregated[1]}
            compared = [
                value if side in sides and number is not None else None
                for value, side, number in zip(self.values, self.inputs, self.key_numbers, strict=True)
            ]
            columns = value_columns(compared)
        named = pa.array(self.named, pa.int64())
        return relation(
            history=pa.array(self.histories, pa.int64()),
            batch=pa.array(self.batches, pa.int64()),
            heartbeat=pa.array(self.heartbeats, pa.bool_()),
            input=pa.DictionaryArray.from_arrays(pa.array(self.inputs, pa.int8()), pa.array(INPUTS)),
            key=pa.array(self.key_numbers, pa.int64()),
            timestamp=pa.array(self.timestamps, pa.int64()),
            has_value=pa.array([value is not None for value in self.values], pa.bool_()),
            value=columns,
            foreign_key=named,
            group_key=named,
            looks_up=named,
        )


def value_columns(values: Sequence[Value]) -> dict[str, Any]:
    """Split values into whole numbers, fractions and texts.

    Raises:
        BadInput: A whole number has more than 38 digits, or a string is no text.
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
        raise BadInput(f"duckdb can't compare the string {error.object!r}: half a surrogate pair is no text") from None


def relation(value: Mapping[str, Any], **columns: Any) -> pa.Table:
    """The relation `arrivals`; the parts of `value` that aren't there are empty."""
    rows = len(columns["key"])
    position = pa.array(np.arange(rows), pa.int64())
    kinds = {"whole": pa.int64(), "fraction": pa.float64(), "text": pa.string()}
    parts = {name: value[name] if name in value else pa.nulls(rows, kind) for name, kind in kinds.items()}
    values = pa.StructArray.from_arrays([position, *parts.values()], ["position", *parts])
    return pa.table({**columns, "position": position, "value": values})


def run_statement(sql: Sql, arrivals: pa.Table, definition: Any, clock: str) -> pa.Table:
    """Run a statement on the arrivals of a cohort, with the options of its definition as parameters.

    Args:
        sql: The operator's statement.
        arrivals: The relation `arrivals`.
        definition: The definition.
        clock: `batch` or `stream_time`.

    Raises:
        BadInput: An option is too large a number, the aggregate isn't one by name, or a sum has more than 38 digits.
    """
    aggregated = sql.aggregated(definition)
    name = "count" if aggregated is None else aggregated[0].name
    if name not in AGGREGATES_OF_SAMZA:
        raise BadInput(
            f"duckdb has no statement for the aggregate {name!r}: use one of {', '.join(AGGREGATES_OF_SAMZA)}"
        )
    given = {**sql.options(definition), "clock": clock}
    parameters = {option: given[option] for option in re.findall(r"\$(\w+)", re.sub("--.*", "", sql.statement))}
    for option, value in parameters.items():
        if isinstance(value, int) and value not in OPTIONS:
            raise BadInput(f"duckdb can't reckon with {option} {value}: use a smaller number")
    with _database().cursor() as connection:
        connection.execute(f"CREATE TEMP MACRO aggregated(value, place) AS {AGGREGATES_OF_SAMZA[name].duckdb}")
        connection.register("arrivals", arrivals)
        try:
            return connection.sql(sql.statement, params=parameters).to_arrow_table()
        except (duckdb.OutOfRangeException, duckdb.ConversionException):
            raise BadInput("duckdb can't hold a sum of more than 38 digits: use smaller numbers") from None


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """An empty database; to open one takes longer than most statements. What a cursor makes is its own, and goes."""
    return duckdb.connect(":memory:")

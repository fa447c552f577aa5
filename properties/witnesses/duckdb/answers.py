"""Decode results of DuckDB: numbers become keys, positions become values, rows become a table or a bag."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....reference.core.errors import BadInput
from ....reference.core.records import Change, Key, Value, Window, bag, fold
from ...outcomes.outcomes import FinalResult
from .relation import Arrivals


class _Answer:
    """A statement's result for a definition, column by column."""

    def __init__(self, arrivals: Arrivals, answer: pa.Table, aggregate: str) -> None:
        self.arrivals, self.answer, self.aggregate = arrivals, answer, aggregate

    def records(self, column: str) -> list[Value]:
        values = self.arrivals.values
        return [None if position is None else values[position] for position in listed(self.answer.column(column))]

    def aggregates(self, column: str) -> list[Value]:
        aggregated = pc.struct_field(self.answer.column(column), self.aggregate)
        return values_of(self.aggregate, aggregated, self.arrivals.values)


def results_of(arrivals: Arrivals, answer: pa.Table) -> list[FinalResult]:
    """Return the results of the histories: tables, or bags for streams.

    Args:
        arrivals: The histories' arrivals.
        answer: The statement's answer.

    Raises:
        BadInput: `min` or `max` compares strings with numbers.
    """
    sql, definition_of = arrivals.sql, arrivals.definition_of
    histories, keys = _keys(arrivals, answer)
    windows, timestamps = _windows(answer), listed(answer.column("timestamp"))
    answer = answer.combine_chunks()  # one chunk, because reading rows from several chunks is slower
    rows_of: list[list[int]] = [[] for _ in arrivals.definitions]
    for row, history in enumerate(histories):
        rows_of[definition_of[history]].append(row)
    changes_of: list[list[Change]] = [[] for _ in definition_of]
    for (options, _), aggregate, rows in zip(arrivals.definitions, arrivals.aggregates, rows_of, strict=True):
        changed = sql.changed(options)
        own = _Answer(arrivals, answer.take(pa.array(rows, pa.int64())), aggregate)
        for row, value in zip(rows, sql.values(options, own), strict=True):
            change = Change(keys[row], windows[row], value, timestamps[row])
            changes_of[histories[row]].append(change if changed is None else changed(change))
    is_stream = [sql.is_stream(options) for options, _ in arrivals.definitions]
    return [
        bag(changes) if is_stream[definition] else fold(changes)
        for definition, changes in zip(definition_of, changes_of, strict=True)
    ]


def _windows(answer: pa.Table) -> list[Window | None]:
    """Return the windows of a result's rows; the rows of a look-up have no window."""
    if "window_start" not in answer.column_names:
        return [None] * len(answer)
    bounds = zip(listed(answer.column("window_start")), listed(answer.column("window_end")), strict=True)
    return [None if start is None else (start, end) for start, end in bounds]


def _keys(arrivals: Arrivals, answer: pa.Table) -> tuple[list[int], list[Key | None]]:
    """Return the history's index and the key of every row of a result; the key is None if the row has no key."""
    known = arrivals.keys

    def named(column: str) -> list[Key | None]:
        return [None if number is None else known[number][1] for number in listed(answer.column(column))]

    if "history" in answer.column_names:
        return listed(answer.column("history")), named("key")
    indexes, keys = [known[number][0] for number in listed(answer.column("key"))], named("key")
    if "foreign_key" in answer.column_names:
        pairs = zip(named("foreign_key"), keys, strict=True)
        return indexes, [json.dumps(pair, ensure_ascii=False) for pair in pairs]
    return indexes, keys


def values_of(aggregate: str, column: Any, values: Sequence[Value]) -> list[Value]:
    """Convert the results of an aggregate's SQL expression to values of the aggregate; null stays null.

    Args:
        aggregate: The aggregate's name.
        column: The results of the SQL expression, one row for each aggregated value.
        values: The values of the arrivals by position.

    Raises:
        BadInput: `min` or `max` compares strings with numbers.
    """
    if aggregate == "count":
        return listed(column)
    if aggregate == "list":
        return [
            None if positions is None else [values[position] for position in positions] for positions in listed(column)
        ]
    combine: Callable[[Any, Any], Any] = {"min": min, "max": max}.get(aggregate, operator.add)
    texts = listed(pc.struct_field(column, "text")) if aggregate in ("min", "max") else [None] * len(column)
    members = listed(pc.struct_field(column, "members")) if aggregate == "average" else [None] * len(column)
    wholes = listed(narrowed(pc.struct_field(column, "whole")))
    fractions = listed(pc.struct_field(column, "fraction"))
    nulls = column.is_null().to_pylist()
    found: list[Value] = []
    for is_null, whole, fraction, text, count in zip(nulls, wholes, fractions, texts, members, strict=True):
        # DuckDB returns a whole number that exceeds bigint as a decimal.
        number = fraction if whole is None else int(whole)
        if whole is not None and fraction is not None:
            number = combine(number, fraction)
        if number is not None and text is not None:
            raise BadInput(
                f"{aggregate} can't compare the string {text!r} with the number {number!r}: use one type of value"
            )
        if number is None and text is None and not is_null:
            number = 0  # no number: the reference's sum of an empty list is 0
        found.append(text if number is None else number if count is None else number / count)
    return found


def listed(column: Any) -> list[Any]:
    """Return a column as a list."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return list(column.to_numpy().tolist())
    return list(column.to_pylist())


def narrowed(column: Any) -> Any:
    """Return a column of decimals as bigint, if all values fit."""
    if not pa.types.is_decimal(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column

"""How answers come back from DuckDB: numbers become keys again, positions become values, rows a table or a bag."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..reference.errors import BadInput
from ..reference.records import Change, Key, Value, Window, bag, fold
from ..reference.windows import WindowedTable
from .duckdb_relation import Cohort, options_of
from .outcomes import Result


def results_of(cohort: Cohort, answer: pa.Table, count: int) -> list[Result]:
    """Give the results of a cohort of so many histories: tables, or of streams bags.

    Raises:
        BadInput: `min` or `max` was to compare strings with numbers.
    """
    definition = cohort.definition
    places, keys = _keys(cohort, answer)
    changes = map(Change, keys, _windows(answer), _values(cohort, answer), listed(answer.column("timestamp")))
    if isinstance(definition, WindowedTable) and definition.to_stream is not None:
        changes = map(_REKEYED[definition.to_stream], changes)
    told: list[list[Change]] = [[] for _ in range(count)]
    for place, change in zip(places, changes, strict=True):
        told[place].append(change)
    return [bag(of_history) if definition.is_stream else fold(of_history) for of_history in told]


def _windows(answer: pa.Table) -> Iterable[Window | None]:
    """The windows of an answer's rows; the result of a look-up has none."""
    if "window_start" not in answer.column_names:
        return [None] * len(answer)
    bounds = zip(listed(answer.column("window_start")), listed(answer.column("window_end")), strict=True)
    return (None if start is None else (start, end) for start, end in bounds)


def _in_key(change: Change) -> Change:
    key, window, value, timestamp = change
    assert window is not None
    return Change(f"{key}@{window[0]}", None, value, timestamp)


def _in_value(change: Change) -> Change:
    key, window, value, timestamp = change
    return Change(key, None, {"value": value, "window": list(window or ())}, timestamp)


_REKEYED = {"window_in_key": _in_key, "window_in_value": _in_value}


def _keys(cohort: Cohort, answer: pa.Table) -> tuple[list[int], list[Key | None]]:
    """The place of the history, and the key, of every row of an answer; one without a key says its history itself."""
    known = cohort.keys

    def named(column: str) -> list[Key | None]:
        return [None if number is None else known[number][1] for number in listed(answer.column(column))]

    if "history" in answer.column_names:
        return listed(answer.column("history")), named("key")
    places, keys = [known[number][0] for number in listed(answer.column("key"))], named("key")
    if "foreign_key" in answer.column_names:
        pairs = zip(named("foreign_key"), keys, strict=True)
        return places, [json.dumps(pair, ensure_ascii=False) for pair in pairs]
    return places, keys


def _values(cohort: Cohort, answer: pa.Table) -> Iterable[Value]:
    options = options_of(cohort.definition)

    def records(name: str) -> list[Value]:
        values = cohort.values
        return [None if position is None else values[position] for position in listed(answer.column(name))]

    def aggregates(name: str) -> list[Value]:
        return values_of(options["aggregate"].name, answer.column(name), cohort.values)

    if isinstance(cohort.definition, WindowedTable):
        match cohort.definition.with_:
            case None:
                return aggregates("aggregate")
            case "table":
                return _pairs(aggregates("aggregate"), records("record"))
            case "windowed_table":
                return _pairs(aggregates("aggregate"), aggregates("other_aggregate"))
            case _:
                return _pairs(records("record"), aggregates("aggregate"))
    if options.get("storage") == "full":
        return [value for (value,) in values_of("list", answer.column("value"), cohort.values)]
    return aggregates("value") if "aggregate" in options else _pairs(records("left_record"), records("right_record"))


def _pairs(left: Iterable[Value], right: Iterable[Value]) -> list[Value]:
    return [list(pair) for pair in zip(left, right, strict=True)]


def values_of(aggregate: str, column: Any, values: Sequence[Value]) -> list[Value]:
    """Put aggregates together from what their `duckdb` forms give; null stays null.

    Raises:
        BadInput: `min` or `max` was to compare strings with numbers.
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
        # Decimals are whole numbers too wide for a bigint.
        number = fraction if whole is None else int(whole)
        if whole is not None and fraction is not None:
            number = combine(number, fraction)
        if number is not None and text is not None:
            raise BadInput(
                f"{aggregate} can't compare the string {text!r} with the number {number!r}: use one type of value"
            )
        if number is None and text is None and not is_null:
            number = 0  # the sum of nothing
        found.append(text if number is None else number if count is None else number / count)
    return found


def listed(column: Any) -> list[Any]:
    """A column as a list."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return list(column.to_numpy().tolist())
    return list(column.to_pylist())


def narrowed(column: Any) -> Any:
    """A column of decimals as bigint, where all of it fits."""
    if not pa.types.is_decimal(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column

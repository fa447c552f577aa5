"""The witness that runs on DuckDB: one SQL statement over the whole cohort, independent of the reference.

The statement is `sql/session_windows.sql`. It works out the clock, lateness and the sessions from the arrivals by
itself; this module only lays the arrivals out as a table and reads the answer.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..reference.errors import BadInput
from ..reference.histories import Cut, Delivery, Heartbeat, History
from ..reference.operators import operator_named
from ..reference.records import Key, Record, Table
from ..reference.windows import SessionWindows
from .outcomes import Grain, Outcome

INT64 = range(-(2**63), 2**63)
WIDE = pa.decimal128(38, 0)
COMPARED = ("sum", "min", "max")


def tables(histories: Sequence[History]) -> list[Outcome]:
    """Give the table of every history at its end; histories of the same options and clock share one statement.

    Returns:
        Outcomes in the order of the histories, at grain `END`; `final` is the table
        `{(key, (start, end)): (value, end)}` in ms. A sum of floats adds a session's members in order, and may
        differ in the last digit from a sum of sums.

    Raises:
        BadInput: DuckDB has no statement for the operator, the aggregate can't take a value, a whole number or a sum of
            them has more than 38 digits, or `min` or `max` is to compare strings with numbers.
    """
    groups: dict[Any, list[int]] = defaultdict(list)
    for place, history in enumerate(histories):
        options = tuple(sorted((name, repr(value)) for name, value in history.options.items()))
        groups[history.operator, options, history.clock].append(place)
    found: dict[int, Table] = {}
    for (name, _, clock), places in groups.items():
        if name != "session_windows":
            raise BadInput(f"duckdb has no statement for {name}: it answers session_windows; use another witness")
        windows: SessionWindows = operator_named(name).declare(histories[places[0]].options)
        found.update(zip(places, _tables([histories[place] for place in places], windows, clock), strict=True))
    return [
        Outcome(history.name, Grain.END, final=found[place], knows_dropped=False)
        for place, history in enumerate(histories)
    ]


def session_table(arrivals: pa.Table, windows: SessionWindows, clock: str = "batch") -> pa.Table:
    """Give the sessions of one big history at its end, without a Python object for each record.

    The statement takes as many steps as the busiest key has records, about a millisecond each.

    Args:
        arrivals: A row a record, in order of arrival: key (string, null for none), value (whole numbers, floats,
            strings, or anything for `count` and `list`), timestamp (bigint, ms) and batch (bigint, never falling).
        windows: The session windows.
        clock: `batch` or `stream_time`.

    Returns:
        A row a session, by key, end and start: key (string), start and end (bigint, ms; timestamps of records), and
        value: bigint for a count or for whole numbers (decimal where bigint is too narrow), double, string, or a list.

    Raises:
        BadInput: The aggregate can't take the values' type, or a sum has more than 38 digits.
    """
    rows, name = arrivals.num_rows, windows.aggregate.name
    values = arrivals.column("value").combine_chunks()
    keys = arrivals.column("key").combine_chunks().dictionary_encode()
    column = _column_for(values.type)
    if name in COMPARED and (column is None or (name, column) == ("sum", "text")):
        raise BadInput(f"{name} can't take values of type {values.type}: cast the column to bigint or double")
    relation = _relation(
        history=pa.repeat(pa.scalar(0, pa.int64()), rows),
        batch=arrivals.column("batch"),
        heartbeat=pa.repeat(pa.scalar(False), rows),
        key=keys.indices.cast(pa.int64()),
        timestamp=arrivals.column("timestamp"),
        **({column: values} if column is not None and name in COMPARED else {}),
    )
    answer = _run(relation, windows, clock)
    match name:
        case "count":
            value: Any = answer.column("members")
        case "list":
            value = _pick(values, answer.column("positions").combine_chunks())
        case _:
            value = _narrowed(answer.column(f"{column}_{name}"))
    sessions = pa.table(
        {
            "key": keys.dictionary.take(answer.column("key").combine_chunks()),
            "start": answer.column("session_start"),
            "end": answer.column("session_end"),
            "value": value,
        }
    )
    by = sessions.select(["key", "end", "start"])
    return sessions.take(pc.sort_indices(by, [("key", "ascending"), ("end", "ascending"), ("start", "ascending")]))


def _tables(histories: Sequence[History], windows: SessionWindows, clock: str) -> list[Table]:
    """The tables of histories that share windows and clock."""
    cohort = _Cohort(histories, windows)
    answer = _run(cohort.relation(), windows, clock)
    found: list[Table] = [{} for _ in histories]
    bounds = zip(*(answer.column(name).to_pylist() for name in ("key", "session_start", "session_end")), strict=True)
    for (number, start, end), value in zip(bounds, cohort.values_of(answer), strict=True):
        place, key = cohort.keys[number]
        found[place][key, (start, end)] = (value, end)
    return found


class _Cohort:
    """The arrivals of many histories, column by column. Keys travel as numbers, which no two histories share."""

    def __init__(self, histories: Sequence[History], windows: SessionWindows) -> None:
        self.aggregate = windows.aggregate
        self.keys: list[tuple[int, Key]] = []
        self.history: list[int] = []
        self.batch: list[int] = []
        self.heartbeat: list[bool] = []
        self.key: list[int | None] = []
        self.timestamp: list[int] = []
        self.value: list[Any] = []
        for place, history in enumerate(histories):
            self._add(place, history)

    def _add(self, place: int, history: History) -> None:
        numbers: dict[Key, int] = {}
        batch = 0
        for line in history.lines:
            if isinstance(line, Cut):
                batch += 1
                continue
            if isinstance(line, Delivery):
                raise BadInput(f"{history.name}: session_windows has no channels to deliver from: leave the line out")
            self.history.append(place)
            self.batch.append(batch)
            self.timestamp.append(line.timestamp)
            self.heartbeat.append(isinstance(line, Heartbeat))
            number = value = None
            if isinstance(line, Record) and line.key is not None:
                number, value = numbers.get(line.key), line.value
                if number is None:
                    number = numbers[line.key] = len(self.keys)
                    self.keys.append((place, line.key))
            self.key.append(number)
            self.value.append(value)

    def relation(self) -> pa.Table:
        """The arrivals as the statement reads them."""
        return _relation(
            history=pa.array(self.history, pa.int64()),
            batch=pa.array(self.batch, pa.int64()),
            heartbeat=pa.array(self.heartbeat, pa.bool_()),
            key=pa.array(self.key, pa.int64()),
            timestamp=pa.array(self.timestamp, pa.int64()),
            **(self._value_columns() if self.aggregate.name in COMPARED else {}),
        )

    def _value_columns(self) -> dict[str, Any]:
        wholes: list[int | None] = []
        fractions: list[float | None] = []
        texts: list[str | None] = []
        for key, value in zip(self.key, self.value, strict=True):
            if key is not None:
                self.aggregate.check(value)
            wholes.append(value if isinstance(value, int) else None)
            fractions.append(value if isinstance(value, float) else None)
            texts.append(value if isinstance(value, str) else None)
        wide = any(whole is not None and whole not in INT64 for whole in wholes)
        try:
            return {
                "whole": pa.array(wholes, WIDE if wide else pa.int64()),
                "fraction": pa.array(fractions, pa.float64()),
                "text": pa.array(texts, pa.string()),
            }
        except pa.ArrowInvalid:
            raise BadInput("duckdb can't take a whole number of more than 38 digits: use smaller numbers") from None
        except UnicodeEncodeError as error:
            raise BadInput(
                f"duckdb can't compare the string {error.object!r}: half a surrogate pair is no text"
            ) from None

    def values_of(self, answer: pa.Table) -> list[Any]:
        """The value of every session of the answer."""
        name = self.aggregate.name
        if name == "count":
            return list(answer.column("members").to_pylist())
        if name == "list":
            return [
                [self.value[position] for position in members] for members in answer.column("positions").to_pylist()
            ]
        wholes = _narrowed(answer.column(f"whole_{name}")).to_pylist()
        fractions = answer.column(f"fraction_{name}").to_pylist()
        texts = [None] * len(wholes) if name == "sum" else answer.column(f"text_{name}").to_pylist()
        combining: dict[str, Callable[[Any, Any], Any]] = {"sum": operator.add, "min": min, "max": max}
        values = []
        for whole, fraction, text in zip(wholes, fractions, texts, strict=True):
            # Decimals are whole numbers too wide for a bigint.
            number = fraction if whole is None else int(whole)
            if whole is not None and fraction is not None:
                number = combining[name](number, fraction)
            if number is not None and text is not None:
                raise BadInput(
                    f"{name} can't compare the string {text!r} with the number {number!r}: use one type of value"
                )
            values.append(text if number is None else number)
        return values


def _relation(**columns: Any) -> pa.Table:
    """The relation `arrivals`; value columns that aren't given are empty."""
    rows = len(columns["key"])
    empty = {"whole": pa.int64(), "fraction": pa.float64(), "text": pa.string()}
    nulls = {name: pa.nulls(rows, kind) for name, kind in empty.items() if name not in columns}
    return pa.table({**columns, **nulls, "position": pa.array(np.arange(rows), pa.int64())})


def _run(arrivals: pa.Table, windows: SessionWindows, clock: str) -> pa.Table:
    parameters = {
        "clock": clock,
        "gap_ms": windows.gap_ms,
        "grace_ms": windows.grace_ms,
        "late": windows.late,
        "emit": windows.emit,
    }
    with duckdb.connect(":memory:") as connection:
        connection.register("arrivals", arrivals)
        try:
            return connection.sql(_statement(), params=parameters).to_arrow_table()
        except (duckdb.OutOfRangeException, duckdb.ConversionException):
            raise BadInput("duckdb can't hold a sum of more than 38 digits: use smaller numbers") from None


@cache
def _statement() -> str:
    return files(__package__).joinpath("sql", "session_windows.sql").read_text(encoding="utf-8")


def _column_for(kind: pa.DataType) -> str | None:
    """The value column of the statement that takes this type."""
    if pa.types.is_integer(kind):
        return "whole"
    if pa.types.is_floating(kind):
        return "fraction"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def _narrowed(column: Any) -> Any:
    """A column of decimals as bigint, where all of it fits."""
    if not pa.types.is_decimal(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def _pick(values: Any, positions: Any) -> Any:
    """Lists of values from lists of their positions."""
    lengths = pc.list_value_length(positions).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.take(pc.list_flatten(positions)))

"""Rows of any table as Python values: timestamps are `datetime`s in UTC."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....reference.core.errors import BadInput
from ...generators.columns.values import plain_values
from ...system.installed.spark_versions import arrow_table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_of(table: Any, of: str = "") -> list[dict[str, Any]]:
    """Return the rows of an Arrow table, of a pandas, Spark or DuckDB frame, or of an iterable of mappings.

    Args:
        table: The table.
        of: The name of the function that returned the table, for messages.

    Raises:
        BadInput: The table has another type, or two columns of the same name.
    """
    where = of and f"{of}: "
    if hasattr(table, "sparkSession"):  # a Spark DataFrame
        table = arrow_table_of(table)
    elif hasattr(table, "to_arrow_table"):  # a DuckDB relation
        table = table.to_arrow_table()
    elif type(table).__module__.startswith("pandas."):
        table = pa.Table.from_pandas(table, preserve_index=False)
    if isinstance(table, pa.Table):
        twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
        if twice:
            raise BadInput(f"{where}two columns are named {twice[0]!r}: rename one of them with .alias()")
        columns = [_values(table.column(name), f"{where}the column {name!r}") for name in table.column_names]
        if not columns:
            return [{} for _ in range(table.num_rows)]
        return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]
    if not isinstance(table, Iterable) or isinstance(table, (str, bytes, Mapping)):
        raise BadInput(
            f"{where}expected rows, and got {'None' if table is None else type(table).__name__}: return dicts, or a "
            "pandas or arrow table"
        )
    rows = []
    for row in table:
        as_mapping = row.asDict(recursive=True) if hasattr(row, "asDict") else row
        if not isinstance(as_mapping, Mapping):
            raise BadInput(f"{where}a row is {row!r}: return each row as a dict of column names and values")
        rows.append({name: plain(value) for name, value in as_mapping.items()})
    return rows


def _values(column: pa.ChunkedArray, what: str) -> list[Any]:
    try:
        return [*map(plain, plain_values(column))]
    except (ValueError, OverflowError):
        raise BadInput(
            f"{what} has a time or date beyond the years 1 to 9999: a common cause is that the reader takes "
            "milliseconds for seconds"
        ) from None


def window_among(columns: Collection[str], structs: Sequence[str]) -> str | None:
    """Return the window column that a result shows as the columns `start` and `end` (None: no such column).

    The window is the result's only window, or has Spark's default name, because the fields of two windows would clash.

    Args:
        columns: The columns of the result.
        structs: The columns whose values are windows.
    """
    if {"start", "end"} & {*columns}:
        return None
    return (
        structs[0]
        if len(structs) == 1
        else next((name for name in ("session_window", "window") if name in structs), None)
    )


def columns_of(frame: DataFrame) -> list[str]:
    """Return the columns of a frame, with `start` and `end` in place of a window."""
    from pyspark.sql.types import StructType, TimestampNTZType, TimestampType

    times = (TimestampType, TimestampNTZType)
    structs = [
        field.name
        for field in frame.schema
        if isinstance(field.dataType, StructType)
        and field.dataType.names == ["start", "end"]
        and all(isinstance(inner.dataType, times) for inner in field.dataType)
    ]
    window = window_among(frame.columns, structs)
    return [part for name in frame.columns for part in (("start", "end") if name == window else (name,))]


def flat(rows: Sequence[Mapping[str, Any]], known: Collection[str] = ()) -> list[Mapping[str, Any]]:
    """Return rows with the columns `start` and `end` in place of a window, whatever the window's name.

    Args:
        rows: The rows.
        known: Columns that stay unchanged.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    structs = [
        name
        for name in names
        if name not in known and all(row.get(name) is None or _is_window(row[name]) for row in rows)
    ]
    window = window_among(names, [name for name in structs if any(row.get(name) is not None for row in rows)])
    if window is None:
        return [*rows]
    none = {"start": None, "end": None}
    return [
        {**{name: value for name, value in row.items() if name != window}, **(row.get(window) or none)} for row in rows
    ]


def _is_window(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and {*value} == {"start", "end"}
        and all(isinstance(member, datetime) for member in value.values())
    )


def plain(value: Any) -> Any:
    """Return a value with its timestamps in UTC."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value
        utc = value.astimezone(UTC)
        return datetime(*utc.timetuple()[:6], utc.microsecond, UTC)  # converts pandas' Timestamps to datetimes, too
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    item = getattr(value, "item", None)
    return item() if callable(item) and type(value).__module__ == "numpy" else value

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
    """Return the rows of an arrow table, of a pandas, Spark or DuckDB frame, or of what iterates over mappings.

    Args:
        table: The table.
        of: What messages call the function that returned it.

    Raises:
        BadInput: It is nothing of these, or two of its columns have one name.
    """
    where = of and f"{of}: "
    if hasattr(table, "sparkSession"):  # Spark's
        table = arrow_table_of(table)
    elif hasattr(table, "to_arrow_table"):  # DuckDB's
        table = table.to_arrow_table()
    elif type(table).__module__.startswith("pandas."):
        table = pa.Table.from_pandas(table, preserve_index=False)
    if isinstance(table, pa.Table):
        twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
        if twice:
            raise BadInput(f"{where}two columns are called {twice[0]!r}: give each a name of its own with .alias()")
        columns = [_values(table.column(name), f"{where}the column {name!r}") for name in table.column_names]
        if not columns:
            return [{} for _ in range(table.num_rows)]
        return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]
    if not isinstance(table, Iterable) or isinstance(table, (str, bytes, Mapping)):
        raise BadInput(
            f"{where}{'None' if table is None else type(table).__name__} came where rows were expected: return dicts, "
            "or a pandas or arrow table"
        )
    rows = []
    for row in table:
        as_mapping = row.asDict(recursive=True) if hasattr(row, "asDict") else row
        if not isinstance(as_mapping, Mapping):
            raise BadInput(f"{where}a row is {row!r}: return each as a dict from the columns' names to values")
        rows.append({name: plain(value) for name, value in as_mapping.items()})
    return rows


def _values(column: pa.ChunkedArray, what: str) -> list[Any]:
    try:
        return [*map(plain, plain_values(column))]
    except (ValueError, OverflowError):
        raise BadInput(
            f"{what} has a time or date beyond the years 1 to 9999, such as seconds make that are milliseconds: mend "
            "how it is read"
        ) from None


def window_among(columns: Collection[str], structs: Sequence[str]) -> str | None:
    """Return the column of a result that counts as its two fields, `start` and `end`; None: there is no such column.

    It is the only window, or of several the one that Spark names: two would clash.

    Args:
        columns: The columns of the result.
        structs: Those of them whose values are windows.
    """
    if {"start", "end"} & {*columns}:
        return None
    return (
        structs[0]
        if len(structs) == 1
        else next((name for name in ("session_window", "window") if name in structs), None)
    )


def columns_of(frame: DataFrame) -> list[str]:
    """Return the columns of a frame, of its window `start` and `end`."""
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
    """Return rows in which the window, whatever it is called, stands as its two fields, `start` and `end`.

    Args:
        rows: The rows.
        known: Columns that stay as they are.
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
    """Return a value with its timestamps in UTC, whatever zone they came in."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value
        utc = value.astimezone(UTC)
        return datetime(*utc.timetuple()[:6], utc.microsecond, UTC)  # pandas' Timestamps too
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    item = getattr(value, "item", None)
    return item() if callable(item) and type(value).__module__ == "numpy" else value

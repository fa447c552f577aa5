"""Checks of the columns that a user names, made where the operator is declared and without running anything."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.errors import BadInput

ColumnLike = str | Column

NUMBERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType)
KEY_TYPES = (*NUMBERS, T.StringType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType, T.DecimalType)


def resolve(frame: DataFrame, parameter: str, column: ColumnLike) -> tuple[Column, T.StructField]:
    """Find a column, by name or as an expression, and its field (name and type).

    Raises:
        BadInput: The frame has no such column; the message lists those that it has.
    """
    try:
        chosen = frame.select(F.col(column) if isinstance(column, str) else column)
        fields = chosen.schema.fields
    except AnalysisException as error:
        known = ", ".join(frame.columns)
        shown = repr(column) if isinstance(column, str) else f"the expression {column}"
        raise BadInput(
            f"{parameter}: {shown} is not in the input, which has the columns {known}: {_first_line(error)}"
        ) from None
    if len(fields) != 1:
        raise BadInput(f"{parameter}: {column!r} names {len(fields)} columns: name one")
    return (F.col(column) if isinstance(column, str) else column), fields[0]


def key_columns(frame: DataFrame, key: ColumnLike | Sequence[ColumnLike]) -> list[tuple[Column, T.StructField]]:
    """Find the columns of a key.

    Raises:
        BadInput: There is none, one is missing, two have one name, or one's type can't be a key.
    """
    chosen = [key] if isinstance(key, str | Column) else list(key)
    if not chosen:
        raise BadInput("key: no column named: name at least one")
    found = [resolve(frame, "key", column) for column in chosen]
    names = [field.name for _, field in found]
    for _, field in found:
        if names.count(field.name) > 1:
            raise BadInput(f"key: {field.name!r} is named twice: give one of them an alias")
        if not isinstance(field.dataType, KEY_TYPES):
            raise BadInput(
                f"key: the column {field.name!r} is {field.dataType.simpleString()}, which can't be a key: "
                "use its fields one by one, or cast it to a string"
            )
    return found


def timestamp_column(frame: DataFrame, timestamp: ColumnLike) -> Column:
    """Find the event time as a Spark timestamp; a bigint column is read as milliseconds since 1970.

    Raises:
        BadInput: The column is missing, or neither a timestamp nor a bigint.
    """
    column, field = resolve(frame, "timestamp", timestamp)
    match field.dataType:
        case T.TimestampType():
            return column
        case T.TimestampNTZType():
            return column.cast("timestamp")
        case T.LongType():
            return F.timestamp_millis(column)
    raise BadInput(
        f"timestamp: the column {field.name!r} is {field.dataType.simpleString()}: "
        "it must be a timestamp, or a bigint of milliseconds; cast it"
    )


def _first_line(error: AnalysisException) -> str:
    return str(error).splitlines()[0][:200]

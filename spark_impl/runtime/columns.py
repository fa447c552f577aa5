"""Checks of the columns that a user names; they run when the operator is declared, before any query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from ...reference.definitions.aggregates import Aggregate

ColumnLike = str | Column

WHOLE_NUMBERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
NUMBERS = (*WHOLE_NUMBERS, T.FloatType, T.DoubleType)
KEY_TYPES = (*NUMBERS, T.StringType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType, T.DecimalType)


def resolve(frame: DataFrame, parameter: str, column: ColumnLike) -> tuple[Column, T.StructField]:
    """Return a column and its field (name and type).

    Args:
        frame: The DataFrame.
        parameter: The column's name in messages.
        column: A name or an expression.

    Raises:
        BadInput: The frame lacks the column; the message lists its columns.
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
    """Return the columns of a key and their fields.

    Raises:
        BadInput: No column is named, a column is missing, two have the same name, or a column's type can't be a key.
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


def same_bits(column: Column, field: T.StructField) -> Column:
    """Make floating-point keys bitwise comparable: both zeros and all NaNs get equal bits."""
    if not isinstance(field.dataType, T.FloatType | T.DoubleType):
        return column
    return F.when(F.isnan(column), F.lit(float("nan"))).otherwise(column + F.lit(0.0)).cast(field.dataType)


def timestamp_column(frame: DataFrame, timestamp: ColumnLike) -> Column:
    """Return the event time as a Spark timestamp; a bigint column is milliseconds since 1970.

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


def value_and_result(
    frame: DataFrame, aggregate: Aggregate, value: ColumnLike | None, value_type: str | T.DataType | None = None
) -> tuple[Column, T.DataType]:
    """Return the column to aggregate, and the type of its aggregate.

    Args:
        frame: The DataFrame.
        aggregate: The aggregate.
        value: The column; `count` needs no column.
        value_type: The type of the aggregate, as DDL or a DataType; named aggregates don't need it.

    Raises:
        BadInput: The column is missing, the aggregate doesn't accept it, or the aggregate's type isn't known.
    """
    if value is None:
        if aggregate.name != "count":
            raise BadInput(f"value: {aggregate.name} needs a column to aggregate: name one")
        return F.lit(None).cast("int"), T.LongType()
    column, field = resolve(frame, "value", value)
    if value_type is not None:
        return column, value_type if isinstance(value_type, T.DataType) else T.DataType.fromDDL(value_type)
    kind = field.dataType
    whole = isinstance(kind, WHOLE_NUMBERS)
    shown = f"value: the column {field.name!r} is {kind.simpleString()}"
    match aggregate.name:
        case "count":
            return column, T.LongType()
        case "sum" if isinstance(kind, NUMBERS):
            return column, T.LongType() if whole else T.DoubleType()
        case "sum":
            raise BadInput(f"{shown}, which can't be summed: cast it to bigint or double")
        case "average" if isinstance(kind, NUMBERS):
            return column, T.DoubleType()
        case "average":
            raise BadInput(f"{shown}, which has no average: cast it to bigint or double")
        case "min" | "max" if isinstance(kind, (*NUMBERS, T.StringType)):
            return column, kind
        case "min" | "max":
            raise BadInput(f"{shown}, which {aggregate.name} can't take: cast it to a number or a string")
        case "list" if isinstance(kind, (*NUMBERS, T.StringType, T.BooleanType)):
            return column, T.ArrayType(kind)
        case "list":
            raise BadInput(f"{shown}, which list can't take: cast it to a number, a boolean or a string")
    raise BadInput(f"value_type: the type of the aggregate {aggregate.name!r} isn't known: give it, such as 'bigint'")


def accumulator_type(frame: DataFrame, aggregate: Aggregate, column: Column, result: T.DataType) -> T.DataType:
    """Return the type of a column's unfinished aggregate: sum and count for an average, otherwise the result's type."""
    if aggregate.name != "average":
        return result
    whole = isinstance(frame.select(column).schema[0].dataType, WHOLE_NUMBERS)
    return T.StructType().add("sum", "long" if whole else "double").add("count", "long")


def bare(key: tuple[Any, ...]) -> Any:
    """Return a key as an aggregate expects it: the value for a key of one column, otherwise a tuple."""
    return key[0] if len(key) == 1 else key


def _first_line(error: AnalysisException) -> str:
    return str(error).splitlines()[0][:200].rstrip(";")

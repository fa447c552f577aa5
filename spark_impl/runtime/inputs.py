"""The inputs of an operator: their resolved columns, and comparable orders of arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from .codec import EVERY_LEVEL
from .columns import KEY_TYPES, NUMBERS, ColumnLike, key_columns, resolve, timestamp_column
from .processor import WITHIN


class OperatorInput(NamedTuple):
    """An input of an operator, with its columns resolved.

    Attributes:
        side: The input's name in messages, such as `left`.
        frame: The rows.
        keys: The key's columns.
        time: Event time, a timestamp.
        order: The order of arrival.
        order_type: Its type.
        value: The value.
        value_type: Its type.
        as_tuples: The number of levels of a value's structs that become tuples for the logic; deeper structs become
            dicts.
        clock: The timestamp to which a row moves the clock; by default the row's event time.
    """

    side: str
    frame: DataFrame
    keys: list[tuple[Column, T.StructField]]
    time: Column
    order: Column
    order_type: T.DataType
    value: Column
    value_type: T.DataType
    as_tuples: int = 0
    clock: Column | None = None


def resolved(
    frame: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike | None,
    order: ColumnLike | None = None,
    side: str = "",
) -> OperatorInput:
    """Return an input with its columns resolved.

    Args:
        frame: The input, streaming or batch.
        key: One or several columns.
        timestamp: Event time: a timestamp column, or a bigint column of ms since 1970.
        value: The value's column; None if the input has no value.
        order: The order of arrival, such as an offset.
        side: The input's name, for messages.

    Raises:
        BadInput: A column is missing or of the wrong type; the message names the parameter, the column and the remedy.
    """
    order_column, order_type = (F.lit(None).cast("bigint"), T.LongType()) if order is None else _order(frame, order)
    value_column, value_type = F.lit(None).cast("int"), T.DataType.fromDDL("int")
    if value is not None:
        value_column, field = resolve(frame, "value", value)
        value_type = field.dataType
    time = timestamp_column(frame, timestamp)
    return OperatorInput(side, frame, key_columns(frame, key), time, order_column, order_type, value_column, value_type)


def in_one_order(inputs: Sequence[OperatorInput]) -> list[OperatorInput]:
    """Make the orders of two inputs comparable: a row precedes the changes that rows with the same order cause.

    Raises:
        BadInput: The types of the two orders can't be compared; the message names both types.
    """
    if len(inputs) != 2 or inputs[0].order_type == inputs[1].order_type:
        return list(inputs)
    first, other = inputs
    orders = _in_one_order(*(Order(one.order, one.order_type) for one in inputs))
    if orders is None:
        require_same_order(first, other)
        return [first, other]
    return [one._replace(order=order, order_type=orders[2]) for one, order in zip(inputs, orders[:2], strict=True)]


class Order(NamedTuple):
    """The order of arrival, as a column."""

    column: Column
    type: T.DataType


def _in_one_order(first: Order, other: Order) -> tuple[Column, Column, T.DataType] | None:
    """Return two orders as columns of one type, or None if they can't be compared."""
    if first.type == other.type:
        return first.column, other.column, first.type
    if not _is_place(first.type) and not _is_place(other.type):
        return None
    orders = _in_one_order(*(_field(one, "order") if _is_place(one.type) else one for one in (first, other)))
    if orders is None:
        return None
    kind = T.StructType().add("phase", "integer").add("order", orders[2]).add("at", "long")
    sides = {"left": first, "right": other}
    for name, one in sides.items():
        kind = kind.add(name, one.type) if _is_place(one.type) else kind
    places = []
    for (name, one), order in zip(sides.items(), orders[:2], strict=True):
        known = {"phase": F.lit(WITHIN), "order": order}
        if _is_place(one.type):
            known |= {"phase": one.column["phase"], "at": one.column["at"], name: one.column}
        filled = (known.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name) for field in kind.fields)
        places.append(F.struct(*filled))
    return places[0], places[1], kind


def _field(one: Order, name: str) -> Order:
    assert isinstance(one.type, T.StructType)
    return Order(one.column[name], one.type[name].dataType)


def _is_place(kind: T.DataType) -> bool:
    return isinstance(kind, T.StructType) and {"phase", "order", "at"} <= set(kind.names)


def require_same(first: OperatorInput, other: OperatorInput) -> None:
    """Refuse two inputs whose keys, or orders of arrival, can't be compared.

    Raises:
        BadInput: The message names both types.
    """
    kinds = [[field.dataType.simpleString() for _, field in one.keys] for one in (first, other)]
    if kinds[0] != kinds[1]:
        raise BadInput(
            f"key: {', '.join(kinds[0])} on the {first.side} and {', '.join(kinds[1])} on the {other.side} clash: cast "
            "one of them"
        )
    require_same_order(first, other)


def require_same_order(first: OperatorInput, other: OperatorInput) -> None:
    """Refuse two inputs whose orders of arrival can't be compared.

    Raises:
        BadInput: The message names both types.
    """
    if first.order_type != other.order_type:
        raise BadInput(
            f"order: {first.order_type.simpleString()} on the {first.side} and {other.order_type.simpleString()} on "
            f"the {other.side} clash: cast one of them, because the order of arrival spans both"
        )


class JoinInput(NamedTuple):
    """An input of a join, with unresolved columns; the attributes are the arguments of `spark_impl.inputs.table`."""

    frame: DataFrame
    key: ColumnLike | Sequence[ColumnLike] = "key"
    timestamp: ColumnLike = "timestamp"
    value: ColumnLike | None = None
    order: ColumnLike | None = None


JoinInputLike = DataFrame | JoinInput
"""An input of a join; a bare DataFrame has the columns `key`, `timestamp` and `value`."""


@contextmanager
def reading(side: str, given: JoinInputLike) -> Iterator[JoinInput]:
    """Yield a join's input; errors raised in the block then name the input's side.

    Raises:
        BadInput: The columns are invalid; the message begins with the side.
    """
    try:
        yield given if isinstance(given, JoinInput) else JoinInput(given)
    except BadInput as error:
        remedy = "" if isinstance(given, JoinInput) else "; name its columns: table(frame, key=…, timestamp=…, value=…)"
        raise BadInput(f"{side}: {error}{remedy}") from None


def require_order_of_both(**sides: JoinInputLike) -> None:
    """Refuse an order of arrival that only one input has, because rows without an order would all come first.

    Raises:
        BadInput: The message names the side without an order.
    """
    without = [side for side, given in sides.items() if not isinstance(given, JoinInput) or given.order is None]
    if len(without) == 1:
        raise BadInput(
            f"{without[0]}: order: missing, but the other input has an order, and the order of arrival spans both "
            "inputs: name the column"
        )


def two_sides(left: JoinInputLike, right: JoinInputLike) -> tuple[OperatorInput, OperatorInput]:
    """Return both inputs of a join with their columns resolved.

    Raises:
        BadInput: Any error of `resolved`; the message also names the side.
    """
    require_order_of_both(left=left, right=right)
    sides = []
    for side, given in (("left", left), ("right", right)):
        with reading(side, given) as one:
            columns = one._replace(value="value") if one.value is None else one
            # Structs as tuples, because a join never reads fields of its values, and tuples store no field names.
            sides.append(resolved(**columns._asdict(), side=side)._replace(as_tuples=EVERY_LEVEL))
    lefts, rights = in_one_order(sides)
    return lefts, rights


def joined_type(left: T.DataType, right: T.DataType) -> T.StructType:
    """Return the type of a joined value: `struct<left, right>`, null for a missing side."""
    return T.StructType().add("left", left).add("right", right)


def any_null(columns: list[Column]) -> Column:
    """Return the condition that at least one of the columns is null."""
    null = F.lit(False)
    for column in columns:
        null = null | column.isNull()
    return null


def _order(frame: DataFrame, order: ColumnLike) -> tuple[Column, T.DataType]:
    column, field = resolve(frame, "order", order)
    if not _has_order(field.dataType):
        raise BadInput(
            f"order: the column {field.name!r} is {field.dataType.simpleString()}, which has no order: cast it"
        )
    return column, field.dataType


def _has_order(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_has_order(field.dataType) or isinstance(field.dataType, KEY_TYPES) for field in kind.fields)
    return isinstance(kind, (*NUMBERS, T.StringType, T.TimestampType, T.DateType))

"""The inputs of an operator: the columns that a user names, resolved, and orders of arrival that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from .codec import EVERY_LEVEL
from .columns import KEY_TYPES, NUMBERS, ColumnLike, key_columns, resolve, timestamp_column
from .processor import WITHIN


class Input(NamedTuple):
    """One input of an operator, resolved.

    Attributes:
        side: What its rows are called.
        frame: The rows.
        keys: The key's columns.
        time: Event time, a timestamp.
        order: The order of arrival.
        order_type: Its type.
        value: The value.
        value_type: Its type.
        as_tuples: How many levels of a value's structs reach the logic as tuples, as dicts below.
        clock: What its rows move the clock to (a timestamp); their event time by default.
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
) -> Input:
    """Return an input with its columns resolved.

    Args:
        frame: The input, streaming or batch.
        key: One or several columns.
        timestamp: Event time: a timestamp column, or a bigint column of ms since 1970.
        value: The value's column, if it has one.
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
    return Input(side, frame, key_columns(frame, key), time, order_column, order_type, value_column, value_type)


def in_one_order(inputs: Sequence[Input]) -> list[Input]:
    """Return two inputs with comparable orders of arrival: a row comes before the changes that its order has set off.

    Raises:
        BadInput: Their orders are of types that can't be compared; the message names both.
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
    """A column with the order of arrival."""

    column: Column
    type: T.DataType


def _in_one_order(first: Order, other: Order) -> tuple[Column, Column, T.DataType] | None:
    """Return two orders as columns of one type, or None where they can't be compared."""
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


def require_same(first: Input, other: Input) -> None:
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


def require_same_order(first: Input, other: Input) -> None:
    """Refuse two inputs whose orders of arrival can't be compared.

    Raises:
        BadInput: The message names both types.
    """
    if first.order_type != other.order_type:
        raise BadInput(
            f"order: {first.order_type.simpleString()} on the {first.side} and {other.order_type.simpleString()} on "
            f"the {other.side} clash: cast one of them, for the order of arrival goes across both"
        )


def two_sides(
    left: DataFrame,
    right: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    order: ColumnLike | None,
    right_key: ColumnLike | Sequence[ColumnLike] | None,
    right_timestamp: ColumnLike | None,
    right_value: ColumnLike | None,
    right_order: ColumnLike | None,
) -> list[Input]:
    """Return both inputs of a join with their columns resolved; right columns that aren't given are as on the left.

    Raises:
        BadInput: As `resolved`, with the side in the message.
    """

    def side_of(name: str, frame: DataFrame, **columns: Any) -> Input:
        try:
            # A join looks into no value, and tuples need no names in messages and states.
            return resolved(frame, side=name, **columns)._replace(as_tuples=EVERY_LEVEL)
        except BadInput as error:
            raise BadInput(f"{name}: {error}") from None

    sides = [
        side_of("left", left, key=key, timestamp=timestamp, value=value, order=order),
        side_of(
            "right",
            right,
            key=key if right_key is None else right_key,
            timestamp=timestamp if right_timestamp is None else right_timestamp,
            value=value if right_value is None else right_value,
            order=order if right_order is None else right_order,
        ),
    ]
    return in_one_order(sides)


def joined_type(left: T.DataType, right: T.DataType) -> T.StructType:
    """Return the type of a joined value: `struct<left, right>`, null where a side is missing."""
    return T.StructType().add("left", left).add("right", right)


def any_null(columns: list[Column]) -> Column:
    """Whether one of the columns is null."""
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

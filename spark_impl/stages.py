"""What the operators of several stages share: how the messages of one stage reach the next in the order of arrival.

Every stage is a `Logic` on `keyed`, and what it tells are messages, keyed anew for the next stage. A message's place is
that of the row that set it off, then its number among the messages of each stage it has come through. A stage takes
rows and messages by place, as if each arrival had gone through all stages before the next one came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..reference.errors import BadInput
from .columns import ColumnLike, key_columns
from .keyed import DROPPED, WITHIN, Arrived, Input, Kept, Key, Logic, Told, in_order_of

BEFORE_ALL_TIMES = -(2**62)
SPREAD = 64
"""Over so many groups the messages without a key are spread, which need no state."""

Columns = Sequence[tuple[Column, T.StructField]]


class StageLogic(Logic[Kept]):
    """What happens to one key in one stage; an order of arrival is here a place, and a struct comes as a dict."""

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        """Put the rows and messages of a batch in order of their places."""
        return in_order_of(rows, place_of)


class ReferringLogic(StageLogic[list[Key]]):
    """What happens to a left row that refers to a foreign key: at most one is kept, in a list."""

    def empty(self) -> list[Key]:
        """No foreign key."""
        return []

    def pack(self, kept: list[Key]) -> tuple[Any, ...] | None:
        """The foreign key, if there is one; it may be all nulls."""
        return kept[0] if kept else None

    def unpack(self, fields: tuple[Any, ...]) -> list[Key]:
        """The foreign key again."""
        return [tuple(fields)]


def place_of(row: Arrived) -> tuple[Any, ...]:
    """Give a row's place: its order of arrival, its timestamp (ms), then its number in each stage."""
    return tuple(row.order.values())


def at_stage(one: Input, number: int) -> Input:
    """Let an input come in at a stage (from 1): at its place it goes before all messages of other rows."""
    at = F.coalesce(F.unix_millis(one.time), F.lit(BEFORE_ALL_TIMES))
    steps = [F.lit(-1).alias(f"step_{step}") for step in range(1, number)]
    place = F.struct(one.order.alias("order"), at.alias("at"), *steps)
    return one._replace(order=place, order_type=_place_type(one, number))


def messages(sent: DataFrame, source: Input, number: int, to: Columns, value: Sequence[Column]) -> Input:
    """Give the messages of the stage before as an input of a stage (from 2).

    Args:
        sent: What `keyed` gave for the stage before.
        source: An input of the first stage, as it was before `at_stage`: its order's type is that of all.
        number: The stage's number.
        to: The key that a message is for, as columns of `sent`.
        value: What the stage gets to see of it, as columns of `sent`, beside its `timestamp` and the `reason` of a
            dropped row; none of them has one of these names.
    """
    seen = F.struct(F.unix_millis("timestamp").alias("timestamp"), "reason", *value)
    return Input(
        side="messages",
        frame=sent,
        keys=[*to],
        time=F.coalesce("timestamp", F.timestamp_millis(F.lit(0))),
        order=F.struct("cause.*", F.col("ordinal").alias(f"step_{number - 1}")),
        order_type=_place_type(source, number),
        value=seen,
        value_type=sent.select(seen.alias("seen")).schema["seen"].dataType,
    )


def spread(keys: Columns, over: Sequence[Column]) -> Column:
    """Give the group of messages without a key, of which there may be many; 0 for those with one."""
    return F.when(any_is_null(keys), F.pmod(F.xxhash64(*over), F.lit(SPREAD)).cast("int")).otherwise(F.lit(0))


def any_is_null(keys: Columns) -> Column:
    """Whether one of a key's columns is null: a key without one of its parts is none."""
    return F.greatest(*(column.isNull() for column, _ in keys), F.lit(False))


def finished(told: DataFrame) -> DataFrame:
    """Give a last stage's changelog as `keyed` gives an operator's: the cause is the order column's value again.

    The place keeps what the cause had of its way, so that messages of one cause to several keys stay in order.
    """
    place = F.struct(F.lit(WITHIN).alias("phase"), "cause.*", F.col("ordinal").alias("step"))
    return told.withColumns({"cause": F.col("cause.order"), "place": place})


def numbered(prefix: str, keys: Columns) -> list[T.StructField]:
    """Give a key's fields with names of our own."""
    return [T.StructField(f"{prefix}_{number}", field.dataType) for number, (_, field) in enumerate(keys)]


def renamed(prefix: str, keys: Columns) -> list[tuple[Column, T.StructField]]:
    """Give a key's columns with names of our own, which clash with no other column of a stage."""
    return [(column, field) for (column, _), field in zip(keys, numbered(prefix, keys), strict=True)]


def dropped_before(row: Arrived, reason: str, timestamp: int | None, value: Any = None) -> Told:
    """Hand on the message that a stage before has dropped a row."""
    return Told(None, None, value, timestamp, DROPPED, reason, row.order)


def named_columns(frame: DataFrame, parameter: str, columns: ColumnLike | Sequence[ColumnLike]) -> Columns:
    """Find columns that hold a key, as `key_columns` does, under the parameter's own name.

    Raises:
        BadInput: As `key_columns`; the message begins with the parameter's name.
    """
    try:
        return key_columns(frame, columns)
    except BadInput as error:
        raise BadInput(f"{parameter}{str(error).removeprefix('key')}") from None


def require_same_types(foreign_key: Columns, right_key: Columns) -> None:
    """Refuse a foreign key of another type than the key it refers to.

    Raises:
        BadInput: The message names both types.
    """
    ours, theirs = (", ".join(field.dataType.simpleString() for _, field in keys) for keys in (foreign_key, right_key))
    if ours != theirs:
        raise BadInput(f"foreign_key: it is {ours}, but the key of the right side is {theirs}: cast one of them")


def parts(key: Sequence[Any]) -> Key | None:
    """Give a key's parts, or None where one of them is missing."""
    return None if any(part is None for part in key) else tuple(key)


def digest_of(value: Any) -> bytes | None:
    """Give the hash of a row's value: equal values have equal hashes."""
    return None if value is None else hashlib.blake2b(repr(value).encode(), digest_size=16).digest()


def _place_type(source: Input, number: int) -> T.StructType:
    place = T.StructType().add("order", source.order_type).add("at", "long")
    for step in range(1, number):
        place = place.add(f"step_{step}", "integer")
    return place

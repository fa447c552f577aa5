"""Operators of several stages: the messages of one stage reach the next in the order of arrival.

Every stage is a `Logic` on `keyed`, and emits messages, with new keys, to the next stage. A message's place in that
order is the one of the row that set it off, then its ordinal in each stage that it has passed. A stage takes rows and
messages by place, as if each arrival had passed all stages before the next one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from .columns import ColumnLike, key_columns
from .keyed import BEFORE_ALL_TIMES, DROPPED, WITHIN, Arrived, Emitted, Input, Key, Logic, State, in_order_of

SPREAD = 64
"""The number of groups over which messages without a key are distributed; they need no state."""

Columns = Sequence[tuple[Column, T.StructField]]


class StageLogic(Logic[State]):
    """What happens to one key in one stage; the order of a row is its place, and structs are dicts."""

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        """Return the rows and messages of a batch in order of their places."""
        return in_order_of(rows, place_of)


class ReferringLogic(StageLogic[list[Key]]):
    """What happens to a left row that refers to a foreign key: its state is a list of at most one foreign key."""

    def empty(self) -> list[Key]:
        """No foreign key."""
        return []

    def pack(self, state: list[Key]) -> tuple[Any, ...] | None:
        """The foreign key, if there is one; it may be all nulls."""
        return state[0] if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[Key]:
        """The foreign key again."""
        return [tuple(fields)]


def place_of(row: Arrived) -> tuple[Any, ...]:
    """Return a row's place: its order of arrival, its timestamp (ms), then its ordinal in each stage."""
    return tuple(row.order.values())


def at_stage(one: Input, number: int) -> Input:
    """Return an input for a stage (from 1); of equal places a row comes before the messages of other rows."""
    at = F.coalesce(F.unix_millis(one.time), F.lit(BEFORE_ALL_TIMES))
    steps = [F.lit(-1).alias(f"step_{step}") for step in range(1, number)]
    place = F.struct(one.order.alias("order"), at.alias("at"), *steps)
    return one._replace(order=place, order_type=_place_type(one, number))


def messages(sent: DataFrame, source: Input, number: int, to: Columns, value: Sequence[Column]) -> Input:
    """Return the messages of the stage before as an input of a stage (from 2).

    Args:
        sent: The result of `keyed` for the stage before.
        source: An input of the first stage, before `at_stage`: all have its order's type.
        number: The stage's number.
        to: The key that a message is for, as columns of `sent`.
        value: Its content, as columns of `sent`, beside its `timestamp` and the `reason` of a dropped row; none of them
            has one of these names.
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
    """Return the group of messages without a key, of which there may be many; 0 for messages with a key."""
    return F.when(any_is_null(keys), F.pmod(F.xxhash64(*over), F.lit(SPREAD)).cast("int")).otherwise(F.lit(0))


def any_is_null(keys: Columns) -> Column:
    """Whether one of a key's columns is null: then there is no key."""
    return F.greatest(*(column.isNull() for column, _ in keys), F.lit(False))


def finished(emitted: DataFrame) -> DataFrame:
    """Return a last stage's changelog with the columns of `keyed`: the cause is the order column's value again.

    The place includes the ordinals of all stages, so that messages of one cause to several keys stay in order.
    """
    place = F.struct(F.lit(WITHIN).alias("phase"), "cause.*", F.col("ordinal").alias("step"))
    return emitted.withColumns({"cause": F.col("cause.order"), "place": place})


def numbered(prefix: str, keys: Columns) -> list[T.StructField]:
    """Return a key's fields under numbered names."""
    return [T.StructField(f"{prefix}_{number}", field.dataType) for number, (_, field) in enumerate(keys)]


def renamed(prefix: str, keys: Columns) -> list[tuple[Column, T.StructField]]:
    """Return a key's columns under numbered names, which clash with no other column of a stage."""
    return [(column, field) for (column, _), field in zip(keys, numbered(prefix, keys), strict=True)]


def dropped_before(row: Arrived, reason: str, timestamp: int | None, value: Any = None) -> Emitted:
    """Return the output for a row that an earlier stage has dropped.

    Args:
        row: The message.
        reason: Why the row was dropped.
        timestamp: The row's timestamp (ms).
        value: The output's value, where it has keys in it.
    """
    return Emitted(None, None, value, timestamp, DROPPED, reason, row.order)


def named_columns(frame: DataFrame, parameter: str, columns: ColumnLike | Sequence[ColumnLike]) -> Columns:
    """Return the columns of a key as `key_columns` does.

    Args:
        frame: The DataFrame.
        parameter: What messages call the columns.
        columns: One or several, by name or as expressions.

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
    """Return a key's parts, or None where one of them is null."""
    return None if any(part is None for part in key) else tuple(key)


def digest_of(value: Any) -> bytes | None:
    """Return the hash of a row's value: equal values have equal hashes."""
    return None if value is None else hashlib.blake2b(repr(value).encode(), digest_size=16).digest()


def _place_type(source: Input, number: int) -> T.StructType:
    place = T.StructType().add("order", source.order_type).add("at", "long")
    for step in range(1, number):
        place = place.add(f"step_{step}", "integer")
    return place

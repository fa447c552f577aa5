"""Functions of operators with several stages: keys under numbered names, and rows dropped by an earlier stage.

A stage emits messages, with new keys, to the next stage. A message is a tuple that begins with the timestamp (ms) of
the row that caused it, and the reason why that row was dropped, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from .columns import ColumnLike, key_columns, same_bits
from .logic import DROPPED, Arrived, Key, LogicOutput, key_of

TypedColumns = Sequence[tuple[Column, T.StructField]]
SEEN = (T.StructField("timestamp", T.LongType()), T.StructField("reason", T.StringType()))
"""The first fields of a message."""


@dataclass(frozen=True)
class To:
    """Addresses a message to the next stage: a sent value begins with the receiver's key, all null for a dropped row.

    Attributes:
        width: The number of columns of the receiver's key.
        rest: The number of fields after the key.
        with_sender: Whether the content ends with the sender's key.
    """

    width: int
    rest: int
    with_sender: bool = False

    def __call__(self, key: Key, sent: LogicOutput) -> tuple[Key, tuple[Any, ...]]:
        """Return the receiver's key of a message, and its content."""
        value = sent.value or (None,) * (self.width + self.rest)
        rest = value[self.width :]
        return value[: self.width], (*rest, *key) if self.with_sender else rest


def numbered(prefix: str, keys: TypedColumns) -> list[T.StructField]:
    """Return a key's fields under numbered names."""
    return [T.StructField(f"{prefix}_{number}", field.dataType) for number, (_, field) in enumerate(keys)]


def renamed(prefix: str, keys: TypedColumns) -> list[tuple[Column, T.StructField]]:
    """Return a key's columns under numbered names, which don't clash with other columns of a stage."""
    return [(column, field) for (column, _), field in zip(keys, numbered(prefix, keys), strict=True)]


def dropped_before(row: Arrived, reason: str, timestamp: int | None, value: Any = None) -> LogicOutput:
    """Return the output for a row that an earlier stage has dropped.

    Args:
        row: The message.
        reason: The reason why the row was dropped.
        timestamp: The row's timestamp (ms).
        value: The output's value, if the value contains keys.
    """
    return LogicOutput(None, None, value, timestamp, DROPPED, reason, row.order)


def named_columns(frame: DataFrame, parameter: str, columns: ColumnLike | Sequence[ColumnLike]) -> TypedColumns:
    """Return the columns of a key as `key_columns` does; equal values get equal bits, as a stage's keys require.

    Args:
        frame: The DataFrame.
        parameter: The columns' name in messages.
        columns: One or several columns, by name or as expressions.

    Raises:
        BadInput: Any error of `key_columns`; the message begins with the parameter's name.
    """
    try:
        return [(same_bits(column, field), field) for column, field in key_columns(frame, columns)]
    except BadInput as error:
        raise BadInput(f"{parameter}{str(error).removeprefix('key')}") from None


def parts(key: Sequence[Any]) -> Key | None:
    """Return a key as a tuple, or None if one of its columns is null."""
    return None if None in key else key_of(key)

"""Parts shared by operators of several stages: keys under numbered names, and rows that an earlier stage has dropped.

A stage emits messages, with new keys, to the next stage: tuples that begin with the timestamp (ms) of the row that set
them off, and the reason why that row was dropped, or None.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from .codec import encode
from .columns import ColumnLike, key_columns, same_bits
from .inputs import JoinInputLike, OperatorInput, joined_type, two_sides
from .logic import DROPPED, Arrived, Emitted, Key, Logic, dropped, key_of

Columns = Sequence[tuple[Column, T.StructField]]
SEEN = (T.StructField("timestamp", T.LongType()), T.StructField("reason", T.StringType()))
"""The fields with which a message begins."""


@dataclass(frozen=True)
class To:
    """Sends a message to the next stage: it begins with its receiver's key; a dropped row's is all null.

    Attributes:
        width: The number of columns of that key.
        rest: The number of fields after the key.
        with_sender: Whether the content ends with the sender's key.
    """

    width: int
    rest: int
    with_sender: bool = False

    def __call__(self, key: Key, sent: Emitted) -> tuple[Key, tuple[Any, ...]]:
        """Return the receiver's key of a message, and its content."""
        value = sent.value or (None,) * (self.width + self.rest)
        rest = value[self.width :]
        return value[: self.width], (*rest, *key) if self.with_sender else rest


class ReferringLogic(Logic[list[Key]]):
    """The logic of a left row that refers to a foreign key: its state is a list of at most one foreign key."""

    def empty(self) -> list[Key]:
        """No foreign key."""
        return []

    def pack(self, state: list[Key]) -> tuple[Any, ...] | None:
        """The foreign key, if there is one; it may be all nulls."""
        return state[0] if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[Key]:
        """The foreign key again."""
        return [tuple(fields)]


class ValueAt(NamedTuple):
    """A row of a table: its value and timestamp (ms)."""

    value: Any
    timestamp: int


class ReferredState:
    """The state of a foreign key.

    Attributes:
        right: Its right row, if there is one.
        lefts: The stored part of each left row that refers to it, by left key.
    """

    def __init__(self, right: ValueAt | None, lefts: dict[Key, Any]) -> None:
        self.right = right
        self.lefts = lefts


class ReferredLogic(Logic[ReferredState]):
    """The logic of a foreign key: its right row, and the left rows that refer to it.

    Attributes:
        stored: The type of the stored part of a left row, a NamedTuple.
    """

    keeps_null_keys = True
    stored: ClassVar[type[Any]]

    def empty(self) -> ReferredState:
        """No row on either side."""
        return ReferredState(None, {})

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        """Pack the right row and the left rows, if there are any."""
        if state.right is None and not state.lefts:
            return None
        return (*(state.right or (None, None)), [(*key, *left) for key, left in state.lefts.items()])

    def unpack(self, fields: tuple[Any, ...]) -> ReferredState:
        """The rows again."""
        value, timestamp, lefts = fields
        right, width = None if value is None else ValueAt(value, timestamp), len(self.stored._fields)
        return ReferredState(right, {key_of(one[:-width]): self.stored(*one[-width:]) for one in lefts})

    def take(self, key: Key, state: ReferredState, row: Arrived, clock: int) -> list[Emitted]:
        """Take a right row, or a message of a left row."""
        if row.side == "right":
            return [dropped(row, "null key")] if parts(key) is None else self.change(state, row)
        return self.take_left(key, state, row)

    def take_left(self, key: Key, state: ReferredState, row: Arrived) -> list[Emitted]:
        """Take a message of a left row."""
        raise NotImplementedError

    def change(self, state: ReferredState, row: Arrived) -> list[Emitted]:
        """Change the right row, and emit for every left row that refers to it, in the order of their keys."""
        assert row.timestamp is not None
        state.right = None if row.value is None else ValueAt(row.value, row.timestamp)
        return [
            self.left_change(state, row, key, left)
            for key, left in sorted(state.lefts.items(), key=lambda referring: referring[0])
        ]

    def left_change(self, state: ReferredState, row: Arrived, key: Key, left: Any) -> Emitted:
        """Return the output of a changed right row for a left row."""
        raise NotImplementedError


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
    """Return the columns of a key as `key_columns` does; equal values have equal bits, as a stage's keys must.

    Args:
        frame: The DataFrame.
        parameter: The columns' name in messages.
        columns: One or several, by name or as expressions.

    Raises:
        BadInput: As `key_columns`; the message begins with the parameter's name.
    """
    try:
        return [(same_bits(column, field), field) for column, field in key_columns(frame, columns)]
    except BadInput as error:
        raise BadInput(f"{parameter}{str(error).removeprefix('key')}") from None


@dataclass(frozen=True)
class ReferringTables:
    """Both tables of a join by foreign key, resolved.

    Attributes:
        lefts: The referring table.
        rights: The table referred to.
        refers: The foreign key's columns in a left row.
    """

    lefts: OperatorInput
    rights: OperatorInput
    refers: Columns

    @property
    def key_fields(self) -> list[T.StructField]:
        """The fields of a left key in messages."""
        return numbered("key", self.lefts.keys)

    @property
    def to_fields(self) -> list[T.StructField]:
        """The fields of a foreign key in messages."""
        return numbered("to", self.refers)

    @property
    def left_field(self) -> T.StructField:
        """The field of a left value in messages."""
        return T.StructField("left", self.lefts.value_type)

    @property
    def left_rows(self) -> OperatorInput:
        """The left rows as the first stage takes them: with the foreign key beside the value."""
        names = (column.alias(at.name) for column, at in renamed("to", self.refers))
        row = F.struct(self.lefts.value.alias("left"), *names)
        return self.lefts._replace(value=row, value_type=T.StructType([self.left_field, *self.to_fields]))

    @property
    def foreign_key(self) -> str:
        """The names of the foreign key's columns, for declarations."""
        return ", ".join(field.name for _, field in self.refers)

    @property
    def result_type(self) -> T.StructType:
        """The type of a joined value."""
        return joined_type(self.lefts.value_type, self.rights.value_type)


def referring_tables(
    left: JoinInputLike, right: JoinInputLike, foreign_key: ColumnLike | Sequence[ColumnLike]
) -> ReferringTables:
    """Return both tables of a join by foreign key with their columns resolved.

    Raises:
        BadInput: As `two_sides`, or the foreign key is missing, or its types differ from the right key's.
    """
    lefts, rights = two_sides(left, right)
    refers = named_columns(lefts.frame, "foreign_key", foreign_key)
    ours, theirs = (", ".join(field.dataType.simpleString() for _, field in keys) for keys in (refers, rights.keys))
    if ours != theirs:
        raise BadInput(f"foreign_key: it is {ours}, but the key of the right side is {theirs}: cast one of them")
    return ReferringTables(lefts, rights, refers)


def parts(key: Sequence[Any]) -> Key | None:
    """Return a key's parts, or None where one of them is null."""
    return None if None in key else key_of(key)


def digest_of(value: Any) -> bytes | None:
    """Return the hash of a row's value: equal values have equal hashes."""
    return None if value is None else hashlib.blake2b(encode(value), digest_size=16).digest()

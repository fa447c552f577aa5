"""Base classes of the joins by foreign key: both tables, and the logic of a left row and of a foreign key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from ..runtime.columns import ColumnLike
from ..runtime.inputs import JoinInputLike, OperatorInput, joined_type, two_sides
from ..runtime.logic import Arrived, Key, Logic, LogicOutput, dropped, key_of
from ..runtime.stages import TypedColumns, named_columns, numbered, parts, renamed


class ReferringLogic(Logic[list[Key]]):
    """The logic of a left row; its state is a list of at most one foreign key."""

    def empty(self) -> list[Key]:
        """No foreign key."""
        return []

    def pack(self, state: list[Key]) -> tuple[Any, ...] | None:
        """Return the foreign key, if any; all its columns may be null."""
        return state[0] if state else None

    def unpack(self, fields: tuple[Any, ...]) -> list[Key]:
        """Unpack the foreign key."""
        return [tuple(fields)]


class ValueAt(NamedTuple):
    """A row of a table: its value and timestamp (ms)."""

    value: Any
    timestamp: int


class ReferredState:
    """The state of a foreign key.

    Attributes:
        right: The right row, if any.
        lefts: The stored part of each left row that refers to the key, by left key.
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
        """Return a state without rows."""
        return ReferredState(None, {})

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        """Pack the right row and the left rows, if any."""
        if state.right is None and not state.lefts:
            return None
        return (*(state.right or (None, None)), [(*key, *left) for key, left in state.lefts.items()])

    def unpack(self, fields: tuple[Any, ...]) -> ReferredState:
        """The rows again."""
        value, timestamp, lefts = fields
        right, width = None if value is None else ValueAt(value, timestamp), len(self.stored._fields)
        return ReferredState(right, {key_of(one[:-width]): self.stored(*one[-width:]) for one in lefts})

    def take(self, key: Key, state: ReferredState, row: Arrived, clock: int) -> list[LogicOutput]:
        """Process a right row, or a message from a left row."""
        if row.side == "right":
            return [dropped(row, "null key")] if parts(key) is None else self.change(state, row)
        return self.take_left(key, state, row)

    def take_left(self, key: Key, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        """Process a message from a left row."""
        raise NotImplementedError

    def change(self, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        """Change the right row, and emit a result for every left row that refers to it, in key order."""
        assert row.timestamp is not None
        state.right = None if row.value is None else ValueAt(row.value, row.timestamp)
        return [
            self.left_change(state, row, key, left)
            for key, left in sorted(state.lefts.items(), key=lambda referring: referring[0])
        ]

    def left_change(self, state: ReferredState, row: Arrived, key: Key, left: Any) -> LogicOutput:
        """Return the changes that a left row emits when its right row changes."""
        raise NotImplementedError


@dataclass(frozen=True)
class ReferringTables:
    """Both tables of a foreign-key join, with their columns resolved.

    Attributes:
        lefts: The referring table.
        rights: The referenced table.
        refers: The foreign key's columns in a left row.
    """

    lefts: OperatorInput
    rights: OperatorInput
    refers: TypedColumns

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
        """The left rows as the first stage reads them: with the foreign key beside the value."""
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
    """Return both tables of a foreign-key join with their columns resolved.

    Raises:
        BadInput: Any error of `two_sides`; or the foreign key is missing, or its types differ from the right key's
            types.
    """
    lefts, rights = two_sides(left, right)
    refers = named_columns(lefts.frame, "foreign_key", foreign_key)
    ours, theirs = (", ".join(field.dataType.simpleString() for _, field in keys) for keys in (refers, rights.keys))
    if ours != theirs:
        raise BadInput(f"foreign_key: it is {ours}, but the key of the right side is {theirs}: cast one of them")
    return ReferringTables(lefts, rights, refers)

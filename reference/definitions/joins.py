"""Definitions of joins, and the matrix of the supported joins.

All durations are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..core.errors import BadInput
from ..core.records import Key, Record, Value
from .declarations import UNSET, Definition, not_negative, one_of, text_field

JoinKind = Literal["inner", "left", "outer"]
JOINS = ("inner", "left", "outer")
BOTH = ("left", "right")

MATRIX: dict[tuple[str, str], tuple[str, ...]] = {
    ("KStream", "KStream"): ("inner", "left", "outer"),
    ("KStream", "KTable"): ("left", "inner"),
    ("KStream", "WTable"): ("left",),
    ("KTable", "KTable"): ("inner", "left", "outer"),
    ("KTable", "WTable"): ("left",),
    ("WTable", "KTable"): ("left",),
    ("WTable", "WTable"): ("inner", "left", "outer"),
}
"""The supported joins of each primary (left) and secondary (right) type of input.

Source: Kafka Streams Join Semantics, "Join Types"; KIP-77 added the inner stream-table join to Kafka Streams.
"""


def require_join(primary: str, secondary: str, join: Any) -> None:
    """Refuse a join that the matrix doesn't contain.

    Args:
        primary: The type of the left input: `KStream`, `KTable` or `WTable`.
        secondary: The type of the right input.
        join: `inner`, `left` or `outer`.

    Raises:
        BadInput: The join isn't supported; the message says why, and lists the supported joins.
    """
    if join not in JOINS:
        right = "; for a right join, swap the sides" if join == "right" else ""
        raise BadInput(f"unknown join {join!r}: use inner, left or outer{right}")
    kinds = MATRIX.get((primary, secondary), ())
    if join in kinds:
        return
    if secondary == "KStream":
        why = f"a {primary} can't look up a stream, which keeps no row for a key: make the stream the primary side"
    elif primary == "KStream":
        why = (
            f"the stream alone drives its join with a {secondary}, whose rows never emit by themselves: "
            f"use {' or '.join(kinds)}"
        )
    else:
        why = f"a {primary} emits its rows with or without a row of the {secondary}: use {' or '.join(kinds)}"
    raise BadInput(f"there is no {join} join of {primary} and {secondary}: {why}")


@dataclass(frozen=True)
class StreamStreamJoin(Definition):
    """A join of two streams by key within time bounds: right.timestamp in [left - before_ms, left + after_ms].

    Attributes:
        before_ms: The longest time before a left record within which a partner may be, inclusive.
        after_ms: The longest time after a left record within which a partner may be, inclusive.
        join: `inner`, `left` or `outer`.
        grace_ms: The extra time in which a record can still find partners, beyond `after_ms` for a left record and
            `before_ms` for a right record.
        emit: When to emit a row without a partner. `arrival` (left joins only): when it arrives; later right records
            emit nothing. `eager`: when it arrives, and again, as a pair, when a partner arrives. `close`: when no
            partner can arrive any more. The default is `arrival` for left joins and `eager` for outer joins; inner
            joins ignore the option.
        null_key: `drop` records without a key, or `keep` them: left and outer joins emit a record without a key at
            once.

    Raises:
        BadInput: A bound is missing (unbounded joins are refused), a duration isn't a whole number of ms or is
            negative, or the join or option isn't supported.

    Source: Kafka Streams Join Semantics, "KStream-KStream Join", "Output of Join"; Samza's window operator.
    """

    before_ms: int = field(default_factory=lambda: UNSET)
    after_ms: int = field(default_factory=lambda: UNSET)
    join: JoinKind = "inner"
    grace_ms: int = 0
    emit: Literal["arrival", "eager", "close"] = field(default_factory=lambda: UNSET)
    null_key: Literal["drop", "keep"] = "drop"

    def __post_init__(self) -> None:
        """Validate the declaration, and set the default of `emit`."""
        require_join("KStream", "KStream", self.join)
        for name in ("before_ms", "after_ms"):
            if getattr(self, name) is UNSET:
                raise BadInput(
                    f"{name} is missing: an unbounded stream-stream join is refused, because its predicate must "
                    "include timestamps from both streams; give before_ms and after_ms"
                )
        not_negative(self, "before_ms", "after_ms", "grace_ms")
        if self.emit is UNSET:
            object.__setattr__(self, "emit", "eager" if self.join == "outer" else "arrival")
        one_of(self, "emit", "arrival", "eager", "close")
        one_of(self, "null_key", "drop", "keep")
        if (self.join, self.emit) == ("outer", "arrival"):
            raise BadInput("emit is 'arrival', but both sides drive an outer join: use eager or close")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return `left` and `right`, both streams."""
        return BOTH

    @property
    def is_stream(self) -> bool:
        """Return true: the result is a stream."""
        return True

    @property
    def right_drives(self) -> bool:
        """Return whether arriving right records emit results; if not, they are only stored for later left records."""
        return not (self.join == "left" and self.emit == "arrival")

    def emits_unmatched(self, side: str) -> bool:
        """Return whether a side's rows without a partner are emitted, with null for the other side."""
        return self.join == "outer" or (self.join == "left" and side == "left")

    def is_open(self, side: str, timestamp: int, clock: int) -> bool:
        """Return whether a row can still find a partner.

        Args:
            side: `left` or `right`.
            timestamp: The row's timestamp (ms).
            clock: The clock's time (ms).
        """
        return timestamp >= self.close_edge(side, clock)

    def close_edge(self, side: str, clock: int) -> int:
        """Return a timestamp (ms): at a clock time (ms), a side's earlier rows can't find a partner any more."""
        return clock - self.grace_ms - (self.after_ms if side == "left" else self.before_ms)

    def within(self, left: int, right: int) -> bool:
        """Return whether a left and a right timestamp (ms) are within the bounds."""
        return left - self.before_ms <= right <= left + self.after_ms


@dataclass(frozen=True)
class StreamTableJoin(Definition):
    """A join in which a stream, `left`, looks up a table, `right`.

    Attributes:
        join: `left` or `inner`.
        null_key: `drop` stream records without a key, or `keep` them: the left join emits them at once.

    Raises:
        BadInput: The join or option isn't supported.

    Source: Kafka Streams Join Semantics, "KStream-KTable Joins".
    """

    join: Literal["left", "inner"] = "left"
    null_key: Literal["drop", "keep"] = "drop"

    def __post_init__(self) -> None:
        """Check the declaration."""
        require_join("KStream", "KTable", self.join)
        one_of(self, "null_key", "drop", "keep")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return `left`, the stream, and `right`, the table."""
        return BOTH

    @property
    def is_stream(self) -> bool:
        """Return true: the result is a stream."""
        return True


@dataclass(frozen=True)
class TableTableJoin(Definition):
    """A join of two tables by key; a change of either table emits results.

    Attributes:
        join: `inner`, `left` or `outer`.

    Raises:
        BadInput: The join isn't supported.

    Source: Kafka Streams Join Semantics, "KTable-KTable Join".
    """

    join: JoinKind = "inner"

    def __post_init__(self) -> None:
        """Check the declaration."""
        require_join("KTable", "KTable", self.join)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Both are tables."""
        return BOTH


@dataclass(frozen=True)
class OneToManyJoin(Definition):
    """KIP-213's first design: each left row refers to one right row, and the result's key combines both keys.

    Attributes:
        foreign_key: The field of the left value object that contains the right key: a string, or null.
        join: `inner` or `left`.
        null_foreign_key: `ignore`: a row without a foreign key joins nothing; `keep`: a left join emits the row with
            null.
        protocol: `kip`: in an inner join, a left row without a right row emits nothing; `answer`: the left row emits a
            tombstone.

    Raises:
        BadInput: `foreign_key` isn't a string, or the join or option isn't supported.

    Source: KIP-213, "Jan Filipiak's Original Proposal".
    """

    foreign_key: str = field(metadata={"needed": 'the field with the right key, such as "foreign_key": "artist"'})
    join: Literal["inner", "left"] = "inner"
    null_foreign_key: Literal["ignore", "keep"] = "ignore"
    protocol: Literal["kip", "answer"] = "kip"

    def __post_init__(self) -> None:
        """Check the declaration."""
        if not isinstance(self.foreign_key, str):
            raise BadInput(f"foreign_key is {self.foreign_key!r}: give the name of a field of the left value object")
        if self.join in ("outer", "right"):
            raise BadInput(
                f"{self.join} joins by foreign key aren't supported: a right row alone has no key; use inner or left"
            )
        if self.join not in ("inner", "left"):
            raise BadInput(f"unknown join {self.join!r}: use inner or left")
        one_of(self, "null_foreign_key", "ignore", "keep")
        one_of(self, "protocol", "kip", "answer")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Both are tables."""
        return BOTH

    @property
    def keeps_null(self) -> bool:
        """Return whether a row without a foreign key is emitted with null."""
        return self.join == "left" and self.null_foreign_key == "keep"

    @property
    def answers_all(self) -> bool:
        """Return whether every left change gets a response, even if there is no right row."""
        return self.join == "left" or self.protocol == "answer"

    def foreign_key_of(self, value: Value) -> Key | None:
        """Return the foreign key of a left value; None for a tombstone."""
        return None if value is None else text_field(value, self.foreign_key, "the foreign key")

    def check(self, record: Record) -> None:
        """Refuse a left value whose foreign key is missing or not a string."""
        if record.input == "left" and record.key is not None:
            self.foreign_key_of(record.value)


@dataclass(frozen=True)
class ForeignKeyJoin(OneToManyJoin):
    """The foreign-key join of KIP-213: each left row refers to one right row, and the result has the left key.

    Attributes:
        foreign_key: The field of the left value object that contains the right key: a string, or null.
        join: `inner` or `left`.
        null_foreign_key: `ignore`: a row without a foreign key joins nothing, and emits a tombstone if it had a result;
            `keep`: a left join emits the row with null, an inner join ignores the row.
        protocol: `kip`: the protocol of KIP-213; `answer`: every left change gets a response, also in an inner join.
        delivery: `immediate`, or `manual`: messages wait in their channels until a history line delivers them.

    Raises:
        BadInput: `foreign_key` isn't a string, or the join or option isn't supported.

    Source: KIP-213, "Workflow", "Tombstones & Foreign Key Changes".
    """

    delivery: Literal["immediate", "manual"] = "immediate"

    def __post_init__(self) -> None:
        """Check the declaration."""
        super().__post_init__()
        one_of(self, "delivery", "immediate", "manual")

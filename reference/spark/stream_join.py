"""The join of two streams: equal keys, and `right.time BETWEEN left.time - before AND left.time + after`.

Sources: `StreamingSymmetricHashJoinExec` (the order of the sides, lateness, output at eviction, state of semi joins),
`StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates` (which side's state is evicted) and
`StreamingJoinHelper.getStateValueWatermark` (the watermark of the eviction).

A null key matches nothing, except in a full join. A full join treats null keys as equal: Spark looks rows up by their
stored key, and infers no `IsNotNull` for either side (`InferFiltersFromConstraints`). A batch query never joins null
keys.

If a batch evicts a row that arrived in the same batch, pairs may be lost; the Spark version decides which: see
`Dialect` and `dialect_of`. Since SPARK-55973 a semi join processes the right rows first, but doesn't store a right row
that the same batch evicts: a left row in that batch loses its partner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .aggregates import Row

Side: TypeAlias = Literal["left", "right"]
StreamJoinKind: TypeAlias = Literal["inner", "left", "right", "full", "left_semi"]
Pair: TypeAlias = tuple[Row | None, Row | None]
LEFT_FIRST: tuple[Side, Side] = ("left", "right")
RIGHT_FIRST: tuple[Side, Side] = ("right", "left")


@dataclass(frozen=True)
class Dialect:
    """The behaviour of stream joins that differs between Spark versions.

    Attributes:
        semi_takes: The side whose rows a semi join processes first in each batch: the right side since SPARK-55973
            (4.2.0).
        keeps_evicted: Whether other rows of a batch can join an arriving row that the batch evicts: since SPARK-49829
            (3.5.4, 4.0.0). Earlier versions don't store the row: no row finds it, and an outer join doesn't emit it
            alone.
        semi_keeps_evicted: Whether a semi join that processes the right rows first also stores the right rows that the
            batch evicts. False in every Spark version.
    """

    semi_takes: Side = "right"
    keeps_evicted: bool = True
    semi_keeps_evicted: bool = False


NEWEST = Dialect()
AS_WRITTEN = Dialect(semi_keeps_evicted=True)
"""The behaviour that the definition of a join requires: an eviction loses no pair of the same batch."""


def dialect_of(version: Sequence[int]) -> Dialect:
    """Return the behaviour of a Spark version, such as (3, 5, 4)."""
    return Dialect("right" if tuple(version) >= (4, 2) else "left", tuple(version) >= (3, 5, 4))


@dataclass(frozen=True)
class StreamJoin:
    """A join of two streams; all times are microseconds.

    Attributes:
        join: `inner`, `left`, `right`, `full`, or `left_semi`, whose pairs have no right row.
        keys: The columns of the key on each side, in the same order.
        times: The column of the event time on each side.
        before_us: The largest time by which the right row may precede the left row; None for no limit.
        after_us: The largest time by which the right row may follow the left row; None for no limit.
        watermarks: The sides that have a watermark.
        dialect: The behaviour of a Spark version; by default the newest version's.
        null_keys: Whether null keys are equal; if None, only in a full join.
    """

    join: StreamJoinKind
    keys: tuple[tuple[str, ...], tuple[str, ...]]
    times: tuple[str, str]
    before_us: int | None
    after_us: int | None
    watermarks: frozenset[Side] = frozenset({"left", "right"})
    dialect: Dialect = NEWEST
    null_keys: bool | None = None

    def reach_us(self, side: Side) -> int | None:
        """Return how far behind the watermark (microseconds) a side's rows are still stored; None if they are stored
        for ever.
        """
        reach = self.after_us if side == "left" else self.before_us
        return reach if len(self.watermarks) == 2 else None

    def state_watermark_ms(self, side: Side, watermark_ms: int) -> int | None:
        """Return the event time (ms) up to which a side's rows can't be joined any more; None without such a time."""
        reach_us = self.reach_us(side)
        if reach_us is None:
            return None
        # Like Spark, truncate the bound to milliseconds, and subtract 1, because a row exactly at the bound can still
        # join.
        return int((watermark_ms * 1_000 - reach_us) / 1_000) - 1

    @property
    def order(self) -> tuple[Side, Side]:
        """The order in which a batch joins the rows of the sides."""
        return RIGHT_FIRST if self.join == "left_semi" and self.dialect.semi_takes == "right" else LEFT_FIRST

    @property
    def asks_for_batch_without_data(self) -> bool:
        """Return whether a batch without data follows if the watermark has moved: only if state can be evicted."""
        return self.reach_us("left") is not None or self.reach_us("right") is not None

    def matches(self, left: Row, right: Row) -> bool:
        """Return whether two rows join."""
        keys = [(left[one], right[two]) for one, two in zip(*self.keys, strict=True)]
        nulls_equal = self.join == "full" if self.null_keys is None else self.null_keys
        equal = all(one == two and (one is not None or nulls_equal) for one, two in keys)
        if not equal or (self.before_us is None and self.after_us is None):
            return equal
        times = left[self.times[0]], right[self.times[1]]
        if None in times:  # like SQL: a null time is never within the bounds
            return False
        after = times[1] - times[0]
        return not (
            (self.before_us is not None and after < -self.before_us)
            or (self.after_us is not None and after > self.after_us)
        )


class _Kept:
    """A stored row, and whether it has been joined."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.joined = False


class JoinState:
    """The rows of both sides that may still be joined, by key."""

    def __init__(self, join: StreamJoin) -> None:
        self.join = join
        self.kept: dict[Side, dict[tuple[Any, ...], list[_Kept]]] = {"left": {}, "right": {}}

    def batch(self, left: Iterable[Row], right: Iterable[Row], late_ms: int, eviction_ms: int) -> list[Pair]:
        """Process a micro-batch's rows; return the emitted pairs of left and right row, None for a missing side."""
        arriving: dict[Side, Iterable[Row]] = {"left": left, "right": right}
        emitted: list[Pair] = []
        for side in self.join.order:
            for row in self.in_time(side, arriving[side], late_ms):
                emitted += self.arrive(side, row, eviction_ms)
        return emitted + self.evict("left", eviction_ms) + self.evict("right", eviction_ms)

    def in_time(self, side: Side, rows: Iterable[Row], late_ms: int) -> list[Row]:
        """Return the rows that aren't late; without a watermark, no row of a side is late."""
        time = self.join.times[side == "right"]
        return [
            row for row in rows if side not in self.join.watermarks or row[time] is None or row[time] > late_ms * 1_000
        ]

    def arrive(self, side: Side, row: Row, eviction_ms: int) -> list[Pair]:
        """Join a row with the stored rows of the other side, and store it."""
        new, other, emitted = _Kept(row), self.other(side), list[Pair]()
        for kept in self.kept[other].get(self.key(side, row), ()):
            left, right = (new, kept) if side == "left" else (kept, new)
            if self.join.matches(left.row, right.row):
                if self.join.join != "left_semi":
                    emitted.append((left.row, right.row))
                elif not left.joined:
                    emitted.append((left.row, None))
                left.joined = right.joined = True
        if self.keeps_evicted(side) or not self.is_old(side, row, eviction_ms):
            self.kept[side].setdefault(self.key(side, row), []).append(new)
        return emitted

    def keeps_evicted(self, side: Side) -> bool:
        """Return whether a row is stored although the same batch evicts it."""
        dialect = self.join.dialect
        return dialect.keeps_evicted and (side == "left" or self.join.order == LEFT_FIRST or dialect.semi_keeps_evicted)

    def evict(self, side: Side, eviction_ms: int) -> list[Pair]:
        """Forget the rows that can't be joined any more; return the rows that an outer join emits without a partner."""
        outer, emitted = self.join.join in (side, "full"), list[Pair]()
        for key, rows in [*self.kept[side].items()]:
            old = [kept for kept in rows if self.is_old(side, kept.row, eviction_ms)]
            if old:
                self.kept[side][key] = [kept for kept in rows if kept not in old]
                alone = [kept.row for kept in old if outer and not kept.joined]
                emitted += [(row, None) if side == "left" else (None, row) for row in alone]
        return emitted

    def is_old(self, side: Side, row: Row, eviction_ms: int) -> bool:
        """Return whether a row can't be joined any more after the batch with this watermark."""
        until_ms, time_us = self.join.state_watermark_ms(side, eviction_ms), row.get(self.join.times[side == "right"])
        return until_ms is not None and time_us is not None and time_us <= until_ms * 1_000

    def key(self, side: Side, row: Row) -> tuple[Any, ...]:
        """Return the key of a row."""
        return tuple(row[column] for column in self.join.keys[side == "right"])

    def other(self, side: Side) -> Side:
        """Return the other side of the join: `right` for `left`, and `left` for `right`."""
        return "right" if side == "left" else "left"

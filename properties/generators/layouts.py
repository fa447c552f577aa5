"""A layout converts a cohort's records to columns of other types, as in users' jobs, and converts the output back.

Without a layout, `pack` stores a cohort's keys as text, its times as bigint, and its values as JSON text. A layout uses
other types, and converts the output back for the comparison with the reference's output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...reference.core.records import Record, Window
from ...reference.definitions.changes import OPEN
from ..registration.bindings import FOREIGN_KEY, KEY, ORDER, TIMESTAMP, Columns, Field
from ..registration.key_space import WATERMARK_DRIVER, owner, prefixed_key
from .cohorts import Cohort
from .values import FRACTIONS, OF_32_BITS, OF_64_BITS

Parts: TypeAlias = tuple[Any, ...]
"""The values of a key, one for each key column."""
NULL_KEY = "∅ no key"
"""The text that replaces a null key in a history's key space."""
MICROSECONDS = 617
"""The factor for the microseconds of rows' times: its multiples modulo 1,000 reach every number below 1,000."""
OTHER_GROUPS, OTHER_OPTIONS, OTHER_KEYS = "another state_groups", "other options", "keys of another type"
DECLARATIONS = (OTHER_GROUPS, OTHER_OPTIONS, OTHER_KEYS)
"""The changes of a declaration after which a query must not continue from its checkpoint."""
NOW_MS = 1_700_000_000_000
"""A time in November 2023 (ms since 1970), which needs more than 32 bits."""


@dataclass(frozen=True)
class KeyParts:
    """The columns of a key, and the encoding of histories' keys in these columns.

    Attributes:
        types: The columns' types.
        of: The function that returns a key's values, given the history's index, the key's rank among the cohort's keys,
            and the number of keys.
        of_driver: The values of the reserved key.
        index: The function that returns the index of the history to which an unknown key seems to belong, given the
            key's values.
    """

    types: tuple[pa.DataType, ...]
    of: Callable[[int, int, int], Parts]
    of_driver: Parts
    index: Callable[[Parts], int]

    def null(self, index: int | None, at: int) -> Parts:
        """Return the values of a null key: the first, the last or all are null, as the record's time (ms) decides.

        The choice depends only on the record's time, so that it is the same when the history runs alone.
        """
        if index is None or at % 3 == 2:
            return (None,) * len(self.types)
        parts = list(self.of(index, 0, 1))
        parts[0 if at % 3 == 0 else -1] = None
        return tuple(parts)

    def owner(self, parts: Parts, histories: int) -> int:
        """Return the index of the history to which an unknown key seems to belong; 0 if the key fits no history."""
        try:
            index = self.index(parts)
        except (ValueError, TypeError, AttributeError):
            return 0
        return index if 0 <= index < histories else 0


@dataclass(frozen=True)
class ValueType:
    """A column's type, and a function that converts a value's rank among the cohort's values to the value in the
    column.
    """

    type: pa.DataType
    of: Callable[[int], Any]


@dataclass(frozen=True)
class Layout:
    """The types of a cohort's columns, and further options of the operator's call.

    Attributes:
        name: The layout's name in reports.
        keys: The columns of keys, foreign keys and groups.
        value: The type of values of any kind.
        member: The type of values that become list members.
        number: The type of whole-number values.
        kind: The name of the kind of drawn values, if the operator accepts it.
        time: The type of event times; `timestamp` and `timestamp_ntz` include microseconds.
        order: The type of the order column; None without an order column.
        time_zone: The time zone of the session.
        reports_dropped: Whether the operator's output also contains dropped rows.
        is_batch: Whether all records are in a single batch DataFrame instead of a stream.
        has_null_keys: Whether some records have a null key, in which one or all key columns are null.
        starts_at_ms: The start (ms since 1970) of histories whose operator doesn't depend on the clock; for a batch
            DataFrame, of all histories, except those with windows that start in 1970.
        starts_at_ms_by_clock: The start (ms since 1970) of histories to which `start_ms` doesn't apply; None: histories
            start around 1970; the clock doesn't move before 1970.
        state_groups: The number of groups of keys in the state; None for a separate state of each key.
        partitions: The number of shuffle partitions of the query; None for the session's setting.
        crash_in: The batch in which the query crashes between output and commit; the query then restarts from its
            checkpoint, and repeats the batch. None for no crash.
        reads_state: Whether `read_state` reads the state at the end.
        starts_otherwise: The changed declarations with which the query restarts at the end, and with which the operator
            must refuse to continue.
    """

    name: str
    keys: KeyParts
    value: ValueType
    member: ValueType
    number: pa.DataType
    kind: str
    time: Literal["timestamp", "timestamp_ntz", "bigint"]
    order: Literal["bigint", "struct"] | None
    time_zone: str
    reports_dropped: bool
    is_batch: bool
    has_null_keys: bool
    starts_at_ms: int
    starts_at_ms_by_clock: int | None
    state_groups: int | None = None
    partitions: int | None = None
    crash_in: int | None = None
    reads_state: bool = False
    starts_otherwise: Sequence[str] = ()

    @property
    def columns(self) -> Columns:
        """The columns' names for the call of the operator."""
        parts = ("",) if len(self.keys.types) == 1 else tuple(f"_{n}" for n in range(len(self.keys.types)))
        return Columns(parts, None if self.order is None else ORDER, self.reports_dropped)


def _texts_around_a_separator(index: int, rank: int, count: int) -> Parts:
    parts = [f"ñ\U0001f600{number}" for number in range(count + 1)]
    return f"{index:05d}|{'|'.join(parts[: rank + 1])}", "|".join(parts[rank + 1 :])


BEYOND_DOUBLES = 2**53 + 1
"""A number from which on doubles can't represent all integers."""
LAST_MICROSECOND = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)


def _struct(rank: int) -> dict[str, Any]:
    """Return a struct with fields of many types, derived from a rank; every third rank includes nulls, and rank 0 also
    empty values.
    """
    at, has_nulls = LAST_MICROSECOND + timedelta(microseconds=rank), rank % 3 == 0
    parts = [{"part": rank, "at": at}, None, {"part": None, "at": None}]
    return {
        "id": 2**53 + rank,
        "name": "ä|\n" * rank,
        "share": rank / 3,
        "half": rank / 2,
        "is_even": rank % 2 == 0,
        "numbers": list(range(-rank, rank)),
        "inner": None if has_nulls else {"day": date(1969, 12, 31) + timedelta(rank), "parts": parts},
        "nothing": {"day": None, "parts": None},
        "at": None if has_nulls else at,
        "local": (at + timedelta(days=rank)).replace(tzinfo=None),
        "amount": None if has_nulls else Decimal(rank - 2).scaleb(-18) + BEYOND_DOUBLES,
        "binary": bytes([0, 192, 255])[: rank % 4],
        "counts": [("z", rank), ("a", None)][: rank % 3],
        "days": None if has_nulls else [(date(1970, 1, 1) + timedelta(rank), [Decimal(rank).scaleb(-2), None])],
        "grid": [[rank], None, []],
    }


_PART = pa.list_(pa.struct([("part", pa.int32()), ("at", pa.timestamp("us", "UTC"))]))
_INNER = pa.struct([("day", pa.date32()), ("parts", _PART)])
STRUCT = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("share", pa.float64()),
        ("half", pa.float32()),
        ("is_even", pa.bool_()),
        ("numbers", pa.list_(pa.int32())),
        ("inner", _INNER),
        ("nothing", _INNER),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("amount", pa.decimal128(38, 18)),
        ("binary", pa.binary()),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("days", pa.map_(pa.date32(), pa.list_(pa.decimal128(4, 2)))),
        ("grid", pa.list_(pa.list_(pa.int32()))),
    ]
)
"""The type of the structs that `_struct` returns."""

LAYOUTS = (
    Layout(
        name="a key of two columns of text",
        keys=KeyParts(
            (pa.string(), pa.string()),
            _texts_around_a_separator,
            (WATERMARK_DRIVER, ""),
            lambda parts: int(parts[0].split("|")[0]),
        ),
        value=ValueType(STRUCT, _struct),
        member=ValueType(pa.string(), lambda rank: "ä|" * rank),
        number=pa.int64(),
        kind=FRACTIONS,
        time="timestamp",
        order="bigint",
        time_zone="America/St_Johns",
        reports_dropped=True,
        is_batch=False,
        has_null_keys=True,
        starts_at_ms=-2_200_000_000_000,
        starts_at_ms_by_clock=NOW_MS,
        state_groups=16,
        partitions=2,
        crash_in=1,
        reads_state=True,
    ),
    Layout(
        name="a bigint key, no order",
        keys=KeyParts(
            (pa.int64(),),
            lambda index, rank, count: ((BEYOND_DOUBLES + (index << 16) + rank) * (-1 if index % 2 else 1),),
            (0,),
            lambda parts: (abs(parts[0]) - BEYOND_DOUBLES) >> 16,
        ),
        value=ValueType(pa.list_(pa.int32()), lambda rank: list(range(-rank, rank))),
        member=ValueType(pa.int64(), lambda rank: BEYOND_DOUBLES - rank),
        number=pa.int32(),
        kind=OF_32_BITS,
        time="bigint",
        order=None,
        time_zone="Asia/Kathmandu",
        reports_dropped=False,
        is_batch=False,
        has_null_keys=False,
        starts_at_ms=NOW_MS,
        starts_at_ms_by_clock=None,
        partitions=1,
        starts_otherwise=DECLARATIONS,
    ),
    Layout(
        name="a batch DataFrame",
        keys=KeyParts(
            (pa.int32(), pa.timestamp("us", "UTC"), pa.bool_(), pa.float64()),
            lambda index, rank, count: (
                index - 20,
                LAST_MICROSECOND + timedelta(microseconds=rank // 2),
                rank % 2 > 0,
                math.nan if rank % 3 == 1 else 0.0,
            ),
            (2**31 - 1, LAST_MICROSECOND, False, 0.0),
            lambda parts: int(parts[0]) + 20,
        ),
        value=ValueType(pa.list_(STRUCT), lambda rank: [_struct(rank), None, _struct(0)][: rank + 1]),
        member=ValueType(pa.float64(), lambda rank: rank / 3 - 1),
        number=pa.float64(),
        kind=OF_64_BITS,
        time="timestamp_ntz",
        order="struct",
        time_zone="America/St_Johns",
        reports_dropped=True,
        is_batch=True,
        has_null_keys=True,
        starts_at_ms=-8_640_000_000,
        starts_at_ms_by_clock=NOW_MS,
    ),
)
"""The layouts in which every operator runs. No history crosses a clock change of its layout's time zone."""


_ORDER = pa.struct([("epoch", pa.int32()), ("offset", pa.struct([("at", pa.int64())]))])


class Typed:
    """The records of a cohort in the columns of a layout.

    Args:
        layout: The layout.
        cohort: The cohort.
        fields: The additional columns.
        tables: The cohort's tables from `pack`.
        starts_at_ms: The start of the cohort's times (ms since 1970).
    """

    def __init__(
        self,
        layout: Layout,
        cohort: Cohort,
        fields: Sequence[Field],
        tables: Sequence[pa.Table],
        starts_at_ms: int,
    ) -> None:
        self.layout, self.cohort, self.starts_at_ms = layout, cohort, starts_at_ms
        self.holds = {field.name: field.holds for field in fields} | {KEY: "key"}
        self.packed = tables
        self.times: list[int] = [at for table in tables for at in table.column(TIMESTAMP).to_pylist()]
        self.owners: list[int | None] = []
        self.numbers: list[int | None] = []
        seen = [0] * len(cohort.histories)
        before = 0
        for number, clock in enumerate(cohort.schedule):
            first = len(self.owners)
            self.owners.append(None)
            self.numbers.append(None)
            for index, history in enumerate(cohort.histories):
                records = [line for line in history.batches[number] if isinstance(line, Record)]
                # Let a record alone move the clock, so that an operator whose clock ignores the record fails.
                if any(one.key is not None and one.timestamp == clock for one in records):
                    self.times[first] = before
                count = len(records)
                self.owners += [index] * count
                self.numbers += range(seen[index], seen[index] + count)
                seen[index] += count
            before = clock

    def _texts(self, *holds: str) -> list[str]:
        columns = [table.column(name) for table in self.packed for name, one in self.holds.items() if one in holds]
        return sorted({text for column in columns for text in column.to_pylist() if text is not None})

    @cached_property
    def _parts(self) -> Mapping[str, Parts]:
        """The values in the key columns for each key of the cohort."""
        owned = [found for text in self._texts("key") if (found := owner(text)) is not None]
        ranks = {own: rank for rank, own in enumerate(sorted({own for _, own in owned}))}
        of = self.layout.keys.of
        parts = {prefixed_key(index, own): of(index, ranks[own], len(ranks)) for index, own in owned}
        return {**parts, WATERMARK_DRIVER: self.layout.keys.of_driver}

    @cached_property
    def keys(self) -> Mapping[Parts, str]:
        """The keys of the cohort, by the values in the key columns."""
        return {parts: key for key, parts in self._parts.items()}

    @cached_property
    def _values(self) -> Mapping[str, Mapping[str, Any]]:
        kinds = {"value": self.layout.value, "member": self.layout.member}
        return {
            holds: {text: kind.of(rank) for rank, text in enumerate(self._texts(holds))}
            for holds, kind in kinds.items()
        }

    @cached_property
    def _read(self) -> Mapping[str, str]:
        return {repr(_in_utc(value)): text for of in self._values.values() for text, value in of.items()}

    def tables(self) -> list[pa.Table]:
        """Return the records, as a table for each batch."""
        firsts = accumulate((table.num_rows for table in self.packed), initial=0)
        return [self._typed(table, first) for table, first in zip(self.packed, firsts, strict=False)]

    def time_of(self, place: int) -> int | None:
        """Return the time (ms since 1970) of the row at an index of the cohort's order of arrival."""
        return self.times[place] + self.starts_at_ms if 0 <= place < len(self.times) else None

    def _typed(self, table: pa.Table, first: int) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        rows = slice(first, first + table.num_rows)
        for name in table.column_names:
            column, holds = table.column(name).combine_chunks(), self.holds.get(name)
            if holds == "key":
                keys = [
                    self.layout.keys.null(index, at) if key is None else self._parts[key]
                    for key, index, at in zip(column.to_pylist(), self.owners[rows], self.times[rows], strict=True)
                ]
                names = self.layout.columns.of(name)
                for one, kind, parts in zip(names, self.layout.keys.types, zip(*keys, strict=True), strict=True):
                    columns[one] = pa.array(_in_many_bits(parts), kind)
            elif name == TIMESTAMP:
                columns[name] = self._timestamps(rows)
            elif name == ORDER and self.layout.order is None:
                continue
            elif name == ORDER and self.layout.order == "struct":
                columns[name] = pa.array([{"epoch": None, "offset": {"at": at}} for at in column.to_pylist()], _ORDER)
            elif holds is not None and holds in self._values:
                typed = self._values[holds]
                kind = self.layout.value.type if holds == "value" else self.layout.member.type
                columns[name] = pa.array([None if one is None else typed[one] for one in column.to_pylist()], kind)
            else:
                columns[name] = _cast_where_it_fits(column, self.layout.number) if holds == "number" else column
        return pa.table(columns)

    def _timestamps(self, rows: slice) -> pa.Array:
        shifted = [at + self.starts_at_ms for at in self.times[rows]]
        if self.layout.time == "bigint":
            return pa.array(shifted, pa.int64())
        exact = [1000 * at + row * MICROSECONDS % 1000 for row, at in enumerate(shifted, rows.start)]
        if self.layout.time == "timestamp":
            return pa.array(exact, pa.timestamp("us", "UTC"))
        return pc.local_timestamp(pa.array(exact, pa.timestamp("us", self.layout.time_zone)))

    def causes(self, table: pa.Table) -> list[int | None]:
        """Return, for each change, the index of the row that caused the change, in the cohort's order of arrival; None:
        no row caused it.
        """
        causes = table.column("cause").to_pylist()
        if self.layout.order == "struct":
            causes = [None if cause is None else cause["offset"]["at"] for cause in causes]
        return list(causes)

    def number_of(self, index: int, cause: int | None) -> int | None:
        """Convert a record's index in the cohort to its index in a history; return a negative number if the record is
        from another history.
        """
        if cause is None:
            return None
        is_own = 0 <= cause < len(self.owners) and self.owners[cause] == index
        return self.numbers[cause] if is_own else -1 - abs(cause)

    def read(self, table: pa.Table) -> pa.Table:
        """Return the output with the cohort's keys; each null key becomes the key `NULL_KEY` of the history that
        emitted it.
        """
        causes = self.causes(table)
        for name in (KEY, FOREIGN_KEY):
            names = self.layout.columns.of(name)
            if not set(names) <= set(table.column_names):
                continue
            parts = zip(*(table.column(one).to_pylist() for one in names), strict=True)
            keys = [self._key(name, one, cause) for one, cause in zip(parts, causes, strict=True)]
            rest = [one for one in table.column_names if one not in names]
            table = table.select(rest).append_column(name, pa.array(keys, pa.string()))
        return table

    def _key(self, name: str, parts: Parts, cause: int | None) -> str | None:
        parts = tuple(math.nan if part != part else part for part in parts)  # a dict finds only the same NaN object
        if None not in parts:
            seems = self.layout.keys.owner(parts, len(self.cohort.histories))
            return self.keys.get(parts) or prefixed_key(seems, repr(parts))
        if name != KEY:
            return None
        # Find the history of a null key by the row that caused the change.
        index = None if cause is None or not 0 <= cause < len(self.owners) else self.owners[cause]
        if cause is None or index is None:
            return WATERMARK_DRIVER
        own = [self.layout.keys.null(index, self.times[cause])]
        if [*self.holds.values()].count("key") > 1:  # a second stage may report a dropped record without its key
            own.append((None,) * len(parts))
        return prefixed_key(index, NULL_KEY if parts in own else repr(parts))

    def read_value(self, value: Any) -> Any:
        """Return an emitted value with the layout's values converted back to JSON texts."""
        text = self._read.get(repr(_in_utc(value)))
        if text is not None:
            return text
        if isinstance(value, dict):
            return {name: self.read_value(member) for name, member in value.items()}
        return [self.read_value(member) for member in value] if isinstance(value, list) else value


def moved(window: Window, by_ms: int) -> Window:
    """Return a window moved by some time (ms); `OPEN`, the end of a current version, stays."""
    start, end = window
    return start + by_ms, end if end == OPEN else end + by_ms


def _in_utc(value: Any) -> Any:
    """Return a value with its timestamps in UTC, and its decimals without trailing zeros."""
    match value:
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
        case Decimal():
            return value.normalize()
        case dict():
            return {name: _in_utc(member) for name, member in value.items()}
        case list() | tuple():
            return type(value)(map(_in_utc, value))
    return value


def _in_many_bits(parts: Sequence[Any]) -> Sequence[Any]:
    """Return a key column with every second float negated; the floats are zeros and NaNs, which stay equal keys."""
    return [-part if isinstance(part, float) and row % 2 else part for row, part in enumerate(parts)]


def _cast_where_it_fits(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return numbers.cast(kind)
    except pa.ArrowInvalid:
        return numbers

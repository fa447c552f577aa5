"""An operator's input and output: `Pack` packs rows by group before the shuffle, `Unpack` unpacks changes into columns.

Spark passes record batches to these functions (`mapInArrow`), so packing or unpacking a row costs a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from msgspec import Raw
from pyspark.sql import types as T

from .codec import EVERY_LEVEL, collect_seldom, column_of, decoder, encode, key_decoder, listed, python_type
from .processor import PACKED

GROUP, SIDE, CLOCK = "state_group", "side", "clock"
"""The columns of packed rows beside `PACKED`: the group of keys, the number of the input, the clock (ms)."""
ROWS_AT_ONCE = 100_000
"""Rows are packed in blocks of at least this size, because larger blocks mean fewer binaries per group."""
BEFORE_ANY = -(2**63)


def packed_schema(timed: bool) -> T.StructType:
    """Return the columns of packed rows; only a timed operator's rows have a clock."""
    packed = T.StructType().add(GROUP, "integer").add(SIDE, "integer").add(PACKED, "binary")
    return packed.add(CLOCK, "long") if timed else packed


@dataclass(frozen=True)
class Pack:
    """Packs the rows of an input: each group of keys becomes one binary of columns (keys, timestamps, orders, values).

    Attributes:
        side: The number of the input.
        keys: The types of the key's columns.
        order: The type of the order of arrival.
        value: The type of the values.
        groups: The number of groups of keys.
        timed: Whether the rows move the clock.
        as_tuples: The number of levels of structs that become tuples for the logic.
    """

    side: int
    keys: Sequence[T.DataType]
    order: T.DataType
    value: T.DataType
    groups: int
    timed: bool
    as_tuples: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack record batches: `key_0` and so on, `timestamp`, `order`, `value`, and `clock` if rows move the clock."""
        collect_seldom()
        for batch in at_once(batches):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            parts = [listed(columns[f"key_{number}"], kind) for number, kind in enumerate(self.keys)]
            keys = [encode(key) for key in zip(*parts, strict=True)]
            rows = (
                columns["timestamp"].to_pylist(),
                listed(columns["order"], self.order, EVERY_LEVEL),
                listed(columns["value"], self.value, self.as_tuples),
            )
            found = np.fromiter(map(crc32, keys), np.int64, len(keys)) % self.groups
            yield grouped(found, (keys, *rows), self.side, columns[CLOCK] if self.timed else None)


@dataclass(frozen=True)
class Regrouping:
    """Regroups the messages of a stage by their receivers' keys."""

    groups: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Group record batches of packed messages."""
        collect_seldom()
        read = decoder(list[int], list[bytes], list[int], list[Raw], list[Raw])
        for batch in batches:
            columns: tuple[list[Any], ...] = ([], [], [], [], [])
            for packed in batch.column(0).to_pylist():
                for column, more in zip(columns, read.decode(packed), strict=True):
                    column += more
            hashes, *messages = columns
            if hashes:
                yield grouped(np.array(hashes) % self.groups, messages, 0, None)


@dataclass(frozen=True)
class Unpack:
    """Unpacks changes into columns: the key's columns, start, end, value, timestamp, change, reason, cause, phase, at,
    ordinal.

    Attributes:
        columns: The columns' names and types.
        keys: The number of the key's columns.
    """

    columns: Sequence[tuple[str, T.DataType]]
    keys: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Unpack record batches of packed changes."""
        collect_seldom()
        names, kinds = zip(*self.columns, strict=True)
        read_key = key_decoder(list(kinds[: self.keys])).decode
        read = decoder(list[bytes], *(list[python_type(kind)] for kind in kinds[self.keys : -1]))  # type: ignore[misc]
        for batch in batches:
            columns: list[list[Any]] = [[] for _ in kinds[self.keys - 1 :]]
            for packed in batch.column(0).to_pylist():
                found = read.decode(packed)
                for column, more in zip(columns, (*found, range(len(found[0]))), strict=True):
                    column += more
            keys, *rest = columns
            parts = zip(*map(read_key, keys), strict=True) if keys else [()] * self.keys
            arrays = [column_of(list(one), kind) for one, kind in zip([*parts, *rest], kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=list(names))


def at_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Concatenate record batches into batches of at least `ROWS_AT_ONCE` rows; the last may be smaller."""
    gathered: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        gathered.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_AT_ONCE:
            yield _together(gathered)
            gathered, rows = [], 0
    if rows:
        yield _together(gathered)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    # not pa.concat_batches, which PyArrow has only from version 19 on
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def grouped(
    groups: np.ndarray[Any, Any], columns: Sequence[list[Any]], side: int, clock: pa.Array | None
) -> pa.RecordBatch:
    """Pack columns of rows: one binary for each group, with the latest clock of its rows."""
    rows = np.argsort(groups, kind="stable")
    found, starts = np.unique(groups[rows], return_index=True)
    if len(rows) > 1:
        pick = itemgetter(*rows.tolist())
        columns = [pick(column) for column in columns]
    ends = [*starts[1:].tolist(), len(rows)]
    packed = [
        encode([column[start:end] for column in columns]) for start, end in zip(starts.tolist(), ends, strict=True)
    ]
    arrays = [
        pa.array(found, pa.int32()),
        pa.array([side] * len(found), pa.int32()),
        pa.array(packed, pa.binary()),
    ]
    if clock is not None:
        latest = np.maximum.reduceat(clock.fill_null(BEFORE_ANY).to_numpy()[rows], starts)
        arrays.append(pa.array(latest, pa.int64(), mask=latest == BEFORE_ANY))
    return pa.RecordBatch.from_arrays(arrays, names=packed_schema(clock is not None).names)

"""The two ends of an operator, on tasks of any few rows: each row travels once, to the group of its key, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest
from memory_runtime import decode
from pyspark.sql import types as T
from streamproof.spark_impl.runtime import ends
from streamproof.spark_impl.runtime.codec import encode
from streamproof.spark_impl.runtime.ends import CLOCK, GROUP, SIDE, Pack, Regrouping, Unpack
from streamproof.spark_impl.runtime.processor import PACKED

GROUPS = 3
TASKS = [sizes for count in range(4) for sizes in product(range(4), repeat=count)]
"""The sizes of the record batches of a task."""


@pytest.fixture(params=[1, 2, 3, 100], ids="{} rows at once".format)
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ends, "ROWS_AT_ONCE", request.param)
    return int(request.param)


def slices(sizes: Sequence[int]) -> list[tuple[int, int]]:
    return [*zip((sum(sizes[:at]) for at in range(len(sizes))), sizes, strict=True)]


@pytest.mark.usefixtures("at_once")
def test_each_row_is_packed_once_for_the_group_of_its_key_in_order_with_its_latest_clock() -> None:
    pack = Pack(1, [T.StringType()], T.LongType(), T.StringType(), GROUPS, timed=True, as_tuples=0)
    for sizes in TASKS:
        count = sum(sizes)
        names = [f"k{number * 7 % 4}" for number in range(count)]
        values = [None if number % 2 else f"v{number}" for number in range(count)]
        clocks = [None if number % 3 == 1 else number * 5 % 7 for number in range(count)]
        columns = {
            "key_0": pa.array(names, pa.string()),
            "timestamp": pa.array(range(count), pa.int64()),
            "order": pa.array([-number for number in range(count)], pa.int64()),
            "value": pa.array(values, pa.string()),
            CLOCK: pa.array(clocks, pa.int64()),
        }
        rows = pa.RecordBatch.from_pydict(columns)
        found: dict[int, list[tuple[str, int, int, str | None]]] = {group: [] for group in range(GROUPS)}
        for group, side, packed, clock in _rows(pack([rows.slice(*one) for one in slices(sizes)])):
            keys, *rest = decode(packed)
            at = [order * -1 for order in rest[1]]
            assert side == 1
            assert clock == max((one for number in at if (one := clocks[number]) is not None), default=None)
            found[group] += zip((decode(key)[0] for key in keys), *rest, strict=True)
        wanted: dict[int, list[tuple[str, int, int, str | None]]] = {group: [] for group in range(GROUPS)}
        for number, name in enumerate(names):
            wanted[crc32(encode((name,))) % GROUPS].append((name, number, -number, values[number]))
        assert found == wanted, sizes


def test_each_message_goes_once_to_the_group_of_its_receiver() -> None:
    for sizes in TASKS:
        count = sum(sizes)
        messages = [(7 * number, b"k%d" % number, number, [number], [None, number]) for number in range(count)]
        own = [messages[start : start + size] for start, size in slices(sizes)]
        packed = [encode([*zip(*some, strict=True)]) if some else encode([()] * 5) for some in own]
        routed = Regrouping(GROUPS)([pa.RecordBatch.from_pydict({PACKED: pa.array(packed, pa.binary())})])
        found = [(group, *one) for group, _, more in _rows(routed) for one in zip(*decode(more), strict=True)]
        wanted = [(hashed % GROUPS, *message) for hashed, *message in messages]
        assert found == sorted(wanted, key=lambda one: (one[0], one[2])), sizes


def test_each_change_is_unpacked_once_with_its_place_in_its_group() -> None:
    kinds = [T.StringType(), T.LongType(), T.LongType(), T.StringType(), T.LongType(), T.StringType(), T.StringType()]
    columns = [(f"{at}", kind) for at, kind in enumerate([*kinds, T.LongType(), T.IntegerType(), T.LongType()])]
    unpack = Unpack([*columns, ("ordinal", T.IntegerType())], 1)
    for sizes in TASKS:
        changes = [
            [(encode((f"k{at}",)), at, None, f"v{size}", at, "update", None, at, 0, at) for at in range(size)]
            for size in sizes
        ]
        packed = [encode([*zip(*group, strict=True)]) for group in changes if group]
        found = unpack([pa.RecordBatch.from_pydict({PACKED: pa.array(packed, pa.binary())})])
        wanted = [(decode(key)[0], *rest, at) for group in changes for at, (key, *rest) in enumerate(group)]
        assert [tuple(row.values()) for batch in found for row in batch.to_pylist()] == wanted


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    names = (GROUP, SIDE, PACKED, CLOCK)
    rows = chain.from_iterable(batch.to_pylist() for batch in batches)
    return (tuple(row[name] for name in names if name in row) for row in rows)

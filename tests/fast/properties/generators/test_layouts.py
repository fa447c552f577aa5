"""Layouts of columns: what `Typed` makes of a cohort can be read back, and is what the layout says."""

from __future__ import annotations

import math
import struct
from datetime import UTC
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from streamproof.properties.checking.samples import columns_sample
from streamproof.properties.generators.cohorts import Cohort, cohorts_of, pack
from streamproof.properties.generators.layouts import LAYOUTS, NULL_KEY, Layout, Typed
from streamproof.properties.laws.on_spark.columns import InLayout
from streamproof.properties.registration.bindings import KEY, ORDER, TIMESTAMP, VALUE
from streamproof.properties.registration.key_space import WATERMARK_DRIVER
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.spark.witness import binding_of
from streamproof.reference.core.history import History, parse_history

TEXTS, BIGINT, BATCH = LAYOUTS
LONG_AGO = -10_000_000
"""About three hours before 1970 (ms)."""


def typed(operator: str, profile: str, layout: Layout, count: int = 6) -> Typed:
    registration = registration_of(operator)
    asked = InLayout(layout, f"{profile}, {layout.name}", registration.profiles[profile], layout.kind)
    drawn = columns_sample(registration, asked, count, 0).histories
    ((cohort, _),) = cohorts_of(drawn, null_keys_alone=False)
    return of_cohort(cohort, layout)


def of_cohort(cohort: Cohort, layout: Layout) -> Typed:
    definition = registration_of(cohort.operator).declare(cohort.options)
    fields = binding_of(cohort.operator).fields(definition, [one for each in cohort.histories for one in each.records])
    return Typed(layout, cohort, fields, pack(cohort, fields), LONG_AGO)


def of_one(history: History, layout: Layout) -> pa.Table:
    """The rows of a history of one batch, after that of the reserved key."""
    ((cohort, _),) = cohorts_of([history], null_keys_alone=False)
    (table,) = of_cohort(cohort, layout).tables()
    return table.slice(1)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@pytest.mark.parametrize(("operator", "profile"), [("table_table_join", "outer"), ("table_aggregate", "list")])
def test_keys_and_values_are_read_back(layout: Layout, operator: str, profile: str) -> None:
    one = typed(operator, profile, layout)
    packed, tables = pa.concat_tables(one.packed), pa.concat_tables(one.tables())
    causes = tables.column(ORDER) if layout.order else pa.nulls(tables.num_rows)
    read = one.read(tables.append_column("cause", causes)).column(KEY).to_pylist()
    owned = zip(packed.column(KEY).to_pylist(), one.owners, strict=True)
    assert read == [f"{owner:05d}|{NULL_KEY}" if key is None else key for key, owner in owned]
    assert (NULL_KEY in "".join(read)) == layout.has_null_keys
    texts, values = packed.column(VALUE).to_pylist(), tables.column(VALUE).to_pylist()
    rows = [number for number, key in enumerate(read) if key != WATERMARK_DRIVER]
    assert [one.read_value(values[number]) for number in rows] == [texts[number] for number in rows]
    assert one.read_value({"left": values[rows[0]], "right": None})["left"] == texts[rows[0]]


def test_text_keys_of_a_history_differ_in_nothing_but_where_a_separator_stands() -> None:
    table = pa.concat_tables(typed("table_table_join", "outer", TEXTS, 1).tables())
    keys = set(zip(*(table.column(f"{KEY}_{part}").to_pylist() for part in (0, 1)), strict=True))
    whole = {key for key in keys if None not in key and key[0] != WATERMARK_DRIVER}
    assert len(whole) == 3
    assert len({"|".join(key) for key in whole}) == 1


def test_a_null_key_has_its_null_in_the_first_part_in_the_last_or_in_all() -> None:
    for layout in (TEXTS, BATCH):
        one = typed("table_table_join", "outer", layout, 12)
        table = pa.concat_tables(one.tables())
        keys = zip(*(table.column(name).to_pylist() for name in layout.columns.of(KEY)), strict=True)
        nulls = {tuple(part is None for part in key) for key in keys if None in key}
        width = len(layout.keys.types)
        assert nulls == {(True, *[False] * (width - 1)), (*[False] * (width - 1), True), (True,) * width}


def ranges(*timestamps: int, value: int = 1) -> History:
    lines = [f'{{"input": "events", "key": "a", "value": {value}, "timestamp": {at}}}' for at in timestamps]
    header = '{"operator": "range_aggregate", "options": {"preceding_ms": 1, "aggregate": "sum"}, "clock": "batch"}'
    return parse_history("\n".join([header, *lines]), "h")


def test_a_row_alone_moves_the_clock_one_of_each_input_one_without_a_value_and_hardly_a_heartbeat() -> None:
    moved: set[tuple[str, bool]] = set()
    last: set[bool] = set()
    for layout in (TEXTS, BIGINT):
        one = typed("stream_stream_join", "inner", layout, 12)
        for clock, table, packed in zip(one.cohort.schedule, one.tables(), one.packed, strict=True):
            keys = zip(*(table.column(name).to_pylist() for name in layout.columns.of(KEY)), strict=True)
            times = packed.column(TIMESTAMP).to_pylist()
            (at,) = (row for row, key in enumerate(keys) if row and None not in key and times[row] == clock)
            moved.add((packed.column("input")[at].as_py(), packed.column(VALUE)[at].as_py() is None))
            last.add(at == len(times) - 1)
        driven = [time for time, owner in zip(one.times, one.owners, strict=True) if owner is None]
        assert driven == [0, *one.cohort.schedule[:-1]]
    assert {side for side, _ in moved} == {"left", "right"}
    assert {without for _, without in moved} == {True, False}
    assert False in last


def test_a_key_of_a_batch_dataframe_has_zeros_and_nans_of_many_bits() -> None:
    keys = pa.concat_tables(typed("table_table_join", "outer", BATCH).tables()).column(f"{KEY}_3")
    bits = {struct.pack("<d", one).hex() for one in keys.to_pylist() if one is not None}
    assert bits == {struct.pack("<d", one).hex() for one in (0.0, -0.0, math.nan, -math.nan)}


@pytest.mark.parametrize("layout", [TEXTS, BATCH], ids=lambda layout: layout.name)
def test_times_have_microseconds_and_lie_before_1970(layout: Layout) -> None:
    times = of_one(ranges(0, 7, 2), layout).column(TIMESTAMP).to_pylist()
    if layout is BATCH:
        assert [at.tzinfo for at in times] == [None] * 3
        times = [at.replace(tzinfo=ZoneInfo(layout.time_zone)) for at in times]
    assert [at.astimezone(UTC).strftime("%F %T.%f") for at in times] == [
        "1969-12-31 21:13:20.000617",
        "1969-12-31 21:13:20.007234",
        "1969-12-31 21:13:20.002851",
    ]


def test_whole_numbers_have_the_layout_s_type_where_they_fit() -> None:
    assert of_one(ranges(0), BIGINT).schema.field(VALUE).type == pa.int32()
    assert of_one(ranges(0, value=2**31), BIGINT).schema.field(VALUE).type == pa.int64()
    assert of_one(ranges(0), BATCH).schema.field(VALUE).type == pa.float64()


def test_a_row_s_place_in_the_order_of_arrival_is_read_as_a_record_of_its_history() -> None:
    one = typed("table_table_join", "outer", TEXTS, 2)
    places = [place for place, owner in enumerate(one.owners) if owner == 1]
    assert [one.number_of(1, place) for place in places] == list(range(len(one.cohort.histories[1].records)))
    assert one.number_of(1, None) is None
    assert all((one.number_of(0, place) or 0) < 0 for place in [*places, -5, len(one.owners)])

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from history_strategies import histories
from hypothesis import given, settings
from hypothesis import strategies as st
from streamproof.properties.generators.cohorts import (
    WATERMARK_DRIVER,
    Cohort,
    clock_schedule,
    cohorts_of,
    moved_by_one_each,
    moved_by_records,
    pack,
    record_batches,
    unpack,
    with_clock_advances,
)
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.registration.bindings import Field
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, History, Line
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Dropped, Record

QUIET = settings(deadline=None, max_examples=20, derandomize=True, database=None)
SCHEDULE = (20, 45, 45, 90)
SETTINGS = HistorySettings("session_windows", {"gap_ms": 10, "grace_ms": 5}, SCHEDULE)


def record(timestamp: int, key: str | None = "a", value: Any = 1) -> Record:
    return Record("events", key, value, timestamp)


def history(*lines: Line, **options: Any) -> History:
    return History("session_windows", {"gap_ms": 10, **options}, lines, "batch")


def only_cohort(*all_histories: History) -> Cohort:
    [(cohort, _)] = cohorts_of(all_histories)
    return cohort


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in ("key", "value", "timestamp", "order")) for row in table.to_pylist()]


def values(kind: pa.DataType, encode: Callable[[Any], Any] = lambda value: value) -> list[Field]:
    """The one further column of most cohorts."""
    for_driver = "0" if pa.types.is_string(kind) else 0
    return [Field("value", kind, lambda record, prefixed: encode(record.value), for_driver)]


# The clock schedule.


@pytest.mark.parametrize(
    ("lines", "schedule"),
    [
        ((), (0,)),
        ((record(5),), (5,)),
        ((record(5), record(3)), (5,)),
        ((record(5), CUT, record(3)), (5, 5)),
        ((record(5), CUT, CUT, record(9)), (5, 5, 9)),
        ((ClockAdvance(7), record(5)), (7,)),
        ((record(100, key=None), record(5)), (5,)),
        ((CUT,), (0, 0)),
    ],
)
def test_the_schedule_is_the_batch_clock_after_every_batch(lines: tuple[Line, ...], schedule: tuple[int, ...]) -> None:
    assert clock_schedule(history(*lines)) == schedule


def test_heartbeats_close_each_batch() -> None:
    assert with_clock_advances([[record(5)], [], [record(9)]], [5, 7, 9]) == (
        record(5),
        ClockAdvance(5),
        CUT,
        ClockAdvance(7),
        CUT,
        record(9),
        ClockAdvance(9),
    )


def test_records_without_a_value_move_the_clock_as_others_do() -> None:
    drawn = [*draw_histories(replace(SETTINGS, null_keys=True), 8, 0)]
    without = [one.with_lines(_without_value(line) for line in one.lines) for one in drawn]

    def times(histories: Sequence[History]) -> list[Any]:
        return [
            [_without_value(line) for one in change for line in one.lines]
            for change in (histories, [*map(moved_by_records, histories)])
        ]

    assert times(drawn) == times(without)
    for one, other in zip(map(moved_by_records, drawn), map(moved_by_records, without), strict=True):
        for by_null_keys in (False, True):
            assert clock_schedule(one, by_null_keys) == clock_schedule(other, by_null_keys)
        ours, theirs = (pack(only_cohort(given), []) for given in (one, other))
        assert ours == theirs


def _without_value(line: Line) -> Line:
    return line._replace(value=None) if isinstance(line, Record) else line


def test_records_move_the_clock_where_heartbeats_are_absent_or_lower() -> None:
    batches = [[record(100), record(50)], [record(60), record(160), record(9, key=None)], [], [record(0)]]
    paced = history().with_lines(with_clock_advances(batches, [100, 200, 200, 200]))
    assert moved_by_records(paced).lines == (
        *(record(100), record(50), CUT),
        *(record(60), record(160), record(9, key=None), ClockAdvance(159), CUT),
        *(CUT, record(0), ClockAdvance(0)),
    )


WISHES = ("left", "right", None)


@pytest.mark.parametrize("seed", range(8))
def test_in_turn_a_record_of_each_input_and_one_without_a_value_reaches_the_clock_alone(seed: int) -> None:
    records = [Record(side, "a", value, 50) for side in WISHES[:2] for value in (1, None)] * 2
    batches = [records, records, records, [Record("left", None, 1, 50)], records[:1]]
    made = History("table_table_join", {}, tuple(with_clock_advances(batches, [60, 80, 80, 90, 99])), "batch")
    moved = moved_by_one_each([made, made], Random(seed))
    reached: list[Record] = []
    for number, clock in enumerate(clock_schedule(made)):
        at = [one for history in moved for one in record_batches(history)[number]]
        reaching = [one for one in at if one.timestamp == clock]
        assert len(reaching) == (number != 3)  # a record without a key moves no clock
        assert {one.timestamp for one in at if one not in reaching} <= {min(50, clock - 1)}
        reached += reaching
    assert any(
        all(wish == (one.input if wish else one.value) for wish, one in zip(wishes, reached, strict=False))
        for wishes in permutations(WISHES)
    )
    assert reached[3] == Record("left", "a", 1, 99)


@pytest.mark.parametrize("schedule", [[5], [5, 6, 7]])
def test_a_schedule_of_another_length_is_an_error(schedule: list[int]) -> None:
    with pytest.raises(ValueError, match="zip"):
        with_clock_advances([[], []], schedule)


# Which histories share a cohort.


def test_histories_that_agree_share_a_cohort() -> None:
    drawn = list(draw_histories(SETTINGS, 10, seed=1))
    assert cohorts_of(drawn) == [(Cohort("session_windows", SETTINGS.options, SCHEDULE, tuple(drawn)), list(range(10)))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (history(record(5)), history(record(5), gap_ms=11)),
        (history(record(5)), history(record(5), late="own")),
        (history(record(5)), history(record(6))),
        (history(record(5)), history(record(5), CUT)),
        (history(record(5)), history(record(5), record(1, key=None))),
        (history(record(5), record(1, key=None)), history(record(5), record(1, key=None))),
        (history(record(5), grace_ms=0), history(record(5), grace_ms="0")),
    ],
    ids=["gap", "late", "schedule", "batches", "null key", "null keys of both", "an option of the same print"],
)
def test_histories_that_differ_share_no_cohort(one: History, other: History) -> None:
    assert [indexes for _, indexes in cohorts_of([one, other])] == [[0], [1]]


def test_the_order_of_options_makes_no_difference() -> None:
    one = History("session_windows", {"gap_ms": 10, "late": "own"}, (record(5),), "batch")
    other = History("session_windows", {"late": "own", "gap_ms": 10}, (record(5),), "batch")
    assert len(cohorts_of([one, other])) == 1


@QUIET
@given(st.lists(histories(SETTINGS) | histories(HistorySettings("session_windows", {"gap_ms": 3}, (5, 9))), max_size=5))
def test_every_history_is_in_exactly_one_cohort(drawn: list[History]) -> None:
    found = {
        index: one
        for cohort, indexes in cohorts_of(drawn)
        for index, one in zip(indexes, cohort.histories, strict=True)
    }
    assert [found[index] for index in range(len(drawn))] == drawn


# Packing.


def test_a_cohort_is_laid_out_as_one_table_a_batch() -> None:
    cohort = only_cohort(
        history(record(5, value=7), CUT, ClockAdvance(9)), history(ClockAdvance(5), CUT, record(9, "b", 8), record(2))
    )
    assert [rows_of(table) for table in pack(cohort, values(pa.int64()))] == [
        [(WATERMARK_DRIVER, 0, 5, 0), ("00000|a", 7, 5, 1)],
        [(WATERMARK_DRIVER, 0, 9, 2), ("00001|b", 8, 9, 3), ("00001|a", 1, 2, 4)],
    ]


def test_the_columns_have_sparks_types() -> None:
    schema = pack(only_cohort(history(record(5, value="x"))), values(pa.string()))[0].schema
    assert dict(zip(schema.names, schema.types, strict=True)) == {
        "key": pa.string(),
        "timestamp": pa.int64(),
        "order": pa.int64(),
        "input": pa.string(),
        "value": pa.string(),
    }


@pytest.mark.parametrize(
    ("lines", "column", "row"),
    [
        ((record(5, value="x"),), values(pa.string()), (WATERMARK_DRIVER, "0", 5, 0)),
        ((record(5, value=[1]),), values(pa.string(), str), ("00000|a", "[1]", 5, 1)),
        ((record(5, value=None),), values(pa.int64()), ("00000|a", None, 5, 1)),
        ((record(5), record(1, key=None)), values(pa.int64()), (None, 1, 1, 2)),
    ],
    ids=["the reserved key's value has the column's type", "an encoded value", "a null value", "a null key"],
)
def test_a_row_has_its_record_as_the_column_says(lines: tuple[Line, ...], column: list[Field], row: Any) -> None:
    assert rows_of(pack(only_cohort(history(*lines)), column)[0])[row[3]] == row


@pytest.mark.parametrize("value", ["x", 10**30, True, [1], {"a": 1}])
def test_a_value_that_does_not_fit_is_refused_with_its_batch(value: Any) -> None:
    cohort = only_cohort(history(record(5), CUT, record(5, value=value)))
    with pytest.raises(BadInput, match=r"^batch 1: a value doesn't fit the type int64: .*; use smaller numbers"):
        pack(cohort, values(pa.int64()))


@pytest.mark.parametrize("one", [record(5, value="\ud800"), record(5, key="\ud800", value="x")], ids=["value", "key"])
def test_half_a_surrogate_pair_is_refused(one: Record) -> None:
    with pytest.raises(BadInput, match=r"^batch 0: a (key|value) doesn't fit the type string: .* and whole text$"):
        pack(only_cohort(history(one)), values(pa.string()))


# Unpacking.


def packed_entries(cohort: Cohort) -> list[Entry]:
    """What a witness would say of the whole cohort: the reference's entries under packed keys, batch by batch."""
    entries: list[Entry] = []
    for index, one in enumerate(cohort.histories):
        for entry in play(one).entries:
            packed = f"{index:05d}|{entry.output.key}"
            entries.append(entry._replace(output=entry.output._replace(key=packed)))
    return sorted(entries, key=lambda entry: entry.batch)


@QUIET
@given(st.lists(histories(SETTINGS), min_size=1, max_size=5))
def test_every_history_gets_its_own_entries_back(drawn: list[History]) -> None:
    cohort = only_cohort(*drawn)
    assert unpack(cohort, packed_entries(cohort)) == [play(one).entries for one in drawn]


def test_a_null_keys_entry_is_the_lonely_historys() -> None:
    cohort = only_cohort(history(record(5), record(1, key=None)))
    entry = Entry(0, 0, Dropped(None, "null key"))
    assert unpack(cohort, [entry]) == [[entry]]


def test_more_histories_than_the_prefix_has_digits_are_told_apart() -> None:
    cohort = Cohort("session_windows", {"gap_ms": 10}, (5,), (history(record(5)),) * 100_001)
    assert unpack(cohort, [Entry(0, 0, Dropped("100000|a", "late"))])[100_000] == [Entry(0, 0, Dropped("a", "late"))]

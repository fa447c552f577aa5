"""Histories of a job: at the edges of what matters to it, and under one clock schedule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from streamproof import BadInput
from streamproof.properties.generators.columns.formatting import duration, shown
from streamproof.properties.generators.columns.forms.rows import Row, from_microseconds, microseconds
from streamproof.properties.generators.columns.histories.drawing import (
    BASES,
    _with_copies,
    are_copies,
    calendar_edges,
    closed,
    draw_histories,
)
from streamproof.properties.generators.columns.histories.goals import LATE, covered, goals
from streamproof.properties.generators.columns.histories.shrinking import shrink
from streamproof.properties.generators.columns.inputs import Input, ResolvedInput
from streamproof.properties.generators.columns.key_spaces import key_family, key_space
from streamproof.properties.generators.columns.model import Arrival, JobHistory, Source
from streamproof.properties.generators.columns.resolving import resolve, resolve_all

MINUTE = 60_000_000
GAP, DELAY = 30 * MINUTE, 10 * MINUTE
CLICKS = "user string, at timestamp, amount bigint"


@pytest.fixture(scope="module")
def clicks() -> ResolvedInput:
    return resolve(Input(CLICKS, time="at", key="user"))


@pytest.fixture(scope="module")
def joined() -> list[ResolvedInput]:
    return resolve_all(
        [
            Input(
                "user string, item int, at timestamp_ntz, price decimal(10,2) not null",
                key=("user", "item"),
                name="orders",
            ),
            Input("paid timestamp, item bigint, buyer string, method string", key=("buyer", "item"), name="payments"),
        ]
    )


def histories(inputs: list[ResolvedInput], count: int = 200, seed: int = 0, **options: object) -> list[JobHistory]:
    return draw_histories(inputs, [GAP], count, seed, delay_us=DELAY, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("seed", range(7))
def test_three_hundred_histories_cover_every_goal(clicks: ResolvedInput, seed: int, late: bool) -> None:
    found = covered(histories([clicks], 300, seed, late=late), [clicks.source], [GAP, DELAY], DELAY)
    assert set(goals([clicks], [GAP, DELAY], late)) <= found
    assert (LATE in found) == late


def test_histories_of_two_inputs_cover_every_goal(joined: list[ResolvedInput]) -> None:
    sources = [given.source for given in joined]
    assert set(goals(joined, [GAP, DELAY])) <= covered(histories(joined, 300), sources, [GAP, DELAY], DELAY)


def test_all_histories_share_the_clock_schedule(clicks: ResolvedInput) -> None:
    assert len({history.clock for history in histories([clicks])}) == 1
    assert {len(history.batches) for history in histories([clicks], batches=7)} == {7}


def test_the_same_seed_draws_the_same_and_another_one_others(clicks: ResolvedInput) -> None:
    assert histories([clicks]) == histories([clicks])
    assert histories([clicks])[:20] != histories([clicks], seed=1)[:20]
    assert histories([clicks], 10) == histories([clicks])[:10]


def test_small_histories_come_often_and_none_is_large(clicks: ResolvedInput) -> None:
    sizes = [len(history.arrivals) for history in histories([clicks], 500)]
    assert sum(size <= 3 for size in sizes) > 150
    assert min(sizes) == 1
    assert max(sizes) == 12


def test_seeds_in_turn_begin_on_other_days(clicks: ResolvedInput) -> None:
    starts = {history.clock[0] // (86_400 * 1_000_000) for seed in range(7) for history in histories([clicks], 1, seed)}
    assert len(starts) == len(BASES)
    (history,) = histories([clicks], 1)
    assert 0 <= history.clock[0] - microseconds(BASES[0]) <= 2 * GAP + 1000


@pytest.mark.parametrize("delay", [0, 1000, DELAY, 50 * MINUTE])
@pytest.mark.parametrize("seed", range(10))
def test_the_watermark_comes_exactly_where_windows_end_and_a_millisecond_before(seed: int, delay: int) -> None:
    given = resolve(Input(CLICKS, key="user"))
    (history,) = draw_histories([given], [60 * MINUTE], 1, seed, delay_us=delay)
    beside = [(clock - delay) % (60 * MINUTE) for clock in history.clock]
    assert 0 in beside
    assert 60 * MINUTE - 1000 in beside


def test_windows_that_start_beside_a_multiple_of_their_size_are_met_too() -> None:
    given = resolve(Input(CLICKS, key="user"))
    met = 0
    for seed in range(40):
        (history,) = draw_histories([given], [60 * MINUTE, 5 * MINUTE, DELAY], 1, seed, delay_us=DELAY)
        met += any((clock - DELAY) % (60 * MINUTE) == 5 * MINUTE for clock in history.clock)
    assert met > 20


def test_days_begin_and_clocks_change_before_each_base() -> None:
    autumn = [from_microseconds(edge) for edge in calendar_edges(datetime(2024, 10, 27, 1, 30, tzinfo=UTC))]
    assert autumn == [
        datetime(2024, 10, 26, 4, tzinfo=UTC),  # midnight in New York
        datetime(2024, 10, 26, 22, tzinfo=UTC),  # in Berlin
        datetime(2024, 10, 27, tzinfo=UTC),
        datetime(2024, 10, 27, 1, tzinfo=UTC),  # Berlin's clocks go back
    ]
    assert all(len(calendar_edges(base)) >= 3 for base in BASES)


@pytest.mark.parametrize("seed", range(7))
def test_rows_lie_at_midnights_whatever_matters_to_the_job(seed: int) -> None:
    given = resolve(Input(CLICKS, key="user"))
    edges = set(calendar_edges(BASES[seed]))
    drawn = draw_histories([given], [1_000_000], 300, seed)
    times = {given.source.time_us(row) for history in drawn for _, row in history.arrivals}
    assert times & edges
    assert times & {edge + by for edge in edges for by in (-1000, 1000)}


def test_times_lie_a_microsecond_beside_what_matters_too(clicks: ResolvedInput) -> None:
    times = [clicks.source.time_us(row) for history in histories([clicks], 300) for _, row in history.arrivals]
    assert {0, 1, 999} <= {time_us % 1000 for time_us in times}


def test_a_tenth_of_the_rows_is_late_by_more_than_a_millisecond(clicks: ResolvedInput) -> None:
    late, count = 0, 0
    for history in histories([clicks], 300):
        for clock, batch in zip(history.clock, history.batches[1:], strict=False):
            count += len(batch)
            late += sum(clicks.source.time_us(row) < clock - DELAY - 1_000 for _, row in batch)
    assert 10 * late > count


def test_times_lie_apart_by_the_sum_of_any_two_distances_that_matter(clicks: ResolvedInput) -> None:
    apart = Counter[int]()
    for history in draw_histories([clicks], [7 * MINUTE, 31 * MINUTE, 67 * MINUTE], 600, 0, delay_us=7 * MINUTE):
        times = [clicks.source.time_us(row) for _, row in history.arrivals]
        apart.update({abs(later - earlier) for earlier, later in pairwise(times)})
    assert min(apart[sum_ * MINUTE] for sum_ in (7 + 31, 7 + 67, 31 + 67)) > 5


def facts_of(history: JobHistory, given: ResolvedInput) -> Iterator[str]:
    """Yield what a history has: its keys, sizes, values and copies, and its times beside clocks and other times."""
    rows, arrived, times = [row for _, row in history.arrivals], list[Row](), list[int]()
    yield f"{len({given.source.key_of(row) for row in rows})} keys"
    yield f"{len(rows)} rows"
    yield f"{len({row['amount'] for row in rows})} values"
    yield from (f"{column} null" for row in rows for column, value in row.items() if value is None)
    for number, batch in enumerate(history.batches):
        before = [*([None] * 2), *history.clock][number : number + 3]
        yield f"{len(batch)} in batch {number}"
        for _, row in batch:
            time = given.source.time_us(row)
            yield from ["copy"] * (row in arrived)
            for what, clock in zip(("the clock two before", "the clock before", "the clock"), before, strict=True):
                if clock is not None:
                    yield f"{what} {near(time - clock)}"
            yield f"a window {near((time + GAP // 2) % GAP - GAP // 2)}"
            yield from [f"the row before {near(time - times[-1])}"] if times else []
            arrived.append(row)
            times.append(time)


def near(distance: int) -> str:
    edge = min((0, GAP, -GAP, DELAY, -DELAY, GAP + DELAY), key=lambda edge: abs(distance - edge))
    return f"{edge // MINUTE:+} min {distance - edge:+} us" if abs(distance - edge) <= 1000 else "far"


LEAST = """
1 keys: 480, 2 keys: 230, 3 keys: 40, n null: 100, amount null: 240, copy: 220
1 rows: 90, 2 rows: 110, 3 rows: 110, 6 rows: 42, 9 rows: 32, 12 rows: 37
1 values: 130, 2 values: 190, 3 values: 210, 4 values: 180, 5 values: 44
0 in batch 0: 290, 0 in batch 4: 300, 1 in batch 0: 250, 3 in batch 0: 48, 3 in batch 4: 51
the clock +0 min +0 us: 370, the clock +0 min -1000 us: 270, the clock -10 min +0 us: 240, the clock -30 min +0 us: 150
the clock before +0 min +0 us: 290, the clock before -10 min +0 us: 83, the clock before -10 min +1000 us: 180
the clock before -10 min -1000 us: 37, the clock before -10 min +1 us: 37, the clock before +30 min +0 us: 54
the clock two before -10 min +0 us: 43, the clock two before -10 min +1000 us: 36, the clock two before +0 min +0 us: 80
a window +0 min +0 us: 360, a window +0 min -1000 us: 190, a window +0 min +1000 us: 190, a window +0 min -1 us: 45
a window +10 min +0 us: 330, a window +10 min -1000 us: 300, a window -10 min +0 us: 190, a window +0 min +1 us: 55
the row before +0 min +0 us: 260, the row before +30 min +0 us: 110, the row before -30 min +0 us: 80
the row before +30 min -1000 us: 55, the row before +30 min +1000 us: 60, the row before +40 min +0 us: 54
the row before +10 min +0 us: 140, the row before -10 min +0 us: 115, the row before +0 min +1 us: 20
"""
"""What histories have, and how many of a thousand have it at least: some three quarters of those that do."""


def test_what_matters_to_a_job_is_drawn_often_enough() -> None:
    given = resolve(Input("user string, n int, at timestamp, amount bigint", key=["user", "n"]))
    drawn = [history for seed in range(7) for history in histories([given], 300, seed)]
    found = Counter(fact for history in drawn for fact in {*facts_of(history, given)})
    least = {what: int(count) for what, count in re.findall(r"([^,\n]+): (\d+)", LEAST)}
    assert len(least) == LEAST.count(":")
    assert {what: found[what.strip()] for what, count in least.items() if found[what.strip()] < 2.1 * count} == {}


def test_rows_have_the_columns_of_their_input_in_order_and_its_types(joined: list[ResolvedInput]) -> None:
    by_name = {given.name: given.source for given in joined}
    for history in histories(joined):
        for name, row in history.arrivals:
            schema = by_name[name].schema
            assert list(row) == schema.names
            for column in schema:
                pa.array([row[column.name]], column.type)
                assert column.nullable or row[column.name] is not None


def test_keys_of_several_columns_meet_in_one_column_and_over_inputs(joined: list[ResolvedInput]) -> None:
    found = histories(joined)
    users = [{(row.get("user", row.get("buyer")), row["item"]) for _, row in history.arrivals} for history in found]
    assert any(len({user for user, _ in keys}) < len(keys) for keys in users)
    both = [
        {name: {row["item"] for of, row in history.arrivals if of == name} for name in ("orders", "payments")}
        for history in found
    ]
    assert sum(bool(of["orders"] & of["payments"]) for of in both) > 50


def test_the_key_column_that_carries_the_history_is_never_null_and_others_are() -> None:
    given = resolve(Input("n int, user string, at timestamp", key=("n", "user")))
    rows = [row for history in histories([given]) for _, row in history.arrivals]
    assert all(row["user"] is not None for row in rows)
    assert any(row["n"] is None for row in rows)


def test_real_keys_are_drawn_as_they_are() -> None:
    given = resolve(Input(CLICKS, key="user", keys=["ann", None]))
    assert {row["user"] for history in histories([given]) for _, row in history.arrivals} == {"ann", None}


def test_real_keys_of_another_input_are_drawn_where_they_have_as_many_columns(joined: list[ResolvedInput]) -> None:
    ann = resolve(Input("user string, at timestamp", key="user", keys=["ann"], name="users"))
    bob = resolve(Input("name string, seen timestamp", key="name", name="visits"))
    drawn = [(name, row) for history in histories([ann, bob, *joined]) for name, row in history.arrivals]
    assert {row["name"] for name, row in drawn if name == "visits"} == {"ann"}
    orders = [row["item"] for name, row in drawn if name == "orders"]
    assert len({*orders}) > 1


@pytest.mark.parametrize("batches", [1, 2, 3, 4])
def test_histories_may_have_few_batches(clicks: ResolvedInput, batches: int) -> None:
    assert {len(history.clock) for history in histories([clicks], 5, batches=batches)} == {batches}


def test_inputs_with_keys_of_other_lengths_share_the_first_column() -> None:
    one, two = resolve_all(
        [Input("a string, at timestamp", key="a"), Input("b string, c int, at timestamp", key=("b", "c"), name="two")]
    )
    for inputs in ([one, two], [two, one]):
        assert key_space([given.source for given in inputs]).columns == {"events": "a", "two": "b"}


@pytest.mark.parametrize(
    ("keys", "families"),
    [
        ([("a", "b"), ("b", "a")], [["a string", "b integer"], ["b integer", "a string"]]),
        ([("a", "b"), ("a",)], [["a string", "1 integer"], ["a string"]]),
        ([("a",), ("c",)], [["0 string"], ["0 string"]]),
        ([("a",), ("a",), ("c",)], [["0 string"]] * 3),
    ],
)
def test_key_columns_share_values_by_name_if_every_input_has_it_or_else_by_position(keys: Any, families: Any) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int32()), ("c", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    sources = [Source(f"input {number}", schema, "at", key) for number, key in enumerate(keys)]
    assert [[key_family(one, column, sources) for column in one.key] for one in sources] == families


def test_the_values_of_a_user_are_drawn_and_a_few_in_each_history() -> None:
    given = resolve(Input(CLICKS, key="user", values={"amount": range(100, 120), "user": ["u", "v"]}))
    found = [{row["amount"] for _, row in history.arrivals} for history in histories([given])]
    assert set.union(*found) == set(range(100, 120))
    assert max(map(len, found)) <= 4
    assert {row["user"] for history in histories([given]) for _, row in history.arrivals} == {"u", "v"}


def test_rows_of_a_sample_are_retimed_and_renamed_and_otherwise_kept() -> None:
    sample = pa.table(
        {
            "user": ["ann", "ann", "bob"],
            "at": [datetime(2019, 1, 1, tzinfo=UTC)] * 3,
            "shop": ["Berlin", "Berlin", "Rome"],
            "amount": [1, 2, 7],
        }
    )
    given = resolve(Input(sample=sample, key="user"))
    for history in histories([given]):
        shops: dict[str, set[str]] = {}
        for _, row in history.arrivals:
            assert (row["shop"], row["amount"]) in {("Berlin", 1), ("Berlin", 2), ("Rome", 7)}
            assert row["user"] not in ("ann", "bob")
            assert row["at"].year > 2019
            shops.setdefault(row["user"], set()).add(row["shop"])
    rows = [row for history in histories([given]) for _, row in history.arrivals]
    assert {row["amount"] for row in rows} == {1, 2, 7}


def test_without_a_known_duration_there_still_are_some(clicks: ResolvedInput) -> None:
    found = draw_histories([clicks], [], 300, 0)
    assert "times exactly 10 minutes apart" in covered(found, [clicks.source], [10 * MINUTE])


def test_a_closing_batch_has_no_rows_and_moves_the_clock(clicks: ResolvedInput) -> None:
    (history,) = histories([clicks], 1)
    later = closed(history, GAP)
    assert later.batches == (*history.batches, ())
    assert later.clock == (*history.clock, history.clock[-1] + GAP)


def test_coverage_names_only_what_came_up(clicks: ResolvedInput) -> None:
    nothing = JobHistory(((), ()), (0, 0))
    assert covered([nothing], [clicks.source], [GAP], DELAY) == {"a batch without rows"}
    assert covered([], [clicks.source], [GAP], DELAY) == set()


@pytest.mark.parametrize(
    ("time_us", "said"),
    [
        (1, "1 µs"),
        (1000, "1 ms"),
        (1_500_000, "1500 ms"),
        (2_000_000, "2 seconds"),
        (MINUTE, "1 minute"),
        (90 * MINUTE, "90 minutes"),
        (48 * 60 * MINUTE, "2 days"),
    ],
)
def test_a_duration_is_said_in_its_largest_whole_unit(time_us: int, said: str) -> None:
    assert duration(time_us) == said


@pytest.mark.parametrize("late", [True, False])
def test_rows_of_one_event_are_copies_and_none_is_late_where_none_may_be(late: bool) -> None:
    events = Input(
        "id string, user string, at timestamp, n int",
        key="user",
        identity="id",
        null_times=0.2,
        values={"id": ["a", "b"]},
    )
    given = {one.name: one for one in resolve_all([events])}
    drawn = draw_histories([*given.values()], [60_000_000], 200, 0, late=late, delay_us=1_000)
    assert all(are_copies(history.arrivals, given) for history in drawn)
    assert any(len({repr(row) for _, row in history.arrivals}) < len(history.arrivals) for history in drawn)
    late_rows = [
        row
        for history in drawn
        for number, batch in enumerate(history.batches[1:])
        for _, row in batch
        if row["at"] is not None and microseconds(row["at"]) <= history.clock[number] - 1_000
    ]
    assert bool(late_rows) is late
    freely = draw_histories(resolve_all([replace(events, identity=())]), [60_000_000], 200, 0)
    assert not all(are_copies(history.arrivals, given) for history in freely)


@pytest.mark.parametrize(
    ("first", "late", "batches"),
    [
        (5, False, [0]),
        (15, False, [0, 1]),
        (20, False, [0, 1]),
        (21, False, [0, 1, 2]),
        (None, False, [0, 1, 2]),
        (5, True, [0, 1, 2]),
    ],
)
def test_a_copy_behind_the_watermark_is_left_out_where_no_row_may_be_late(
    first: int | None, late: bool, batches: list[int]
) -> None:
    given = resolve(Input("id string, at timestamp", identity="id", null_times=0.1))
    at = [None if us is None else from_microseconds(us) for us in (first, 30, 30)]
    drawn = tuple((Arrival("events", {"id": "a", "at": one}),) for one in at)
    drawer: Any = SimpleNamespace(inputs=[given], horizons=[None, 10, 20], late=late)
    copied = _with_copies(JobHistory(drawn), drawer).batches
    assert [number for number, batch in enumerate(copied) if batch == drawn[0]] == batches


def test_a_history_is_shrunk_to_copies_of_an_event() -> None:
    events = Input("id string, user string, at timestamp, n int", key="user", identity=["id"])
    inputs = resolve_all([events])
    fails = [one for one in draw_histories(inputs, [60_000_000], 100, 0) if len(one.arrivals) > 4]
    smallest = shrink(
        fails[0], inputs, lambda some: [len({row["id"] for _, row in one.arrivals}) < len(one.arrivals) for one in some]
    )
    assert [row for _, row in smallest.arrivals] == [smallest.arrivals[0].row] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"identity": "order"}, "there is no column 'order', named in identity: it has"),
        ({"identity": 5}, "identity is 5: name one or more columns"),
        (
            {"identity": "id", "format": "kafka", "value": "debezium"},
            "the key id identifies the rows of a table",
        ),
    ],
)
def test_an_identity_that_identifies_nothing_is_refused(given: dict, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        resolve_all([Input("id string, n int, at timestamp", key="id", **given)])


@pytest.mark.parametrize("seed", range(4))
def test_no_row_is_late_where_none_may_be_though_the_clock_stands_still(clicks: ResolvedInput, seed: int) -> None:
    for history in draw_histories([clicks], [60_000_000], 60, seed, batches=8, late=False, delay_us=0):
        for before, batch in zip(history.clock, history.batches[1:], strict=False):
            assert all(clicks.source.time_us(row) > before for _, row in batch)


def test_each_base_is_a_time_after_the_midnight_or_the_change_of_clocks_that_it_is_for() -> None:
    berlin, york = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
    of_berlin, of_york = ([base.astimezone(zone) for base in BASES] for zone in (berlin, york))
    assert (of_berlin[0].hour, of_berlin[0].fold, of_york[0].date()) == (2, 1, date(2024, 10, 26))
    before = timedelta(hours=1)
    assert [one.astimezone(york).hour for one in (BASES[1] - before, BASES[1])] == [1, 3]
    assert [one.astimezone(berlin).hour for one in (BASES[3] - before, BASES[3])] == [1, 3]
    assert (of_york[5].hour, of_york[5].fold) == (1, 1)
    assert [(base.month, base.day) for base in (BASES[4], BASES[6], BASES[2])] == [(2, 29), (1, 1), (7, 15)]
    assert all(base.hour == 0 for base in (BASES[4], BASES[6]))
    assert len({base.date() for base in BASES}) == len(BASES)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2024, 1, 1, 2, 3, 4), "2024-01-01 02:03:04"),
        (datetime(2024, 1, 1, 2, 3, 4, 5_000, UTC), "2024-01-01 02:03:04.005Z"),
        (datetime(2024, 1, 1, 2, 3, 4, 1_001, UTC), "2024-01-01 02:03:04.001001Z"),
        (datetime(2024, 1, 1, 2, 3, 4, 1, UTC), "2024-01-01 02:03:04.000001Z"),
        ({"a": None, "b": [True, "x"]}, "{a: null, b: [true, 'x']}"),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_a_value_is_shown_whole_and_by_its_kind(value: Any, text: str) -> None:
    assert shown(value) == text

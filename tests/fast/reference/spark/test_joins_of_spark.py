from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.spark.static_join import StaticJoin
from streamproof.reference.spark.stream_join import Dialect, JoinState, StreamJoin, dialect_of

KEYS = (("key",), ("key",))


def rows(*times_us: int | None, key: str | None = "a") -> list[dict[str, Any]]:
    return [{"key": key, "at": time_us} for time_us in times_us]


def state(join: Any = "inner", before_us: int | None = 2_000, after_us: int | None = 3_000, **other: Any) -> JoinState:
    return JoinState(StreamJoin(join, KEYS, ("at", "at"), before_us, after_us, **other))


def times(pairs: Any) -> list[tuple[int | None, int | None]]:
    return sorted(
        ((None if left is None else left["at"], None if right is None else right["at"]) for left, right in pairs),
        key=lambda pair: [(time is None, time or 0) for time in pair],
    )


def test_both_ends_of_the_time_range_join() -> None:
    found = state().batch(rows(10_000), rows(7_999, 8_000, 13_000, 13_001), 0, 0)
    assert times(found) == [(10_000, 8_000), (10_000, 13_000)]


def test_rows_join_whichever_comes_first_and_in_one_batch() -> None:
    one = state()
    assert one.batch(rows(10_000), [], 0, 0) == []
    assert times(one.batch([], rows(11_000), 0, 0)) == [(10_000, 11_000)]
    assert times(one.batch(rows(12_000), [], 0, 0)) == [(12_000, 11_000)]


@pytest.mark.parametrize("join", ["inner", "left", "right", "left_semi"])
def test_a_null_key_or_time_joins_nothing(join: Any) -> None:
    found = state(join).batch(rows(1_000, key=None) + rows(None), rows(1_000, key=None) + rows(None), 0, 0)
    assert found == []


def test_without_bounds_no_times_are_compared_so_that_a_null_one_joins() -> None:
    assert times(state(before_us=None, after_us=None).batch(rows(None), rows(1_000), 0, 0)) == [(None, 1_000)]
    assert times(state(before_us=None).batch(rows(None), rows(1_000), 0, 0)) == []


def test_in_a_full_join_null_keys_are_equal_as_they_are_to_spark() -> None:
    found = state("full").batch(rows(1_000, key=None) + rows(None), rows(1_000, key=None) + rows(None), 0, 0)
    assert times(found) == [(1_000, 1_000)]


def test_a_row_is_late_to_the_watermark_of_the_batch_before_though_partners_may_still_come() -> None:
    one = state("left")
    assert one.batch(rows(10_000), rows(10_001), 10, 10) == []
    assert times(one.batch(rows(10_001), [], 10, 10)) == [(10_001, 10_001)]


def test_a_side_without_a_watermark_has_no_late_rows_and_bounds_no_state() -> None:
    one = state(watermarks=frozenset({"left"}))
    assert times(one.batch(rows(10_000, 20_000), rows(10_000), 10, 10)) == []
    assert times(one.batch(rows(11_000), [], 10, 100)) == [(11_000, 10_000)]
    assert not one.join.asks_for_batch_without_data


def test_an_outer_row_is_emitted_once_the_watermark_is_past_its_reach_by_a_millisecond() -> None:
    one = state("left")
    one.batch(rows(10_000), [], 0, 0)
    assert one.batch([], [], 0, 13) == []  # a right row at 13.000 ms is late now, and yet the left one is kept
    assert times(one.batch([], [], 13, 14)) == [(10_000, None)]
    assert one.batch([], [], 14, 15) == []


def test_the_bound_is_cut_to_milliseconds() -> None:
    one = state("left", after_us=2_001)
    one.batch(rows(10_000), [], 0, 0)
    assert one.batch([], [], 0, 13) == []  # 13 - 2.001 is cut to 10, less one: 9
    assert times(one.batch([], [], 13, 14)) == [(10_000, None)]
    exact = state("left", after_us=1_999)
    exact.batch(rows(10_000), [], 0, 0)
    assert times(exact.batch([], [], 0, 13)) == [(10_000, None)]  # 13 - 1.999 is cut to 11, less one: 10


def test_the_right_side_is_kept_for_as_long_as_a_left_row_may_come_before_it() -> None:
    one = state("right")
    one.batch([], rows(10_000), 0, 0)
    assert one.batch([], [], 0, 12) == []
    assert times(one.batch([], [], 12, 13)) == [(None, 10_000)]


def test_a_row_that_was_joined_is_not_emitted_alone() -> None:
    one = state("full")
    one.batch(rows(10_000, 20_000), rows(10_000, 30_000), 0, 0)
    assert times(one.batch([], [], 0, 100)) == [(20_000, None), (None, 30_000)]


def test_a_row_is_joined_in_the_batch_that_evicts_it() -> None:
    one = state("left")
    one.batch(rows(10_000), [], 0, 0)
    assert times(one.batch([], rows(10_000), 0, 100)) == [(10_000, 10_000)]
    assert one.batch([], rows(110_000, 10_000), 100, 100) == []


def test_a_semi_join_emits_a_left_row_once() -> None:
    one = state("left_semi")
    assert times(one.batch(rows(10_000), rows(10_000, 11_000), 0, 0)) == [(10_000, None)]
    assert one.batch([], rows(12_000), 0, 0) == []
    assert times(one.batch(rows(11_000), [], 0, 0)) == [(11_000, None)]
    assert one.batch([], [], 0, 100) == []


def test_a_semi_join_loses_a_left_row_that_comes_with_its_partner_in_the_batch_that_evicts_the_partner() -> None:
    """Observed of Spark 4.3: right rows come first (SPARK-55973), and those at their end aren't kept (SPARK-49829)."""
    one, inner = state("left_semi"), state()
    assert one.batch(rows(10_000), rows(10_000), 0, 100) == []
    assert times(inner.batch(rows(10_000), rows(10_000), 0, 100)) == [(10_000, 10_000)]
    kept = state("left_semi")
    kept.batch([], rows(10_000), 0, 0)
    assert times(kept.batch(rows(10_000), [], 0, 100)) == [(10_000, None)]


def test_before_4_2_a_semi_join_takes_the_left_rows_first_and_loses_none() -> None:
    one = state("left_semi", dialect=dialect_of((4, 1, 4)))
    assert times(one.batch(rows(10_000), rows(10_000), 0, 100)) == [(10_000, None)]
    assert state("left_semi", dialect=dialect_of((4, 2, 0))).batch(rows(10_000), rows(10_000), 0, 100) == []


@pytest.mark.parametrize("join", ["inner", "left", "right", "full", "left_semi"])
def test_before_3_5_4_what_its_own_batch_evicts_is_neither_joined_in_it_nor_emitted_alone(join: Any) -> None:
    old = state(join, dialect=dialect_of((3, 5, 3)))
    assert old.batch(rows(10_000), rows(10_000, 20_000), 0, 100) == []
    new = state(join, dialect=dialect_of((3, 5, 4)))
    assert (10_000, None if join == "left_semi" else 10_000) in times(new.batch(rows(10_000), rows(10_000), 0, 100))


@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        ((3, 5, 0), Dialect("left", False)),
        ((3, 5, 9), Dialect("left", True)),
        ((4, 1, 4), Dialect("left", True)),
        ((4, 2, 0), Dialect("right", True)),
        ((4, 3, 0), Dialect()),
    ],
)
def test_each_version_has_its_dialect(version: tuple[int, ...], dialect: Dialect) -> None:
    assert dialect_of(version) == dialect


def test_without_a_time_range_nothing_is_forgotten() -> None:
    one = state(before_us=None, after_us=None)
    one.batch(rows(1_000), [], 0, 0)
    assert times(one.batch([], rows(900_000), 800, 800)) == [(1_000, 900_000)]
    assert not one.join.asks_for_batch_without_data


@pytest.mark.parametrize(
    ("join", "emitted"),
    [
        ("inner", [("a", 1), ("a", 2)]),
        ("left", [("a", 1), ("a", 2), ("b", None), (None, None)]),
        ("left_semi", ["a"]),
        ("left_anti", ["b", None]),
    ],
)
def test_a_stream_looks_up_a_table_in_which_null_equals_nothing(join: Any, emitted: list[Any]) -> None:
    table = ({"id": "a", "n": 1}, {"id": "a", "n": 2}, {"id": None, "n": 3})
    what = StaticJoin(join, ("key",), ("id",), ("n",), table)
    found = what.batch([{"key": "a"}, {"key": "b"}, {"key": None}])
    assert [(row["key"], row["n"]) if "n" in row else row["key"] for row in found] == emitted

from __future__ import annotations

from typing import Any

from streamproof.reference.spark.drop_duplicates import DropDuplicates, DuplicatesState


def rows(*times_us: int | None, key: str | None = "a") -> list[dict[str, Any]]:
    return [{"key": key, "at": time_us} for time_us in times_us]


def state(*columns: str, delay_us: int | None = 0, within: bool = False) -> DuplicatesState:
    return DuplicatesState(DropDuplicates(columns, "at", delay_us, within))


def times(emitted: Any) -> list[int | None]:
    return [row["at"] for row in emitted]


def test_the_first_of_equal_rows_is_emitted_and_nulls_are_equal() -> None:
    assert times(state("key").batch(rows(1_000, 2_000) + rows(3_000, 4_000, key=None), 0, 0)) == [1_000, 3_000]


def test_a_row_at_the_watermark_is_late_and_one_a_microsecond_later_is_not() -> None:
    assert times(state("key", "at").batch(rows(5_000, 5_001), 5, 5)) == [5_001]
    assert times(state("key", "at", delay_us=None).batch(rows(5_000, 5_001), 5, 5)) == [5_000, 5_001]
    assert times(state("key").batch(rows(None), 5, 5)) == [None]


def test_what_was_seen_is_forgotten_by_its_event_time_where_that_is_among_the_columns() -> None:
    by_time, by_key = state("key", "at"), state("key")
    for one in (by_time, by_key):
        one.batch(rows(5_000), 0, 5)
    assert by_time.seen == {}
    assert by_key.seen == {("a",): None}
    kept = state("key", "at")
    kept.batch(rows(5_001), 0, 5)
    assert kept.seen == {("a", 5_001): 5_001}


def test_within_the_watermark_a_duplicate_comes_again_a_delay_after_the_one_that_was_emitted() -> None:
    one = state("key", delay_us=4_000, within=True)
    assert times(one.batch(rows(10_000), 6, 6)) == [10_000]
    assert times(one.batch(rows(14_000), 6, 13)) == []  # seen still, and it doesn't prolong the time
    assert times(one.batch(rows(17_000), 13, 14)) == []  # forgotten at the end of this batch: 10 + 4 <= 14
    assert times(one.batch(rows(18_000), 14, 14)) == [18_000]


def test_within_the_watermark_the_delay_is_cut_to_milliseconds() -> None:
    one = state("key", delay_us=1_999, within=True)
    one.batch(rows(10_000), 0, 11)
    assert one.seen == {}

"""The processor of plans: counts of keys, late rows, and timers at the edges of the watermark."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.spark.processor import Processor, ProcessorState

S = 1_000_000


def state(wait_ms: int = 5_000, time: str | None = "ts") -> ProcessorState:
    return ProcessorState(Processor(("k",), time, "n", wait_ms))


def rows(*given: tuple[str | None, int | None]) -> list[dict[str, Any]]:
    return [{"k": key, "ts": None if seconds is None else seconds * S} for key, seconds in given]


def of(emitted: list[Any]) -> list[tuple[str | None, int]]:
    return [(row["k"], row["n"]) for row in emitted]


def test_each_batch_emits_the_new_count_of_its_keys() -> None:
    one = state()
    assert of(one.batch(rows(("a", 1), ("b", 1), ("a", 2)), 0, 0)) == [("a", 2), ("b", 1)]
    assert of(one.batch(rows(("a", 3), (None, 3)), 0, 0)) == [("a", 3), (None, 1)]
    assert one.batch([], 0, 0) == []


@pytest.mark.parametrize(("eviction_ms", "fired"), [(14_999, []), (15_000, [("a", -1)])])
def test_a_timer_fires_at_the_watermark_that_it_waits_for(eviction_ms: int, fired: list[Any]) -> None:
    one = state()
    one.batch(rows(("a", 20)), 0, 10_000)
    assert of(one.batch([], 0, eviction_ms)) == fired


def test_a_timer_without_a_wait_fires_in_its_own_batch_and_forgets_the_count() -> None:
    one = state(wait_ms=0)
    for _ in range(2):
        assert of(one.batch(rows(("a", 20)), 0, 10_000)) == [("a", 1), ("a", -1)]


def test_rows_of_a_later_batch_leave_the_timer_where_it_is() -> None:
    one = state()
    one.batch(rows(("a", 20)), 0, 10_000)
    one.batch(rows(("a", 21)), 0, 14_000)
    assert of(one.batch([], 0, 15_000)) == [("a", -2)]


@pytest.mark.parametrize(
    ("time", "taken"), [("ts", [("later", 1), ("untimed", 1)]), (None, [("late", 1), ("later", 1), ("untimed", 1)])]
)
def test_a_row_at_the_watermark_is_late_where_there_is_an_event_time(time: str | None, taken: list[Any]) -> None:
    assert of(state(time=time).batch(rows(("late", 10), ("later", 11), ("untimed", None)), 10_000, 10_000)) == taken

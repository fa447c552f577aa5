from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streamproof import Watermark
from streamproof.reference.spark.watermarks import MicroBatch, micro_batches

SECOND = 1_000_000


def one(*largest_us: int | None, delay_us: int = 0, **options: object) -> list[tuple[int, bool, int, int]]:
    largest = [{"events": time_us} for time_us in largest_us]
    return [*map(tuple, micro_batches(largest, {"events": delay_us}, **options))]  # type: ignore[arg-type]


def test_a_batch_without_data_follows_each_batch_whose_watermark_moved() -> None:
    assert one(10 * SECOND, 10 * SECOND, 12 * SECOND) == [
        (0, True, 0, 0),
        (0, False, 0, 10_000),
        (1, True, 10_000, 10_000),
        (2, True, 10_000, 10_000),
        (2, False, 10_000, 12_000),
    ]


def test_under_available_now_it_comes_at_the_end_alone_so_rows_are_late_a_batch_later() -> None:
    assert one(10 * SECOND, 11 * SECOND, 12 * SECOND, trigger="available_now") == [
        (0, True, 0, 0),
        (1, True, 0, 10_000),
        (2, True, 10_000, 11_000),
        (2, False, 11_000, 12_000),
    ]


def test_without_an_operator_that_asks_for_it_there_is_none() -> None:
    assert one(10 * SECOND, 12 * SECOND, follows=False) == [(0, True, 0, 0), (1, True, 0, 10_000)]


def test_the_largest_time_and_the_delay_are_cut_to_milliseconds_each() -> None:
    assert one(10_999, delay_us=1_999)[-1] == (0, False, 0, 9)
    assert one(10_999, delay_us=999)[-1] == (0, False, 0, 10)


def test_the_watermark_never_goes_back_and_is_never_less_than_1970() -> None:
    assert one(10 * SECOND, 5 * SECOND, None)[-1] == (2, True, 10_000, 10_000)
    assert one(10 * SECOND, delay_us=20 * SECOND) == [(0, True, 0, 0)]
    assert one(-1) == [(0, True, 0, 0)]


def test_of_several_watermarks_the_least_counts_and_a_quiet_input_holds_it_at_1970() -> None:
    largest = [{"left": 9 * SECOND}, {"right": 5 * SECOND}]
    delays = {"left": 0, "right": SECOND}
    assert micro_batches(largest, delays) == [
        MicroBatch(0, True, 0, 0),
        MicroBatch(1, True, 0, 0),
        MicroBatch(1, False, 0, 4_000),
    ]
    assert micro_batches(largest, delays, policy="max")[-1] == MicroBatch(1, True, 9_000, 9_000)


def test_without_a_watermark_it_stays_at_1970() -> None:
    assert micro_batches([{"events": SECOND}], {}) == [MicroBatch(0, True, 0, 0)]


def test_a_model_s_watermark_is_floored_to_milliseconds_and_compared_to_the_microsecond() -> None:
    watermark, noon = Watermark("1500 microseconds"), datetime(2024, 7, 15, 12, tzinfo=UTC)
    assert not watermark.is_late(noon)
    watermark.advance(noon + timedelta(microseconds=1_999))  # to noon, for both are floored
    late = [noon + timedelta(microseconds=by) for by in (-1, 0, 1)]
    assert [*map(watermark.is_late, late)] == [*map(watermark.has_closed, late)] == [True, True, False]
    assert [*map(watermark.has_timed_out, late)] == [True, False, False]
    assert watermark.is_late(noon.replace(tzinfo=None))
    watermark.advance(noon - timedelta(hours=1))
    assert watermark.is_late(noon)
    assert Watermark("1 second").is_late(datetime(1970, 1, 1, tzinfo=UTC))

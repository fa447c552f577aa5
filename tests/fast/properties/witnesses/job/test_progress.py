"""What a query's progress says of its micro-batches: state, late rows, restarts with state, and times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from streamproof.properties.witnesses.job.query.progress import Committed, time_of


def said(number: int, *state: tuple[int, int], **more: Any) -> dict[str, Any]:
    """Return the progress of a micro-batch; of each operator with state its rows, and how many it dropped."""
    operators = [{"numRowsTotal": rows, "numRowsDroppedByWatermark": dropped} for rows, dropped in state]
    return {"batchId": number, "timestamp": "1970-01-01T00:00:01.005Z", "stateOperators": operators, **more}


def noted(*starts: list[dict[str, Any]], time_ms: Any = None, others: tuple[int, ...] = ()) -> Committed:
    committed = Committed()
    for progress in starts:
        committed.note(progress, lambda one: one["batchId"] in others, time_ms)
    return committed


def test_a_query_without_state_or_without_a_micro_batch_restores_none() -> None:
    assert noted([]) == Committed()
    found = noted([said(0), {"batchId": 1}])
    assert (found.stateful, found.number, found.restored_in, found.last) == (False, -1, set(), {"batchId": 1})


def test_the_rows_of_the_last_state_count_and_all_that_were_dropped() -> None:
    found = noted([said(0, (9, 1)), said(1, (2, 1), (3, 4)), said(2)])
    assert (found.stateful, found.number, found.state_rows, found.dropped) == (True, 1, 5, 6)
    later = noted([said(0, (9, 1))], [said(1, (2, 0))])
    assert (later.state_rows, later.dropped, later.restored_in) == (2, 1, {1, 2})


def test_each_start_behind_a_micro_batch_that_left_state_is_one_with_state() -> None:
    found = noted([said(0, (0, 0))], [said(1, (1, 0))], [])
    assert found.restored_in == {2}
    assert [found.has_restored(numbers) for numbers in ([], [0, 1], [2], [1, 5])] == [False, False, True, True]
    assert not noted([said(0)]).has_restored([0, 1, 2])


def test_one_micro_batch_at_another_time_is_enough() -> None:
    assert not noted([said(0), said(1)]).other_times
    assert noted([said(0), said(1)], [said(2)], others=(0,)).other_times
    for time_ms, at_others in ((lambda number: 1_005, False), (lambda number: 1_005 + (number == 0), True)):
        assert noted([said(0), said(1)], time_ms=time_ms).at_other_times is at_others


@pytest.mark.parametrize(
    ("last", "watermark"),
    [(None, None), ({}, None), ({"eventTime": {}}, None), ({"eventTime": {"watermark": "now"}}, "now")],
)
def test_the_watermark_is_that_of_the_last_micro_batch(last: Any, watermark: str | None) -> None:
    assert Committed(last).watermark == watermark


def test_a_time_beyond_those_of_python_is_the_last_of_them() -> None:
    assert time_of("1970-01-01T00:00:01.005Z") == datetime(1970, 1, 1, 0, 0, 1, 5_000, UTC)
    assert time_of("+56791-06-09T00:00:00.000Z") == datetime.max.replace(tzinfo=UTC)

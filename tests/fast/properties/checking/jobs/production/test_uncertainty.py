"""Uncertainty of what is expected of a run: by the order of its batches, and by rows that are gone."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.checking.jobs.production.times import Uncertain, place_of
from streamproof.properties.checking.jobs.production.uncertainty import _maybe_late, uncertain
from streamproof.properties.generators.columns.forms.rows import Row
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.outcomes.equality import TWELVE_DIGITS
from streamproof.properties.witnesses.job.plan.plans import Plan

HOUR_MS = 3_600_000
SOURCE = resolve(Input("user string, at timestamp, total int", key="user", name="clicks")).source


def row(user: str, hour: int, total: int) -> Row:
    return {"user": user, "at": datetime.fromtimestamp(hour * 3600, UTC), "total": total}


def judging(**of_run: Any) -> Any:
    """Return the judging of a run whose oracle expects the rows that it is given as a history."""
    return SimpleNamespace(
        run=SimpleNamespace(**{"otherwise": None, "lacking": (), "earlier_ms": 0, **of_run}),
        declared=SimpleNamespace(plan=Plan()),
        exact=False,
        options=SimpleNamespace(equality=TWELVE_DIGITS),
        key_columns=lambda row: ("user",),
        given=lambda history: history,
        expected=lambda histories: [Expected("end", [history]) for history in histories],
        emitted=lambda expected: (expected, []),
        at_end=lambda expected: [*expected.rows[-1]],
    )


@pytest.mark.parametrize(("hour", "doubtful"), [(1, True), (2, False)])
def test_a_row_that_another_order_of_the_batches_changes_is_in_doubt(hour: int, doubtful: bool) -> None:
    rows = [row("a", 1, 5), row("a", 2, 7), row("b", 1, 9)]
    near = uncertain(judging(otherwise=[row("a", 1, 6), *rows[1:]]), Expected("end", [rows]))
    assert near.has(row("a", hour, 0)) == doubtful
    assert not near.has(row("b", hour, 0))
    # Whichever side has it alone, and of whatever key where the key isn't known.
    for ours, theirs in ((rows, rows[1:]), (rows[1:], rows)):
        near = uncertain(judging(otherwise=theirs), Expected("end", [ours]))
        assert near.has(row("a", hour, 0)) == doubtful
    near.key_columns = lambda row: ()
    assert near.has(row("b", hour, 0)) == doubtful


def late_run(by_batches: bool) -> Any:
    """Return the judging of two batches under watermarks of two and of four hours."""
    one = judging(
        watermarks_ms=[2 * HOUR_MS, 4 * HOUR_MS],
        history=JobHistory(tuple(tuple(Arrival("clicks", row("a", hour, hour)) for hour in range(1, 6)) for _ in "ab")),
    )
    one.by_batches, one.sources = by_batches, [SOURCE]
    return one


@pytest.mark.parametrize(("by_batches", "second"), [(False, {0, 1, 2, 3}), (True, {2, 3})])
def test_rows_up_to_a_batch_s_watermark_may_be_late_and_of_rules_those_above_the_one_before(
    by_batches: bool, second: set[int]
) -> None:
    assert [*_maybe_late(late_run(by_batches))] == [{0, 1}, second]


@pytest.mark.parametrize("exact", [True, False])
def test_rows_that_may_be_late_are_in_doubt_with_what_their_durations_reach(exact: bool) -> None:
    one = late_run(by_batches=True)
    one.exact, one.declared = exact, SimpleNamespace(plan=Plan(delays_us=[1], durations_us=[HOUR_MS * 1_000]))
    near = uncertain(one, Expected("end", [[]]))
    assert [near.has(row("a", hour, 0)) for hour in range(7)] == [not exact and hour <= 5 for hour in range(7)]
    one.declared = SimpleNamespace(plan=Plan(durations_us=[HOUR_MS * 1_000]))  # without a watermark nothing is late
    assert not uncertain(one, Expected("end", [[]])).has(row("a", 1, 0))


def test_of_an_oracle_without_batches_only_what_late_rows_change_is_in_doubt() -> None:
    one = late_run(by_batches=False)
    one.declared = SimpleNamespace(plan=Plan(delays_us=[1]))
    whole = [row("a", 1, 10), row("a", 9, 1)]
    one.expected = lambda histories: [Expected("end", [[row("a", 1, len(histories[0].arrivals)), row("a", 9, 1)]])]
    near = uncertain(one, Expected("end", [whole]))
    assert [near.has(each) for each in whole] == [True, False]


def test_rows_with_times_up_to_those_that_are_gone_are_in_doubt_whatever_their_key() -> None:
    near = uncertain(judging(lacking=["clicks"], earlier_ms=2 * HOUR_MS), Expected("end", [[]]))
    assert near.has(row("a", 2, 0))
    assert near.has({"user": "a", "total": 1})
    assert not near.has(row("a", 3, 0))
    window = {"start": row("a", 1, 0)["at"], "end": row("a", 5, 0)["at"]}
    assert near.has({"user": "a", "window": window})  # it began before


@pytest.mark.parametrize(
    ("start", "end", "overlaps"),
    [(0, 1, False), (0, 2, True), (1, 3, True), (2, 4, True), (3, 4, False), (3, 3, True), (1, 1, True), (0, 9, True)],
)
def test_spans_of_one_key_of_several_columns_overlap_as_windows_do(start: int, end: int, overlaps: bool) -> None:
    def spanning(item: int, *hours: int) -> Row:
        times = [datetime.fromtimestamp(hour * 3600, UTC) for hour in hours]
        return {"user": "a", "item": item, "window": dict(zip(("start", "end"), times, strict=False))}

    near = Uncertain(lambda row: ("user", "item"))
    near.add(spanning(1, 1, 3))
    assert near.has(spanning(1, start, end)) == overlaps
    assert not near.has(spanning(2, start, end))
    near.add(spanning(2, 5, 6), around_ms=HOUR_MS)
    assert [near.has(spanning(2, hour, hour)) for hour in range(3, 9)] == [False, True, True, True, True, False]
    assert near.has(spanning(2))


def test_rows_of_one_place_have_the_same_times_in_all_columns() -> None:
    first, *others = ({"start": row("a", 1, 0)["at"], "end": row("a", end, 0)["at"], "n": end % 2} for end in (2, 3, 2))
    assert [place_of(other) == place_of(first) for other in others] == [False, True]
    assert place_of({**first, "n": 9}) == place_of(first)

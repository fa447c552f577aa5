"""Histories that have left their cohort: rows of another key move the watermark in place of the clock schedule."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.histories.drawing import draw_histories
from streamproof.properties.generators.columns.histories.standing_alone import standing_alone, without_clock
from streamproof.properties.generators.columns.inputs import Input, ResolvedInput
from streamproof.properties.generators.columns.model import Arrival, JobHistory, Unreadable
from streamproof.properties.generators.columns.resolving import resolve

CLICKS = resolve(Input("user string, at timestamp, amount bigint", key="user"))
PAID = resolve(Input("user string, at timestamp_ntz", key="user", name="paid"))


def click(at: int, user: str = "a") -> Arrival:
    return Arrival("events", {"user": user, "at": from_microseconds(at), "amount": 7})


def times(history: JobHistory, *inputs: ResolvedInput) -> list[list[tuple[Any, int]]]:
    sources = {given.name: given.source for given in inputs or (CLICKS,)}
    return [[(row["user"], sources[name].time_us(row)) for name, row in batch] for batch in history.batches]


def test_without_the_clock_no_batch_is_empty() -> None:
    one = click(5)
    assert without_clock(JobHistory(((), (one,), (), (one,), ()), (1, 2, 3, 4, 5))) == JobHistory(((one,), (one,)))
    assert without_clock(JobHistory(((), ()), (1, 2))) == JobHistory(((),))


def test_rows_of_another_key_move_the_watermark_where_the_clock_does() -> None:
    history = JobHistory(((), (click(50),), (), (click(60),), ()), (40, 50, 70, 80, 90), "h")
    found = standing_alone(history, [CLICKS])
    assert times(found[0]) == [[("a", 50)], [("a", 60)]]
    assert times(found[-1]) == [[("b", 40)], [("a", 50), ("b", 70)], [("a", 60), ("b", 90)]]
    assert len(found) == 8
    assert [len(one.arrivals) for one in found] == sorted(len(one.arrivals) for one in found)
    assert all(one.clock == () and one.name == "h" for one in found)
    assert {row["amount"] for _, row in found[-1].arrivals if row["user"] == "b"} == {1}


def test_where_its_own_rows_are_at_the_clock_nothing_is_added() -> None:
    history = JobHistory(((click(40),), (click(50),)), (40, 50))
    assert standing_alone(history, [CLICKS]) == [without_clock(history)]
    assert standing_alone(without_clock(history), [CLICKS]) == [without_clock(history)]


def test_no_row_moves_it_that_is_another_row_of_one_event() -> None:
    history = JobHistory(((), (click(50),), (click(60),)), (40, 50, 70))
    pushed = [alone for alone in standing_alone(history, [CLICKS]) if len(alone.arrivals) > 3]
    assert pushed  # of two rows that push, each has the plainest amount, and another time
    by_amount = [replace(CLICKS, identity=("amount",))]
    assert not {*map(repr, standing_alone(history, by_amount))} & {*map(repr, pushed)}


def test_it_ends_with_the_first_batch_that_differs() -> None:
    history = JobHistory(((), (click(50),), (), (), (click(95),)), (40, 50, 70, 80, 95))
    found = [times(one) for one in standing_alone(history, [CLICKS], 3)]
    assert found == [
        [[("a", 50)]],
        [[("a", 50), ("b", 80)]],
        [[("b", 40)], [("a", 50)]],
        [[("b", 40)], [("a", 50), ("b", 80)]],
    ]


def test_with_available_now_it_may_end_a_batch_before() -> None:
    history = JobHistory(((click(50),), (), (), (click(95),)), (50, 70, 80, 95))

    def ends(first: int) -> set[int]:
        found = standing_alone(history, [CLICKS], first, sooner=True)
        return {max(time for batch in times(one) for _, time in batch) for one in found}

    assert ends(2) == {50, 70, 80}
    assert ends(3) == {95}


def test_with_available_now_the_watermark_may_move_a_batch_sooner() -> None:
    history = JobHistory(((), (), (click(50),), (), (), (click(95),)), (40, 45, 50, 70, 80, 95))
    found = [times(one) for one in standing_alone(history, [CLICKS], sooner=True)]
    assert [[("b", 40)], [("b", 45)], [("a", 50), ("b", 70)], [("b", 80)], [("a", 95)]] in found
    assert [[("b", 45)], [("a", 50), ("b", 80)], [("a", 95)]] in found
    assert all([("b", 40)] not in times(one) for one in standing_alone(history, [CLICKS]))


def test_the_watermark_is_moved_on_every_input() -> None:
    history = JobHistory(((click(40),), ()), (40, 60))
    found = standing_alone(history, [CLICKS, PAID])
    assert times(found[-1], CLICKS, PAID) == [[("a", 40), ("b", 60), ("b", 60)]]
    assert [name for name, _ in found[-1].arrivals] == ["events", "events", "paid"]
    moved = JobHistory(((click(60),), ()), (60, 60))
    assert times(standing_alone(moved, [CLICKS, PAID])[-1], CLICKS, PAID) == [[("a", 60), ("b", 60)]]


def test_a_history_without_rows_is_moved_too() -> None:
    found = standing_alone(JobHistory(((), ()), (40, 60)), [CLICKS])
    assert [times(one) for one in found] == [[[]], [[("a", 60)]]]


@pytest.mark.parametrize(
    "given",
    [
        Input("n int, k bigint, at timestamp, d date not null", key=("n", "k")),
        Input("k string, at timestamp, v string", key="k", keys=["x", "y"], values={"v": ["only"]}),
        Input("k string, at timestamp", key="k", keys=["x"]),
        Input("k date, at timestamp", time="at", key="k"),
        Input("at timestamp, v struct<a: int>"),
        Input(
            sample=pa.table({"k": ["u"], "at": [datetime(2020, 1, 1, tzinfo=UTC)], "v": ["shop"]}),
            key="k",
            values={"k": ["v", "w"]},
        ),
    ],
)
def test_what_moves_it_is_a_row_of_the_input_like_any_other(given: Input) -> None:
    resolved = resolve(given)
    for history in draw_histories([resolved], [60_000_000], 20, 0):
        own = [arrival.row for arrival in history.arrivals]
        added = [arrival.row for arrival in standing_alone(history, [resolved])[-1].arrivals if arrival.row not in own]
        table = pa.Table.from_pylist([dict(row) for row in added], resolved.source.schema)
        for column in table.schema:
            assert column.nullable or not table.column(column.name).null_count
        for row in added:
            if given.keys:
                assert resolved.source.key_of(row) in resolved.keys
            for name, pool in resolved.pools.items():
                assert row[name] in pool


def test_an_unreadable_record_stays_with_the_rows_before_it() -> None:
    records = tuple(Unreadable(batch, "events", {"user": "a"}, "null") for batch in (0, 1, 2, 3))
    drawn = replace(JobHistory(((click(50),), (), (click(60),), ()), (50, 50, 60, 60), "h"), unreadable=records)
    found = standing_alone(drawn, [CLICKS])[0]
    assert times(found) == [[("a", 50)], [("a", 60)]]
    assert [one.batch for one in found.unreadable] == [0, 0, 1, 1]

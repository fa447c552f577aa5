"""Shrinking a job's history: to few rows, whole times, simple keys and values, under the clock of its cohort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.generators.columns.histories.drawing import draw_histories
from streamproof.properties.generators.columns.histories.shrinking import shrink, size
from streamproof.properties.generators.columns.histories.standing_alone import without_clock
from streamproof.properties.generators.columns.inputs import Input, ResolvedInput
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve, resolve_all

MINUTE = 60_000_000
GAP, DELAY = 30 * MINUTE, 10 * MINUTE
INPUTS = resolve_all(
    [
        Input("user string, at timestamp, amount bigint, note string, d decimal(10,2)", key="user", name="events"),
        Input("buyer string, at timestamp, price double", key="buyer", name="paid"),
    ]
)
Placed = tuple[int, Arrival]


def time_us(arrival: Arrival) -> int:
    return INPUTS[arrival.input == "paid"].source.time_us(arrival.row)


def placed(history: JobHistory) -> list[Placed]:
    return [(number, arrival) for number, batch in enumerate(history.batches) for arrival in batch]


def gap_met(history: JobHistory) -> bool:
    """Two events of a key exactly a gap apart, the later one in a later batch."""
    return any(
        one.input == other.input == "events"
        and one.row["user"] == other.row["user"]
        and time_us(other) - time_us(one) == GAP
        and first < second
        for first, one in placed(history)
        for second, other in placed(history)
    )


def late_amount(history: JobHistory) -> bool:
    """A late event with an amount."""
    return any(
        number
        and arrival.input == "events"
        and time_us(arrival) <= history.clock[number - 1] - DELAY
        and arrival.row["amount"]
        for number, arrival in placed(history)
    )


def joined_null(history: JobHistory) -> bool:
    """An event without an amount, and a payment of its key less than a gap after it."""
    return any(
        one.input == "events"
        and other.input == "paid"
        and one.row["user"] == other.row["buyer"]
        and one.row["amount"] is None
        and 0 < time_us(other) - time_us(one) < GAP
        for one in history.arrivals
        for other in history.arrivals
    )


def asked(bad: Callable[[JobHistory], bool], rounds: list[int]) -> Callable[[Sequence[JobHistory]], list[bool]]:
    def fails(candidates: Sequence[JobHistory]) -> list[bool]:
        rounds.append(len(candidates))
        return [bad(candidate) for candidate in candidates]

    return fails


def failing(
    bad: Callable[[JobHistory], bool], count: int = 4, inputs: Sequence[ResolvedInput] = INPUTS
) -> list[JobHistory]:
    drawn = (
        history for seed in range(9) for history in draw_histories(inputs, [GAP, DELAY], 200, seed, delay_us=DELAY)
    )
    found = [history for history in drawn if bad(history)][:count]
    assert len(found) == count
    return found


@pytest.mark.parametrize(("bad", "rows", "batches"), [(gap_met, 2, 2), (late_amount, 1, 1), (joined_null, 2, 1)])
def test_what_fails_shrinks_to_what_makes_it_fail(bad: Callable[[JobHistory], bool], rows: int, batches: int) -> None:
    for history in failing(bad):
        rounds: list[int] = []
        small = shrink(history, INPUTS, asked(bad, rounds))
        assert bad(small)
        assert len(rounds) <= 8
        assert max(rounds) < 2500
        assert (len(small.arrivals), len(without_clock(small).batches)) == (rows, batches)
        for name, row in small.arrivals:
            assert row["user" if name == "events" else "buyer"] == "a"
            assert row["at"].second == row["at"].microsecond == 0
            if name == "events":
                assert (row["note"], row["d"]) == ("", Decimal("0.00"))
                assert row["amount"] == {gap_met: 0, late_amount: 1, joined_null: None}[bad]
            else:
                assert row["price"] == 0.0


def test_every_candidate_is_smaller_and_under_the_same_clock() -> None:
    (history,) = failing(gap_met, 1)

    def fails(candidates: Sequence[JobHistory]) -> list[bool]:
        for candidate in candidates:
            assert candidate.clock == history.clock
            assert candidate.name == history.name
            assert size(candidate, INPUTS) < size(history, INPUTS)
            assert all(time_us(arrival) <= candidate.clock[number] for number, arrival in placed(candidate))
            for name, row in candidate.arrivals:
                pa.Table.from_pylist([dict(row)], INPUTS[name == "paid"].source.schema)
        sizes = [size(candidate, INPUTS) for candidate in candidates]
        assert sizes == sorted(sizes)
        assert len(set(sizes)) == len(sizes)
        return [gap_met(candidate) for candidate in candidates]

    shrink(history, INPUTS, fails)


def test_without_late_rows_no_candidate_has_one() -> None:
    for history in draw_histories(INPUTS, [GAP], 20, 0, late=False, delay_us=DELAY):

        def fails(candidates: Sequence[JobHistory]) -> list[bool]:
            for candidate in candidates:
                for number, arrival in placed(candidate):
                    assert not number or time_us(arrival) > candidate.clock[number - 1] - DELAY
            return [len(candidate.arrivals) > 1 for candidate in candidates]

        if len(history.arrivals) > 1:
            assert len(shrink(history, INPUTS, fails, delay_us=DELAY).arrivals) == 2


def test_a_users_own_values_keys_and_rows_stay_within_what_was_given() -> None:
    schema = "user string, at timestamp, state string, amount bigint"
    pooled = resolve(Input(schema, key="user", values={"state": ["shipped", "paid"], "user": ["u1", "u22"]}))
    real = resolve(Input(schema, key="user", keys=["ann", "bob", None]))
    sampled = resolve(
        Input(
            sample=pa.table(
                {
                    "user": ["x", "y"],
                    "at": [datetime(2020, 1, 1, tzinfo=UTC)] * 2,
                    "state": ["open", "paid"],
                    "amount": [700, 800],
                }
            ),
            key="user",
        )
    )

    def small(given: ResolvedInput) -> list[dict[str, Any]]:
        found = [
            shrink(history, [given], asked(lambda other: len(other.arrivals) >= 2, []))
            for history in failing(lambda other: len(other.arrivals) >= 2, 5, [given])
        ]
        return [dict(row) for history in found for _, row in history.arrivals]

    assert {(row["user"], row["state"], row["amount"]) for row in small(pooled)} == {("u1", "paid", 0)}
    assert {row["user"] for row in small(real)} <= {"ann", "bob"}
    assert {(row["state"], row["amount"]) for row in small(sampled)} <= {("open", 700), ("paid", 800)}


def test_keys_of_two_inputs_become_simpler_together() -> None:
    inputs = resolve_all(
        [
            Input("id int, part string, at timestamp", key=("id", "part"), name="left"),
            Input("at timestamp_ntz, part string, id bigint", key=("id", "part"), name="right"),
        ]
    )

    def met(history: JobHistory) -> bool:
        lefts = {tuple(row[c] for c in ("id", "part")) for name, row in history.arrivals if name == "left"}
        rights = {tuple(row[c] for c in ("id", "part")) for name, row in history.arrivals if name == "right"}
        return bool(lefts & rights)

    for history in failing(met, 5, inputs):
        rows = [row for _, row in shrink(history, inputs, asked(met, [])).arrivals]
        assert [(row["id"], row["part"]) for row in rows] == [(1, "a")] * 2


@pytest.mark.parametrize(
    "kind",
    [
        "date",
        "timestamp_ntz",
        "binary",
        "boolean",
        "array<int>",
        "map<string,int>",
        "struct<a: int>",
        "decimal(3,3)",
        "void",
    ],
)
def test_values_of_any_type_shrink_and_stay_of_their_type(kind: str) -> None:
    given = resolve(Input(f"k bigint, at timestamp, v {kind}", time="at", key="k"))
    for history in draw_histories([given], [GAP], 12, 0):
        small = shrink(history, [given], asked(lambda other: len(other.arrivals) >= 1, []))
        ((_, row),) = small.arrivals
        pa.Table.from_pylist([dict(row)], given.source.schema)
        assert row["k"] == 1


def test_a_history_without_a_clock_shrinks_too() -> None:
    history = without_clock(failing(gap_met, 1)[0])
    small = shrink(history, INPUTS, asked(gap_met, []))
    assert len(small.arrivals) == 2
    assert small.clock == ()

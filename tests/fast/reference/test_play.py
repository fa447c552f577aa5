from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.core.clocks import Clock
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, Delivery, History, Line
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Accepted, Change, Dropped, Output, Record, Table, fold


class Echo:
    """A behaviour that emits every arrival with the clock, and under `.` what moves the clock alone."""

    def __init__(self, definition: object, clock: Clock) -> None:
        self.clock = clock

    def arrive(self, record: Record) -> list[Output]:
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        return [Change(record.key, None, self.clock.now, record.timestamp)]

    def advance(self) -> list[Output]:
        return [Change(".", None, self.clock.now, 0)]


def record(timestamp: int, key: str | None = "a") -> Record:
    return Record("events", key, "x", timestamp)


def history(*lines: Line, clock: str = "stream_time", **options: Any) -> History:
    return History("session_windows", {"gap_ms": 10, **options}, lines, clock)


def echoed(*lines: Line, clock: str = "stream_time") -> list[tuple[int, int, str, int]]:
    """Arrival, batch, key and clock of all that the echo emits."""
    found = []
    for arrival, batch, output in play(history(*lines, clock=clock), Echo).entries:
        assert isinstance(output, Change)
        found.append((arrival, batch, output.key, output.value))
    return found


def test_arrivals_count_from_0_and_cuts_are_not_counted() -> None:
    entries = play(history(record(0), CUT, record(0), record(0)), Echo).entries
    assert [entry.arrival for entry in entries if entry.output.key == "a"] == [0, 1, 2]


def test_clock_advances_are_counted() -> None:
    entries = play(history(record(0), ClockAdvance(5), record(0)), Echo).entries
    assert [entry.arrival for entry in entries if entry.output.key == "a"] == [0, 2]


def test_batches_are_the_stretches_between_cuts() -> None:
    entries = play(history(record(0), CUT, CUT, record(0)), Echo).entries
    assert [entry.batch for entry in entries if entry.output.key == "a"] == [0, 2]


def test_what_a_cut_sets_off_belongs_to_the_batch_and_the_arrival_after_it() -> None:
    assert echoed(record(0), CUT, record(5))[1] == (1, 1, ".", 0)


def test_what_a_last_cut_sets_off_belongs_to_the_last_arrival() -> None:
    assert echoed(record(0), CUT)[1] == (0, 1, ".", 0)


def test_what_the_end_sets_off_belongs_to_the_last_batch_and_the_last_arrival() -> None:
    assert echoed(record(0), CUT, record(5))[-1] == (1, 1, ".", 5)


def test_a_history_without_arrivals_counts_from_0_too() -> None:
    assert echoed(CUT) == [(0, 1, ".", 0), (0, 1, ".", 0)]


def test_an_empty_history_ends_too() -> None:
    assert echoed() == [(0, 0, ".", 0)]


def test_the_batch_clock_moves_at_cuts_and_at_the_end() -> None:
    assert echoed(record(5), CUT, record(7), clock="batch") == [
        (0, 0, "a", 0),
        (1, 1, ".", 5),
        (1, 1, "a", 5),
        (1, 1, ".", 7),
    ]


def test_a_clock_advance_moves_stream_time_at_once() -> None:
    assert echoed(ClockAdvance(5), record(1)) == [(0, 0, ".", 5), (1, 0, "a", 5), (1, 0, ".", 5)]


def test_a_record_is_accepted_with_what_the_clock_said_then() -> None:
    played = play(history(record(5), record(3), CUT, record(9)), Echo)
    assert played.accepted == [Accepted(record(5), 5), Accepted(record(3), 5), Accepted(record(9), 9)]


def test_a_dropped_record_is_not_accepted() -> None:
    assert play(history(record(0, None)), Echo).accepted == []


def test_the_clock_at_the_end_is_reported() -> None:
    assert play(history(record(5), clock="batch"), Echo).clock == 5


def test_each_batch_has_a_step_before_its_cut_moves_the_clock() -> None:
    played = play(history(record(5), record(6), CUT, CUT, record(7), clock="batch"), Echo)
    assert played.steps == [(2, 2, 0), (3, 2, 6), (6, 3, 7)]


def test_the_last_step_includes_what_the_end_set_off() -> None:
    played = play(history(record(5), CUT, record(7), emit="close"))
    assert played.steps[-1] == (len(played.entries), len(played.accepted), played.clock)


def test_the_reference_is_played_where_nothing_else_is_given() -> None:
    assert play(history(record(5))).entries == [Entry(0, 0, Change("a", (5, 5), 1, 5))]


def test_the_table_is_the_folded_changelog() -> None:
    assert play(history(record(0), record(5))).result == {("a", (0, 5)): (2, 5)}


def test_a_delivery_to_an_operator_without_channels_is_refused() -> None:
    with pytest.raises(BadInput, match="history: arrival 0: no message waits, because delivery is immediate"):
        play(history(Delivery("response", "r", None)))


# Folding, which play's table rests on.


@pytest.mark.parametrize(
    ("changes", "table"),
    [
        ([], {}),
        ([Change("a", None, 1, 0)], {("a", None): (1, 0)}),
        ([Change("a", None, 1, 0), Change("a", None, 2, 5)], {("a", None): (2, 5)}),
        ([Change("a", None, 1, 0), Change("a", None, None, 5)], {}),
        ([Change("a", None, None, 0)], {}),
        ([Change("a", None, None, 0), Change("a", None, 1, 5)], {("a", None): (1, 5)}),
        ([Change("a", (0, 1), 1, 1), Change("a", (0, 2), None, 2)], {("a", (0, 1)): (1, 1)}),
        ([Change("a", None, 0, 0), Change("b", None, [], 0)], {("a", None): (0, 0), ("b", None): ([], 0)}),
        ([Dropped("a", "late"), Dropped(None, "null key")], {}),
    ],
)
def test_a_changelog_folds_to_its_last_values(changes: list[Output], table: dict[Any, Any]) -> None:
    assert fold(changes) == table


def test_changes_are_folded_into_a_given_table() -> None:
    table: Table = {("a", None): (1, 0)}
    assert fold([Change("b", None, 2, 5)], table) is table
    assert table == {("a", None): (1, 0), ("b", None): (2, 5)}

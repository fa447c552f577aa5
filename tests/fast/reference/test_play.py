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


ECHOED: dict[str, tuple[list[Line], str, list[tuple[int, int, str, int]]]] = {
    "an empty history ends too": ([], "stream_time", [(0, 0, ".", 0)]),
    "without arrivals one counts from 0 too": ([CUT], "stream_time", [(0, 1, ".", 0), (0, 1, ".", 0)]),
    "what a last cut and the end set off belongs to the last arrival": (
        *([record(5), CUT], "stream_time"),
        [(0, 0, "a", 5), (0, 1, ".", 5), (0, 1, ".", 5)],
    ),
    "what a cut sets off belongs to the batch and the arrival after it, and cuts are no arrivals": (
        *([record(0), CUT, CUT, record(5)], "stream_time"),
        [(0, 0, "a", 0), (1, 1, ".", 0), (1, 2, ".", 0), (1, 2, "a", 5), (1, 2, ".", 5)],
    ),
    "the batch clock moves at cuts and at the end": (
        *([record(5), CUT, record(7)], "batch"),
        [(0, 0, "a", 0), (1, 1, ".", 5), (1, 1, "a", 5), (1, 1, ".", 7)],
    ),
    "a clock advance is an arrival and moves stream time at once": (
        *([ClockAdvance(5), record(1)], "stream_time"),
        [(0, 0, ".", 5), (1, 0, "a", 5), (1, 0, ".", 5)],
    ),
}


@pytest.mark.parametrize(("lines", "clock", "expected"), ECHOED.values(), ids=ECHOED)
def test_what_is_emitted_has_its_arrival_its_batch_and_the_clock(
    lines: list[Line], clock: str, expected: list[tuple[int, int, str, int]]
) -> None:
    assert echoed(*lines, clock=clock) == expected


def test_a_record_is_accepted_with_what_the_clock_said_then() -> None:
    played = play(history(record(5), record(3), CUT, record(9)), Echo)
    assert played.accepted == [Accepted(record(5), 5), Accepted(record(3), 5), Accepted(record(9), 9)]


def test_a_dropped_record_is_not_accepted() -> None:
    assert play(history(record(0, None)), Echo).accepted == []


def test_each_batch_has_a_step_before_its_cut_moves_the_clock() -> None:
    played = play(history(record(5), record(6), CUT, CUT, record(7), clock="batch"), Echo)
    assert played.steps == [(2, 2, 0), (3, 2, 6), (6, 3, 7)]


def test_the_reference_is_played_where_nothing_else_is_given() -> None:
    played = play(history(record(5), clock="batch"))
    assert played.entries == [Entry(0, 0, Change("a", (5, 5), 1, 5))]
    assert (played.result, played.clock, played.steps) == ({("a", (5, 5)): (1, 5)}, 5, [(1, 1, 5)])


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

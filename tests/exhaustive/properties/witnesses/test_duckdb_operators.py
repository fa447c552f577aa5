from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from registrations import change
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.registration.sql import AGGREGATES
from streamproof.properties.witnesses.duckdb.witness import DuckDBWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, Delivery, History, Line, Record
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Key, Window
from streamproof.reference.definitions.declarations import Definition

HISTORIES = 60
ANYTHING = ["x", 1, 2.5, True, 0, "", [1, None], {"a": [2]}, 2**70]
NUMBERS = [1, -3, 0, 0.5, 7]

KINDS: dict[str, list[dict[str, Any]]] = {
    "window_aggregate": [
        {"size": 10, "aggregate": "average"},
        {"size": 10, "step": 4, "aggregate": "list"},
        {"size": 9, "step": 4, "late": "update", "retention_ms": 12, "aggregate": "sum"},
        {"size": 30, "step": 20, "early": {"every_tuples": 2}, "aggregate": "max"},
        {"size": 30, "early": {"every_ms": 7}, "aggregate": "list"},
        {"size": 10, "step": 4, "storage": "full"},
        {"size": 30, "storage": "full", "early": {"every_tuples": 3}, "late": "update", "retention_ms": 12},
        {"size": 3, "unit": "tuple", "aggregate": "list"},
        {"size": 5, "step": 2, "unit": "tuple", "storage": "full", "early": {"every_tuples": 2}},
        {"size": 5, "step": 2, "unit": "tuple", "early": {"every_ms": 7}, "aggregate": "min"},
        {"size": 5, "type": "session", "aggregate": "list"},
        {"size": 5, "type": "session", "late": "update", "retention_ms": 12, "aggregate": "sum"},
        {"size": 5, "type": "session", "late": "update", "retention_ms": 12, "early": {"every_tuples": 2}},
        {"size": 12, "type": "session", "early": {"every_ms": 7}, "aggregate": "list"},
        {"size": 4, "type": "session", "storage": "full", "late": "update", "retention_ms": 9},
        {"size": 9, "type": "session", "storage": "full", "early": {"every_tuples": 2}},
    ],
    "range_aggregate": [
        *({"preceding_ms": 7, "aggregate": aggregate} for aggregate in ("count", "sum", "min", "max", "average")),
        {"preceding_ms": 0, "aggregate": "list"},
        {"preceding_ms": 30, "aggregate": "list"},
    ],
    "stream_stream_join": [
        {"join": join, "emit": emit, "before_ms": 4, "after_ms": 6, "grace_ms": grace, "null_key": null_key}
        for join, emit, grace, null_key in [
            ("inner", "arrival", 0, "drop"),
            ("inner", "arrival", 5, "keep"),
            ("left", "arrival", 0, "keep"),
            ("left", "arrival", 5, "drop"),
            ("left", "eager", 0, "keep"),
            ("left", "close", 5, "keep"),
            ("outer", "eager", 5, "drop"),
            ("outer", "close", 0, "keep"),
        ]
    ],
    "stream_table_join": [
        {"join": join, "null_key": null_key} for join in ("left", "inner") for null_key in ("drop", "keep")
    ],
    "table_table_join": [{"join": join} for join in ("inner", "left", "outer")],
    "table_aggregate": [
        {"group_by": "g"},
        {"group_by": "g", "aggregate": "sum", "field": "n"},
        {"group_by": "g", "aggregate": "list"},
        {"group_by": "g", "aggregate": "list", "field": "n"},
    ],
    "windowed_table": [
        {"size_ms": 10, "step_ms": 4, "aggregate": "list"},
        {"size_ms": 10, "emit": "close", "grace_ms": 8, "aggregate": "sum"},
        {"size_ms": 10, "step_ms": 4, "grace_ms": 8, "to_stream": "window_in_value"},
        {"size_ms": 10, "step_ms": 5, "emit": "close", "to_stream": "window_in_value", "aggregate": "max"},
        {"size_ms": 10, "grace_ms": 8, "with": "table", "to_stream": "window_in_key", "aggregate": "list"},
        {"size_ms": 10, "emit": "close", "with": "table"},
        {"size_ms": 10, "step_ms": 5, "grace_ms": 8, "with": "table", "to_stream": "window_in_value"},
        {"size_ms": 10, "emit": "close", "with": "table", "to_stream": "window_in_value"},
        {"size_ms": 10, "step_ms": 5, "grace_ms": 8, "with": "windowed_table", "shift_ms": 5, "aggregate": "list"},
        {"size_ms": 10, "with": "windowed_table", "join": "left", "shift_ms": -10, "aggregate": "min"},
        {"size_ms": 10, "emit": "close", "with": "windowed_table", "join": "outer", "shift_ms": 10},
        {"size_ms": 10, "grace_ms": 8, "with": "windowed_table", "join": "left", "to_stream": "window_in_value"},
        *(
            {
                **{"size_ms": 10, "step_ms": 5, "emit": "close", "with": "windowed_table", "join": join},
                **{"shift_ms": shift, "to_stream": "window_in_value", "aggregate": "list"},
            }
            for join, shift in [("inner", 5), ("left", -5), ("outer", 0)]
        ),
        {"size_ms": 10, "step_ms": 5, "grace_ms": 8, "with": "stream_lookup", "window_start": "w", "aggregate": "list"},
        {"size_ms": 10, "emit": "close", "with": "stream_lookup", "window_start": "w"},
        {"size_ms": 10, "step_ms": 5, "grace_ms": 8, "with": "table_lookup", "window_start": "w", "aggregate": "sum"},
        {"size_ms": 10, "emit": "close", "with": "table_lookup", "window_start": "w"},
    ],
    "foreign_key_join": [
        {"join": "inner", "foreign_key": "f"},
        {"join": "inner", "foreign_key": "f", "null_foreign_key": "keep", "protocol": "answer"},
        {"join": "left", "foreign_key": "f"},
        {"join": "left", "foreign_key": "f", "null_foreign_key": "keep", "protocol": "answer"},
    ],
    "one_to_many_join": [
        {"join": "inner", "foreign_key": "f", "null_foreign_key": "keep"},
        {"join": "inner", "foreign_key": "f", "protocol": "answer"},
        {"join": "left", "foreign_key": "f"},
        {"join": "left", "foreign_key": "f", "null_foreign_key": "keep"},
    ],
}


def value_of(draw: random.Random, operator: str, options: dict[str, Any], side: str) -> Any:
    aggregated = side == "events" or options.get("with") == "windowed_table"
    if operator == "table_aggregate":
        value = {"g": draw.choice(["x", "y", "y", None]), "n": draw.choice(NUMBERS)}
        return None if draw.random() < 0.2 else value
    if operator in ("foreign_key_join", "one_to_many_join") and side == "left":
        value = {"f": draw.choice(["r", "r1", "r1", None]), "n": draw.choice(ANYTHING)}
        return None if draw.random() < 0.2 else value
    if "window_start" in options and side == "right":
        return None if draw.random() < 0.2 else {"w": draw.choice([*range(0, 70, 5), -10, 2**70, None])}
    if aggregated and options.get("aggregate", "count") not in ("count", "list"):
        return draw.choice(NUMBERS)
    return None if draw.random() < 0.2 else draw.choice(ANYTHING)


def drawn(draw: random.Random, operator: str, options: dict[str, Any], clock: str) -> History:
    """A random history with late records, repeats, tombstones, cuts, heartbeats and null keys."""
    definition: Definition = operator_named(operator).declare(options)
    lines: list[Line] = []
    now = 0
    for _ in range(draw.randrange(24)):
        kind = draw.random()
        now += draw.choice([0, 0, 1, 2, 5, 9])
        if kind < 0.1:
            lines.append(CUT)
        elif kind < 0.15:
            lines.append(ClockAdvance(now))
        else:
            side = draw.choice(definition.inputs)
            keys = ["r", "r1"] if side == "right" and "foreign_key" in options else ["a", "b"]
            key = None if kind < 0.25 else draw.choice(keys)
            timestamp = max(0, now - draw.choice([0, 0, 0, 1, 4, 10, 20]))
            lines.append(Record(side, key, value_of(draw, operator, options, side), timestamp))
    return History(operator, options, tuple(lines), clock)


def cases() -> Iterator[Any]:
    for operator, kinds in KINDS.items():
        for number, options in enumerate(kinds):
            clock = ("stream_time", "batch")[number % 2]
            shown = " ".join(
                str(value) for name, value in options.items() if not name.endswith(("_ms", "size", "step"))
            )
            yield pytest.param(operator, options, clock, id=f"{operator} {number} {shown}")


def disagreements(histories: list[History]) -> list[History]:
    """The histories on which DuckDB and the reference differ; some have to bring results."""
    unordered = operator_named(histories[0].operator).declare(histories[0].options).unordered
    played = [Outcome.of_play(history.name, play(history)) for history in histories]
    assert sum(map(bool, (outcome.result for outcome in played))) > len(histories) / 10
    answers = zip(histories, played, DuckDBWitness().evaluate(histories), strict=True)
    return [history for history, ours, theirs in answers if differences(ours, theirs, unordered)]


@pytest.mark.parametrize(("operator", "options", "clock"), [*cases()])
def test_duckdb_and_the_reference_agree_on_random_histories_of(operator, options, clock):
    draw = random.Random(f"{operator} {options}")
    histories = [drawn(draw, operator, options, clock) for _ in range(HISTORIES)]
    assert [history.to_text() for history in disagreements(histories)] == []


@pytest.mark.parametrize("operator", KINDS)
def test_histories_of_many_definitions_and_clocks_share_a_statement_and_get_what_each_gets_alone(operator):
    draw = random.Random(operator)
    drawn_of_each = [
        drawn(draw, operator, options, clock)
        for _ in range(4)
        for options in KINDS[operator]
        for clock in ("stream_time", "batch")
    ]
    together = DuckDBWitness().evaluate(drawn_of_each)
    assert together[:8] == [DuckDBWitness().evaluate([history])[0] for history in drawn_of_each[:8]]
    for history, answer in zip(drawn_of_each, together, strict=True):
        unordered = operator_named(operator).declare(history.options).unordered
        assert not differences(Outcome.of_play(history.name, play(history)), answer, unordered)


# The smallest histories that show a rule of each operator.


def result(operator: str, *lines: Line, clock: str = "stream_time", **options: Any) -> Any:
    (outcome,) = DuckDBWitness().evaluate([History(operator, options, lines, clock)])
    return outcome.result


def rows(*lines: Line, operator: str, **options: Any) -> list[tuple[Key | None, Window | None, Any, int]]:
    """The rows of a table, or the results of a stream."""
    found = result(operator, *lines, **options)
    return sorted((*row, *at) for row, at in found.items()) if isinstance(found, dict) else [tuple(at) for at in found]


def event(key: str | None, timestamp: int, value: Any = 1) -> Record:
    return Record("events", key, value, timestamp)


def left(key: str | None, timestamp: int, value: Any) -> Record:
    return Record("left", key, value, timestamp)


def right(key: str | None, timestamp: int, value: Any = 1) -> Record:
    return Record("right", key, value, timestamp)


class TestWindowAggregate:
    def rows(self, *lines: Line, **options: Any) -> Any:
        return rows(*lines, operator="window_aggregate", **options)

    def test_a_window_is_emitted_once_the_clock_has_reached_its_end(self):
        assert self.rows(event("a", 9), ClockAdvance(9), size=10) == []
        assert self.rows(event("a", 9), ClockAdvance(10), size=10) == [("a", (0, 10), 1, 9)]

    def test_a_message_that_has_no_open_window_left_is_dropped(self):
        assert self.rows(event("a", 10), event("a", 9), ClockAdvance(20), size=10) == [("a", (10, 20), 1, 10)]

    def test_a_late_message_updates_a_window_that_is_kept(self):
        late = {"size": 10, "late": "update", "retention_ms": 5}
        assert self.rows(event("a", 0), ClockAdvance(14), event("a", 9), **late) == [("a", (0, 10), 2, 9)]
        assert self.rows(event("a", 0), ClockAdvance(15), event("a", 9), **late) == [("a", (0, 10), 1, 0)]

    def test_windows_of_tuples_count_the_messages_of_a_key_and_have_no_late_ones(self):
        lines = (event("a", 50, "x"), event("b", 0, "y"), event("a", 0, "z"), event("a", 1, "w"))
        assert self.rows(*lines, size=2, unit="tuple", aggregate="list") == [("a", (0, 2), ["x", "z"], 50)]

    def test_an_early_emitting_of_every_second_message_leaves_the_third_not_emitted(self):
        lines = (event("a", 3, "x"), event("a", 2, "y"), event("a", 5, "z"))
        early = {"size": 10, "early": {"every_tuples": 2}}
        assert self.rows(*lines, **early, aggregate="list") == [("a", (0, 10), ["x", "y"], 3)]
        assert self.rows(*lines, **early, storage="full") == [("a", (0, 10), "y", 2), ("a", (0, 10), "x", 3)]

    def test_an_early_emitting_at_each_tick_waits_for_the_tick(self):
        early = {"size": 10, "early": {"every_ms": 4}}
        assert self.rows(event("a", 1), ClockAdvance(3), **early) == []
        assert self.rows(event("a", 1), ClockAdvance(4), **early) == [("a", (0, 10), 1, 1)]

    def test_a_session_is_emitted_once_its_end_lies_more_than_the_gap_before_the_clock(self):
        session = {"size": 5, "type": "session"}
        assert self.rows(event("a", 0), event("a", 5), ClockAdvance(10), **session) == []
        assert self.rows(event("a", 0), event("a", 5), ClockAdvance(11), **session) == [("a", (0, 5), 2, 5)]

    def test_a_late_message_of_a_session_does_not_keep_the_next_one_out(self):
        lines = (event("a", 0), ClockAdvance(20), event("a", 1), event("a", 20), ClockAdvance(26))
        assert self.rows(*lines, size=5, type="session") == [("a", (0, 0), 1, 0), ("a", (20, 20), 1, 20)]

    def test_a_session_that_was_emitted_is_shown_until_what_it_merged_into_is_emitted(self):
        late = {"size": 5, "type": "session", "late": "update", "retention_ms": 20}
        lines = (event("a", 0), ClockAdvance(9), event("a", 5))
        assert self.rows(*lines, **late) == [("a", (0, 0), 1, 0)]
        assert self.rows(*lines, ClockAdvance(11), **late) == [("a", (0, 5), 2, 5)]

    def test_a_full_session_emits_each_message_once_under_the_session_of_that_moment(self):
        late = {"size": 5, "type": "session", "storage": "full", "late": "update", "retention_ms": 20}
        lines = (event("a", 0, "x"), ClockAdvance(9), event("a", 5, "y"), event("a", 4, None), ClockAdvance(11))
        assert self.rows(*lines, **late) == [("a", (0, 0), "x", 0), ("a", (0, 5), "y", 5)]


class TestRangeAggregate:
    def test_a_range_holds_both_its_ends_and_only_what_has_arrived(self):
        lines = (event("a", 9, "x"), event("a", 2, "y"), event("a", 12, "z"), event("b", 12, "w"))
        assert rows(*lines, operator="range_aggregate", preceding_ms=10, aggregate="list") == [
            ("a", None, ["y"], 2),
            ("a", None, ["x"], 9),
            ("a", None, ["y", "x", "z"], 12),
            ("b", None, ["w"], 12),
        ]

    def test_an_average_is_a_float(self):
        (found,) = rows(event("a", 0, 2), operator="range_aggregate", preceding_ms=0, aggregate="average")
        assert found == ("a", None, 2.0, 0)
        assert type(found[2]) is float


class TestStreamStreamJoin:
    def rows(self, *lines: Line, **options: Any) -> Any:
        return rows(*lines, operator="stream_stream_join", **{"before_ms": 2, "after_ms": 3, **options})

    def test_the_bounds_are_inclusive(self):
        lines = [left("k", 10, "l"), *(right("k", at, at) for at in (7, 8, 13, 14))]
        assert self.rows(*lines, grace_ms=10) == [("k", None, ["l", 8], 10), ("k", None, ["l", 13], 13)]

    def test_a_row_finds_partners_for_as_long_as_its_reach_and_the_grace(self):
        lines = (left("k", 0, "l"), ClockAdvance(5), right("k", 3, "r"))
        assert self.rows(*lines, grace_ms=2) == [("k", None, ["l", "r"], 3)]
        assert self.rows(*lines, grace_ms=1) == []

    def test_eager_emits_null_and_then_the_pair_and_close_the_pair_alone(self):
        lines = (left("k", 0, "l"), right("k", 1, "r"), ClockAdvance(100))
        assert self.rows(*lines, join="left", emit="eager") == [("k", None, ["l", None], 0), ("k", None, ["l", "r"], 1)]
        assert self.rows(*lines, join="left", emit="close") == [("k", None, ["l", "r"], 1)]

    def test_a_left_join_at_arrival_is_driven_by_the_left_alone(self):
        assert self.rows(left("k", 0, "l"), right("k", 0, "r"), join="left") == [("k", None, ["l", None], 0)]
        assert self.rows(right("k", 0, "r"), left("k", 0, "l"), join="left") == [("k", None, ["l", "r"], 0)]

    def test_close_waits_until_no_partner_can_come(self):
        close = {"join": "outer", "emit": "close", "grace_ms": 1}
        assert self.rows(left("k", 0, "l"), ClockAdvance(4), **close) == []
        assert self.rows(left("k", 0, "l"), ClockAdvance(5), **close) == [("k", None, ["l", None], 0)]
        assert self.rows(right("k", 0, "r"), ClockAdvance(4), **close) == [("k", None, [None, "r"], 0)]

    def test_a_record_without_a_key_is_emitted_at_once_if_it_is_kept(self):
        options = {"emit": "close", "null_key": "keep"}
        assert self.rows(left(None, 0, "l"), right(None, 0, "r"), join="left", **options) == [
            (None, None, ["l", None], 0)
        ]
        assert self.rows(left(None, 0, "l"), join="left", emit="close") == []

    def test_a_record_without_a_key_moves_the_clock_only_if_it_is_kept(self):
        lines = (left(None, 100, "l"), left("k", 0, "l"), right("k", 0, "r"))
        assert self.rows(*lines) == [("k", None, ["l", "r"], 0)]
        assert self.rows(*lines, null_key="keep") == []


class TestStreamTableJoin:
    def test_the_stream_sees_the_table_as_it_is_at_that_moment(self):
        lines = (left("k", 5, "a"), right("k", 9, 1), left("k", 6, "b"), right("k", 0, None), left("k", 7, "c"))
        assert rows(*lines, operator="stream_table_join") == [
            ("k", None, ["a", None], 5),
            ("k", None, ["b", 1], 6),
            ("k", None, ["c", None], 7),
        ]
        assert rows(*lines, operator="stream_table_join", join="inner") == [("k", None, ["b", 1], 6)]

    def test_a_record_without_a_key_finds_nothing_if_it_is_kept(self):
        lines = (right(None, 0, "r"), left(None, 0, "l"))
        assert rows(*lines, operator="stream_table_join", null_key="keep") == [(None, None, ["l", None], 0)]
        assert rows(*lines, operator="stream_table_join") == []


class TestTableTableJoin:
    def test_a_tombstone_stamps_the_row_if_it_came_last(self):
        lines = (left("k", 1, "l"), right("k", 5, "r"), right("k", 9, None))
        assert rows(*lines, operator="table_table_join", join="left") == [("k", None, ["l", None], 9)]
        assert rows(*lines, left("k", 2, "m"), operator="table_table_join", join="outer") == [
            ("k", None, ["m", None], 2)
        ]
        assert rows(*lines, operator="table_table_join") == []

    def test_the_last_to_arrive_stands_whatever_its_timestamp(self):
        lines = (left("k", 9, "l"), left("k", 1, "m"), right("k", 5, 0))
        assert rows(*lines, operator="table_table_join") == [("k", None, ["m", 0], 5)]


class TestTableAggregate:
    def test_a_row_that_changes_its_group_leaves_the_old_one(self):
        lines = (
            event("a", 1, {"g": "x", "n": 2}),
            event("b", 2, {"g": "x", "n": 3}),
            event("a", 9, {"g": "y", "n": 5}),
        )
        asked = {"operator": "table_aggregate", "group_by": "g"}
        assert rows(*lines, **asked, aggregate="sum", field="n") == [("x", None, 3, 9), ("y", None, 5, 9)]

    @pytest.mark.parametrize(("aggregate", "nothing"), [("count", 0), ("sum", 0), ("list", [])])
    def test_an_emptied_group_shows_the_aggregate_of_nothing(self, aggregate, nothing):
        lines = (event("a", 1, {"g": "x", "n": 2}), event("a", 9, None))
        asked = {"operator": "table_aggregate", "group_by": "g", "aggregate": aggregate, "field": "n"}
        assert rows(*lines, **asked) == [("x", None, nothing, 9)]

    def test_a_row_without_a_group_is_in_none(self):
        assert rows(event("a", 1, {"g": None}), operator="table_aggregate", group_by="g") == []


class TestWindowedTable:
    def rows(self, *lines: Line, **options: Any) -> Any:
        return rows(*lines, operator="windowed_table", **{"size_ms": 10, **options})

    def test_a_window_is_closed_once_its_end_and_the_grace_are_behind_the_clock(self):
        lines = (event("a", 0), ClockAdvance(14), event("a", 1), ClockAdvance(15), event("a", 2))
        assert self.rows(*lines, grace_ms=5) == [("a", (0, 10), 2, 1)]
        assert self.rows(*lines[:3], grace_ms=5, emit="close") == []
        assert self.rows(*lines, grace_ms=5, emit="close") == [("a", (0, 10), 2, 1)]

    def test_windows_overlap_and_none_starts_before_0(self):
        assert self.rows(event("a", 7), step_ms=5) == [("a", (0, 10), 1, 7), ("a", (5, 15), 1, 7)]

    def test_a_change_of_the_table_touches_every_window_closed_ones_too(self):
        lines = (event("a", 0), event("a", 25), right("a", 30, "t"))
        assert self.rows(*lines, **{"with": "table"}) == [("a", (0, 10), [1, "t"], 30), ("a", (20, 30), [1, "t"], 30)]

    def test_a_closing_window_sees_the_table_as_it_is_then(self):
        lines = (event("a", 0), right("a", 5, "t"), right("b", 10, "u"), right("a", 8, None))
        options = {"with": "table", "emit": "close", "to_stream": "window_in_value"}
        assert self.rows(*lines, **options) == [
            ("a", None, {"value": [1, "t"], "window": [0, 10]}, 5),
            ("a", None, {"value": [1, None], "window": [0, 10]}, 8),
        ]

    def test_a_window_joins_the_other_tables_window_that_starts_so_much_later(self):
        lines = (event("a", 0), right("a", 10), right("a", 11), right("a", 0))
        shifted = {"with": "windowed_table", "grace_ms": 99, "shift_ms": 10}
        assert self.rows(*lines, **shifted) == [("a", (0, 10), [1, 2], 11)]
        assert self.rows(*lines, join="outer", **shifted) == [("a", (0, 10), [1, 2], 11)]

    def test_windows_of_both_tables_that_close_together_are_emitted_once(self):
        lines = (event("a", 0), right("a", 1), ClockAdvance(10))
        options = {"with": "windowed_table", "join": "outer", "emit": "close", "to_stream": "window_in_value"}
        assert self.rows(*lines, **options) == [("a", None, {"value": [1, 1], "window": [0, 10]}, 1)]

    def test_a_stream_looks_up_what_has_been_emitted_by_then(self):
        lines = (
            event("a", 0),
            right("a", 3, {"w": 0}),
            event("a", 4),
            right("a", 5, {"w": 0}),
            right("a", 6, {"w": 9}),
        )
        assert self.rows(*lines, window_start="w", **{"with": "stream_lookup"}) == [
            ("a", None, [{"w": 0}, 1], 3),
            ("a", None, [{"w": 0}, 2], 5),
            ("a", None, [{"w": 9}, None], 6),
        ]

    def test_a_table_looks_up_what_is_emitted_at_the_end(self):
        lines = (event("a", 0), right("a", 3, {"w": 0}), event("a", 4))
        assert self.rows(*lines, window_start="w", **{"with": "table_lookup"}) == [("a", None, [{"w": 0}, 2], 4)]

    def test_a_window_may_go_into_the_key(self):
        assert self.rows(event("a", 12), to_stream="window_in_key") == [("a@10", None, 1, 12)]


class TestForeignKeyJoin:
    def rows(self, *lines: Line, **options: Any) -> Any:
        return rows(*lines, operator="foreign_key_join", foreign_key="f", **options)

    def test_a_left_row_joins_the_right_row_that_it_names(self):
        lines = (left("a", 3, {"f": "r"}), left("b", 4, {"f": "s"}), right("r", 1, "R"))
        assert self.rows(*lines) == [("a", None, [{"f": "r"}, "R"], 1)]
        assert self.rows(*lines, join="left") == [("a", None, [{"f": "r"}, "R"], 1), ("b", None, [{"f": "s"}, None], 4)]

    def test_the_later_of_both_stamps_a_left_change(self):
        assert self.rows(right("r", 5, "R"), left("a", 3, {"f": "r"})) == [("a", None, [{"f": "r"}, "R"], 5)]

    def test_a_row_without_foreign_key_is_emitted_only_by_a_left_join_that_keeps_it(self):
        line = left("a", 3, {"f": None})
        assert self.rows(line, join="left", null_foreign_key="keep") == [("a", None, [{"f": None}, None], 3)]
        assert self.rows(line, join="left") == self.rows(line, null_foreign_key="keep") == []


def test_a_one_to_many_join_has_both_keys():
    lines = (left("a", 3, {"f": "r"}), left('"é', 4, {"f": None}), right("r", 1, None))
    asked = {"operator": "one_to_many_join", "foreign_key": "f", "join": "left", "null_foreign_key": "keep"}
    assert rows(*lines, **asked) == [
        ('["r", "a"]', None, [{"f": "r"}, None], 3),
        ('[null, "\\"é"]', None, [{"f": None}, None], 4),
    ]


def test_values_come_back_as_they_were():
    values = [0, False, 2**200, 1.5, "\ud800", "", [], {"a": {"b": [None]}}]
    lines = [left("k", at, value) for at, value in enumerate(values)]
    found = result("stream_table_join", *lines)
    assert found == [Change("k", None, [value, None], at) for at, value in enumerate(values)]
    assert [type(change.value[0]) for change in found] == [type(value) for value in values]


# What is refused.


@pytest.mark.parametrize(
    ("lines", "operator", "options", "message"),
    [
        (
            (Delivery("subscription", "r", None),),
            "foreign_key_join",
            {"foreign_key": "f", "delivery": "manual"},
            "duckdb has no statement for foreign_key_join with delivery manual",
        ),
        ((left("a", 0, {}),), "foreign_key_join", {"foreign_key": "f"}, "history: the value {} has no field 'f'"),
        (
            (left("a", 0, 1),),
            "range_aggregate",
            {"preceding_ms": 1},
            "unknown input 'left': range_aggregate has events",
        ),
        ((event("a", 0),), "range_aggregate", {"preceding_ms": 2**70}, "can't reckon with preceding_ms"),
    ],
)
def test_what_duckdb_cannot_answer_is_refused(lines, operator, options, message):
    with pytest.raises(BadInput, match=message):
        result(operator, *lines, **options)


# A bug in each statement, and it shows.

BUGS: list[tuple[str, int, str, str]] = [
    ("window_aggregate", 0, "WHEN 'ms' THEN window_end <= last_clock", "WHEN 'ms' THEN window_end < last_clock"),
    ("window_aggregate", 2, "number * step + size > late_edge", "number * step + size >= late_edge"),
    ("window_aggregate", 3, "nth_of_window <= members", "nth_of_window < members"),
    ("window_aggregate", 4, "last_clock // every_ms > clock", "last_clock // every_ms >= clock"),
    ("window_aggregate", 10, "session_end < next_clock - size", "session_end <= next_clock - size"),
    ("window_aggregate", 11, "max(session_end) < late_edge", "max(session_end) <= late_edge"),
    ("window_aggregate", 14, "THEN min(nth)", "THEN max(nth)"),
    ("range_aggregate", 5, "other.position <= own.position", "other.position <> own.position"),
    ("range_aggregate", 6, "(other.timestamp, other.position)", "other.position"),
    ("stream_stream_join", 0, "earlier.open_until >= later.clock", "earlier.open_until > later.clock"),
    ("stream_stream_join", 7, "OR null_key = 'keep' AS moves_clock", "AS moves_clock"),
    ("stream_stream_join", 5, "open_until < last_clock", "open_until <= last_clock"),
    ("stream_table_join", 2, "change.has_value", "true"),
    ("table_table_join", 2, "greatest(timestamp_of_last, timestamp_of_present)", "timestamp_of_last"),
    ("table_aggregate", 0, "SELECT old_group", "SELECT group_key"),
    ("table_aggregate", 2, " AND is_last", ""),
    ("windowed_table", 0, "+ size_ms > clock - grace_ms", "+ size_ms >= clock - grace_ms"),
    ("windowed_table", 5, "AND window_end <= last_clock", "AND window_end < last_clock"),
    ("windowed_table", 8, "window_start - shift_ms, emitted_at", "window_start + shift_ms, emitted_at"),
    ("windowed_table", 7, "LEFT JOIN clocked ON clocked.history", "LEFT JOIN clocked ON 1 + clocked.history"),
    ("windowed_table", 15, "(emitted_at <= position OR", "(true OR"),
    ("foreign_key_join", 2, "THEN referred.timestamp\n", "THEN greatest(referring.timestamp, referred.timestamp)\n"),
    ("one_to_many_join", 2, "OR referred.position > referring.position", ""),
]


@pytest.mark.parametrize(("operator", "kind", "right", "wrong"), BUGS)
def test_a_bug_in_a_statement_shows(monkeypatch, operator, kind, right, wrong):
    sql = registration_of(operator).sql
    assert sql.statement.count(right) == 1
    change(monkeypatch, operator, sql=replace(sql, statement=sql.statement.replace(right, wrong)))
    draw = random.Random(operator)
    assert disagreements([drawn(draw, operator, KINDS[operator][kind], "stream_time") for _ in range(HISTORIES)])


WRONG_FORMS = {
    "count": "1 + count(value.position)",
    "sum": "{whole: min(value.whole_term), fraction: min(value.fraction_term)}",
    "min": AGGREGATES["max"],
    "max": AGGREGATES["min"],
    "list": AGGREGATES["list"].replace("ORDER BY place", "ORDER BY -place[1]"),
    "average": AGGREGATES["average"].replace("members: count(value.position)", "members: 2"),
}


@pytest.mark.parametrize("aggregate", [*AGGREGATES])
def test_a_bug_in_an_aggregate_shows(monkeypatch, aggregate):
    monkeypatch.setitem(AGGREGATES, aggregate, WRONG_FORMS[aggregate])
    draw = random.Random(aggregate)
    options = {"preceding_ms": 20, "aggregate": aggregate}
    assert disagreements([drawn(draw, "range_aggregate", options, "stream_time") for _ in range(HISTORIES)])


def test_every_statement_has_a_bug_that_shows():
    assert {operator for operator, *_ in BUGS} == set(KINDS)

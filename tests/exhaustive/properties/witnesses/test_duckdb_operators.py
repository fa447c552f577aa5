from __future__ import annotations

import random
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


def disagreements(histories: list[History]) -> list[History]:
    """The histories on which DuckDB and the reference differ; some have to bring results."""
    unordered = operator_named(histories[0].operator).declare(histories[0].options).unordered
    played = [Outcome.of_play(history.name, play(history)) for history in histories]
    assert sum(map(bool, (outcome.result for outcome in played))) > len(histories) / 10
    answers = zip(histories, played, DuckDBWitness().evaluate(histories), strict=True)
    return [history for history, ours, theirs in answers if differences(ours, theirs, unordered)]


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


# What random histories of plain keys and values do not ask.


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


def test_an_average_is_a_float():
    (found,) = rows(event("a", 0, 2), operator="range_aggregate", preceding_ms=0, aggregate="average")
    assert found == ("a", None, 2.0, 0)
    assert type(found[2]) is float


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

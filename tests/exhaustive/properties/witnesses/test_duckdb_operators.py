from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from registrations import change
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories, under_stream_time
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.registration.sql import AGGREGATES
from streamproof.properties.witnesses.duckdb.witness import DuckDBWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import Delivery, History, Line, Record
from streamproof.reference.core.operator import OPERATORS
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Key, Window


@cache
def drawn(operator: str) -> list[History]:
    """Mixed histories of many definitions of an operator, half of them with null keys, under both clocks."""
    of_each = [
        replace(history, name=f"{history.name} of {number}")
        for number, options in enumerate(draw_definitions(registration_of(operator), 40, 0))
        for history in draw_histories(
            HistorySettings(operator, options, SCHEDULE, null_keys=number % 2 > 0), 6, number, mixed=True
        )
    ]
    return [under_stream_time(history) if number % 3 else history for number, history in enumerate(of_each)]


def disagreements(histories: list[History]) -> list[History]:
    """The histories on which DuckDB and the reference differ."""
    found = []
    for history, theirs in zip(histories, DuckDBWitness().evaluate(histories), strict=True):
        played = play(history)
        if differences(Outcome.of_play(history.name, played), theirs, played.definition.unordered):
            found.append(history)
    return found


@pytest.mark.parametrize("operator", OPERATORS)
def test_histories_of_many_definitions_and_clocks_share_a_statement_and_get_what_each_gets_alone(operator):
    histories = drawn(operator)
    assert [history.to_text() for history in disagreements(histories)] == []
    together = DuckDBWitness().evaluate(histories)
    assert together[:8] == [DuckDBWitness().evaluate([history])[0] for history in histories[:8]]


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


def test_no_histories_have_no_outcomes_and_no_records_no_rows():
    assert DuckDBWitness().evaluate([]) == []
    assert result("session_windows", gap_ms=10) == {}


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
    ("values", "aggregate", "message"),
    [
        (["x"], "sum", "sum can't take the value 'x'"),
        ([1, "x"], "min", "can't compare the string 'x' with the number 1"),
        ([10**40], "sum", "more than 38 digits"),
        ([10**38 - 1] * 20, "sum", "more than 38 digits"),
        (["\ud800"], "max", "surrogate"),
    ],
)
def test_a_value_that_duckdb_cannot_take_is_refused(values, aggregate, message):
    with pytest.raises(BadInput, match=message):
        result("session_windows", *(event("a", 0, value) for value in values), gap_ms=10, aggregate=aggregate)


@pytest.mark.parametrize(
    ("lines", "operator", "options", "message"),
    [
        ((), "sort", {}, "unknown operator 'sort'"),
        ((Delivery("response", "r", "l"),), "session_windows", {"gap_ms": 10}, "no channels"),
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
        ((event("a", 0),), "range_aggregate", {"preceding_ms": 2**70}, "can't compute with preceding_ms"),
    ],
)
def test_what_duckdb_cannot_answer_is_refused(lines, operator, options, message):
    with pytest.raises(BadInput, match=message):
        result(operator, *lines, **options)


# A bug in each statement, and it shows.

BUGS: list[tuple[str, str, str]] = [
    ("window_aggregate", "WHEN 'ms' THEN window_end <= last_clock", "WHEN 'ms' THEN window_end < last_clock"),
    ("window_aggregate", "number * step + size > late_edge", "number * step + size >= late_edge"),
    ("window_aggregate", "nth_of_window <= members", "nth_of_window < members"),
    ("window_aggregate", "last_clock // every_ms > clock", "last_clock // every_ms >= clock"),
    ("window_aggregate", "session_end < next_clock - size", "session_end <= next_clock - size"),
    ("window_aggregate", "max(session_end) < late_edge", "max(session_end) <= late_edge"),
    ("window_aggregate", "THEN min(nth)", "THEN max(nth)"),
    ("range_aggregate", "other.position <= own.position", "other.position <> own.position"),
    ("range_aggregate", "(other.timestamp, other.position)", "other.position"),
    ("stream_stream_join", "earlier.open_until >= later.clock", "earlier.open_until > later.clock"),
    ("stream_stream_join", "OR null_key = 'keep' AS moves_clock", "AS moves_clock"),
    ("stream_stream_join", "open_until < last_clock", "open_until <= last_clock"),
    ("stream_table_join", "change.has_value", "true"),
    ("table_table_join", "greatest(timestamp_of_last, timestamp_of_present)", "timestamp_of_last"),
    ("table_aggregate", "SELECT old_group", "SELECT group_key"),
    ("table_aggregate", " AND is_last", ""),
    ("windowed_table", "+ size_ms > clock - grace_ms", "+ size_ms >= clock - grace_ms"),
    ("windowed_table", "AND window_end <= last_clock", "AND window_end < last_clock"),
    ("windowed_table", "window_start - shift_ms, emitted_at", "window_start + shift_ms, emitted_at"),
    ("windowed_table", "LEFT JOIN clocked ON clocked.history", "LEFT JOIN clocked ON 1 + clocked.history"),
    ("windowed_table", "(emitted_at <= position OR", "(true OR"),
    ("foreign_key_join", "THEN referred.timestamp\n", "THEN greatest(referring.timestamp, referred.timestamp)\n"),
    ("one_to_many_join", "OR referred.position > referring.position", ""),
    ("scd1", "sequence DESC, tie DESC", "tie DESC, sequence DESC"),
    ("scd1", "timestamp >= clock - tombstone_ms", "timestamp > clock - tombstone_ms"),
    ("scd1", "AND (json IS NOT NULL OR", "AND (true OR"),
    ("scd2", "PARTITION BY key, sequence ORDER BY tie DESC", "PARTITION BY key, sequence ORDER BY tie"),
    ("scd2", "coalesce(options->'track', options->'columns')", "options->'columns'"),
    ("scd2", "deleted OR coalesce", "coalesce"),
]


@pytest.mark.parametrize(("operator", "right", "wrong"), BUGS)
def test_a_bug_in_a_statement_shows(monkeypatch, operator, right, wrong):
    sql = registration_of(operator).sql
    assert sql.statement.count(right) == 1
    change(monkeypatch, operator, sql=replace(sql, statement=sql.statement.replace(right, wrong)))
    assert disagreements(drawn(operator))


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
    histories = drawn("range_aggregate")
    assert disagreements([one for one in histories if one.options.get("aggregate", "count") == aggregate])


def test_every_statement_has_a_bug_that_shows():
    assert {operator for operator, *_ in BUGS} == {*OPERATORS} - {"session_windows"}

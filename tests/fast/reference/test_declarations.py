from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import OPERATORS, operator_named
from streamproof.reference.definitions.aggregates import COUNT
from streamproof.reference.definitions.declarations import Definition, one_of
from streamproof.reference.definitions.windows import SessionWindows


@dataclass(frozen=True)
class Sample(Definition):
    with_: Any


def test_a_choice_of_one_is_named_by_the_options_own_name() -> None:
    with pytest.raises(BadInput, match=r"^with is 1: use one$"):
        one_of(Sample(1), "with_", "one")


# Every operator's options are refused alike.

NEEDED: dict[str, dict[str, Any]] = {
    "session_windows": {"gap_ms": 10},
    "window_aggregate": {"size": 10},
    "range_aggregate": {"preceding_ms": 600000},
    "stream_stream_join": {"before_ms": 5, "after_ms": 5},
    "stream_table_join": {},
    "table_table_join": {},
    "table_aggregate": {"group_by": "country"},
    "windowed_table": {"size_ms": 10},
    "foreign_key_join": {"foreign_key": "artist"},
    "one_to_many_join": {"foreign_key": "artist"},
    "scd1": {},
    "scd2": {},
}


def refusal(name: str, options: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as refused:
        operator_named(name).declare(options)
    return str(refused.value)


def test_every_operator_is_here() -> None:
    assert list(NEEDED) == list(OPERATORS)


@pytest.mark.parametrize("name", OPERATORS)
def test_two_declarations_of_one_thing_are_equal_can_be_kept_in_a_set_and_do_not_change(name: str) -> None:
    one, other = (operator_named(name).declare(dict(NEEDED[name])) for _ in range(2))
    assert isinstance(one, operator_named(name).definition)
    assert len({one, other}) == 1
    with pytest.raises(FrozenInstanceError):
        one.join = "left"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_no_option_that_it_does_not_know(name: str) -> None:
    assert refusal(name, {**NEEDED[name], "window": 1}).startswith(f"{name} has no option 'window': it takes ")


@pytest.mark.parametrize("name", [name for name, needed in NEEDED.items() if needed and name != "stream_stream_join"])
def test_an_operator_says_what_it_needs_with_an_example(name: str) -> None:
    ((option, example),) = NEEDED[name].items()
    message = refusal(name, {})
    assert message.startswith(f"{name} needs the option {option}: ")
    assert message.endswith(f'such as "{option}": {json.dumps(example)}')
    assert "leave it out" not in refusal(name, {option: None})


NO_NUMBER = "give a whole number of milliseconds"
ONE_OR_MORE = "give a whole number, 1 or more"
NOT_NEGATIVE = "it can't be negative; use 0 for none"
EARLY = 'use {"every_tuples": n} or {"every_ms": n}, or leave it out'
UNBOUNDED = (
    "is missing: an unbounded stream-stream join is refused, because its predicate must include timestamps from both "
    "streams; give before_ms and after_ms"
)
FIVE_AGGREGATES = "use one of count, sum, min, max, list"
LEFT_OUT: Any = object()
REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    # options beside those that are needed, and what is said
    "session_windows": [
        ({"gap_ms": 0}, "gap_ms is 0: a session's gap must be positive"),
        ({"gap_ms": 1.5}, f"gap_ms is 1.5: {NO_NUMBER}"),
        ({"grace_ms": -1}, "grace_ms is -1: grace can't be negative; use 0 for none"),
        ({"grace_ms": "5 minutes"}, f"grace_ms is '5 minutes': {NO_NUMBER}"),
        ({"grace_ms": 5, "retention_ms": 14}, "retention_ms is 14, less than gap + grace (15): an open session would"),
        ({"retention_ms": -1}, "retention_ms is -1, less than gap + grace (10)"),
        ({"retention_ms": True}, f"retention_ms is True: {NO_NUMBER}"),
        ({"retention_ms": None}, "retention_ms is null: give milliseconds, or leave it out for gap + grace"),
        ({"aggregate": "avg"}, f"unknown aggregate 'avg': {FIVE_AGGREGATES}"),
        ({"aggregate": ["sum"]}, FIVE_AGGREGATES),
        ({"emit": "final"}, "emit is 'final': use update or close"),
        ({"late": "never"}, "late is 'never': use merged or own"),
    ],
    "window_aggregate": [
        ({"size": 0}, f"size is 0: {ONE_OR_MORE}"),
        ({"size": 1.5}, f"size is 1.5: {ONE_OR_MORE}"),
        ({"step": 0}, f"step is 0: {ONE_OR_MORE}"),
        ({"step": 11}, "step is 11, more than size (10): records between two windows would be lost"),
        ({"type": "sliding"}, "type is 'sliding': use fixed or session"),
        ({"unit": "s"}, "unit is 's': use ms or tuple"),
        ({"storage": "disk"}, "storage is 'disk': use aggregate or full"),
        ({"late": "keep"}, "late is 'keep': use drop or update"),
        ({"late": "update"}, "late messages can't update windows that aren't stored: give retention_ms, or use"),
        ({"retention_ms": -1}, f"retention_ms is -1: {NOT_NEGATIVE}"),
        ({"type": "session", "unit": "tuple"}, "a session's gap is a time, not a number of tuples: use unit ms"),
        ({"type": "session", "step": 5}, "a session has no step, because it begins at its first record: leave step"),
        ({"aggregate": "median"}, f"unknown aggregate 'median': {FIVE_AGGREGATES}, average"),
        ({"early": 5}, f"early is 5: {EARLY}"),
        ({"early": {}}, EARLY),
        ({"early": {"every": 5}}, EARLY),
        ({"early": {"every_ms": 5, "every_tuples": 5}}, EARLY),
        ({"early": {"every_ms": 0}}, f"early has every_ms 0: {ONE_OR_MORE}"),
        ({"early": {"every_tuples": 1.5}}, f"early has every_tuples 1.5: {ONE_OR_MORE}"),
        ({"before_send": "x"}, "window_aggregate has no option 'before_send': it takes aggregate, early, late"),
    ],
    "range_aggregate": [
        ({"preceding_ms": -1}, f"preceding_ms is -1: {NOT_NEGATIVE}"),
        ({"aggregate": "avg"}, f"unknown aggregate 'avg': {FIVE_AGGREGATES}, average"),
    ],
    "stream_stream_join": [
        ({"before_ms": LEFT_OUT}, f"before_ms {UNBOUNDED}"),
        ({"after_ms": LEFT_OUT}, f"after_ms {UNBOUNDED}"),
        *(({name: -1}, f"{name} is -1: {NOT_NEGATIVE}") for name in ("before_ms", "after_ms", "grace_ms")),
        ({"grace_ms": 1.5}, f"grace_ms is 1.5: {NO_NUMBER}"),
        ({"emit": "final"}, "emit is 'final': use arrival, eager or close"),
        ({"join": "outer", "emit": "arrival"}, "emit is 'arrival', but both sides drive an outer join: use eager or"),
        ({"null_key": "ignore"}, "null_key is 'ignore': use drop or keep"),
        ({"null_key": None}, "null_key is null: give a value, or leave it out"),
        ({"join": "cross"}, "unknown join 'cross': use inner, left or outer"),
    ],
    "stream_table_join": [
        ({"null_key": "ignore"}, "null_key is 'ignore': use drop or keep"),
        ({"join": ["inner"]}, "unknown join ['inner']: use inner, left or outer"),
    ],
    "table_table_join": [
        ({"join": "right"}, "unknown join 'right': use inner, left or outer; for a right join, swap the sides"),
        ({"join": None}, "join is null: give a value"),
    ],
    "table_aggregate": [
        ({"group_by": 1}, "group_by is 1: give the name of a field of the value object"),
        ({"field": 1}, "field is 1: give the name of a field of the value object"),
        ({"aggregate": "sum"}, "sum needs the option field: the field that is summed"),
        ({"aggregate": "max"}, "unknown aggregate 'max': use one of count, sum, list"),
    ],
    "windowed_table": [
        ({"size_ms": 0}, f"size_ms is 0: {ONE_OR_MORE}"),
        ({"step_ms": 11}, "step_ms is 11, more than size_ms (10): records between two windows would be lost"),
        ({"grace_ms": -1}, f"grace_ms is -1: {NOT_NEGATIVE}"),
        ({"emit": "final"}, "emit is 'final': use update or close"),
        ({"with_": "table"}, "windowed_table has no option 'with_': it takes aggregate, emit, grace_ms"),
        ({"with": "stream"}, "with is 'stream': use table, windowed_table, stream_lookup or table_lookup"),
        ({"to_stream": "key"}, "to_stream is 'key': use window_in_key or window_in_value"),
        ({"join": "left"}, "join is 'left', but no input is joined: give the option with, or leave join out"),
        ({"with": "windowed_table", "join": "cross"}, "unknown join 'cross': use inner, left or outer"),
        ({"shift_ms": 10}, "shift_ms shifts the windows of another windowed table: use it only with windowed_table"),
        ({"with": "table", "shift_ms": 10}, "shift_ms shifts the windows of another windowed table"),
        ({"with": "windowed_table", "shift_ms": 5}, "shift_ms is 5: no window starts there; use a multiple of step"),
        ({"with": "windowed_table", "shift_ms": 1.5}, f"shift_ms is 1.5: {NO_NUMBER}"),
        ({"with": "stream_lookup"}, "a look-up needs window_start: the field with the start of the window"),
        ({"window_start": "day"}, "window_start belongs to a look-up: leave it out, or use with stream_lookup or"),
        (
            {"with": "table_lookup", "window_start": "day", "to_stream": "window_in_key"},
            "the result of a look-up has no window: leave to_stream out",
        ),
        ({"aggregate": "average"}, f"unknown aggregate 'average': {FIVE_AGGREGATES}"),
    ],
    "foreign_key_join": [({"delivery": "async"}, "delivery is 'async': use immediate or manual")],
    "one_to_many_join": [({"delivery": "manual"}, "one_to_many_join has no option 'delivery': it takes foreign_key,")],
    "scd1": [({"track": ["v"]}, "scd1 has no option 'track': it takes columns, deletes, sequence_by")],
    "scd2": [({"track": "v"}, "the fields are 'v': give a list of their names")],
}
for dimension in ("scd1", "scd2"):
    REFUSED[dimension] += [
        ({"deletes": "op = 'D'"}, "deletes is \"op = 'D'\": give a field and its value"),
        ({"columns": []}, "the fields are []: give a list of their names"),
        ({"tombstone_ms": -1}, f"tombstone_ms is -1: {NOT_NEGATIVE}"),
        ({"tombstone_ms": 5, "sequence_by": "seq"}, "a deleted key could come back; leave one of the two out"),
    ]
for by_foreign_key in ("foreign_key_join", "one_to_many_join"):
    REFUSED[by_foreign_key] += [
        ({"join": "outer"}, "outer joins by foreign key aren't supported: a right row "),
        ({"join": "cross"}, "unknown join 'cross': use inner or left"),
        ({"foreign_key": 1}, "foreign_key is 1: give the name of a field of the left value object"),
        ({"null_foreign_key": "drop"}, "null_foreign_key is 'drop': use ignore or keep"),
        ({"protocol": "paxos"}, "protocol is 'paxos': use kip or answer"),
    ]


@pytest.mark.parametrize(
    ("name", "options", "message"), [(name, *row) for name, rows in REFUSED.items() for row in rows]
)
def test_a_declaration_that_cannot_be_is_refused(name: str, options: dict[str, Any], message: str) -> None:
    given = {**NEEDED[name], **options}
    assert message in refusal(name, {option: value for option, value in given.items() if value is not LEFT_OUT})


# What is filled in.


def test_the_retention_of_sessions_is_gap_and_grace_by_default_and_may_be_longer() -> None:
    assert SessionWindows(10) == SessionWindows(10, 0, 10, COUNT, "update", "merged")
    assert (SessionWindows(10, 5).retention_ms, SessionWindows(10, 5, 16).retention_ms) == (15, 16)
    options = {"gap_ms": 10, "grace_ms": 5, "retention_ms": 20, "aggregate": "count", "emit": "close", "late": "own"}
    assert operator_named("session_windows").declare(options) == SessionWindows(10, 5, 20, COUNT, "close", "own")


def test_a_session_is_closed_gap_and_grace_behind_the_clock_and_expires_the_retention_behind_it() -> None:
    windows = SessionWindows(10, 5, 40)
    assert (windows.close_edge(100), windows.expiry_edge(100)) == (85, 60)
    assert SessionWindows(1).close_edge(0) < 0  # a clock that has seen nothing closes nothing


@pytest.mark.parametrize(("join", "emit"), [("inner", "arrival"), ("left", "arrival"), ("outer", "eager")])
def test_the_default_of_emit_is_that_of_the_documents(join: str, emit: str) -> None:
    assert operator_named("stream_stream_join").declare({**NEEDED["stream_stream_join"], "join": join}).emit == emit


JOINS = [name for name in OPERATORS if name.endswith("_join")]
STREAMS = ["range_aggregate", "stream_stream_join", "stream_table_join"]


@pytest.mark.parametrize("name", OPERATORS)
def test_a_join_has_two_inputs_and_a_stream_is_joined_to_a_stream(name: str) -> None:
    definition = operator_named(name).declare(NEEDED[name])
    assert definition.inputs == (("left", "right") if name in JOINS else ("events",))
    assert (definition.is_stream, definition.unordered) == (name in STREAMS, False)


def test_a_windowed_table_is_made_only_by_a_windowed_aggregate() -> None:
    # No operator takes a WTable as an input: its own are streams of events, or a stream or table of its other side.
    assert operator_named("windowed_table").declare({"size_ms": 10, "with": "table"}).inputs == ("events", "right")

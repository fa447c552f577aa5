"""The real Kafka Streams 4.3.1, checked against what is known of it, its contradictions of itself included."""

from __future__ import annotations

import pytest
from streamproof.properties.outcomes.outcomes import Grain
from streamproof.properties.witnesses.kafka import witness as kafka_witness
from streamproof.properties.witnesses.kafka.builder import Dialect
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, Delivery, History
from streamproof.reference.core.records import Record

needs_kafka = pytest.mark.usefixtures("kafka")


def event(key, value, timestamp):
    return Record("events", key, value, timestamp)


def left(key, value, timestamp):
    return Record("left", key, value, timestamp)


def right(key, value, timestamp):
    return Record("right", key, value, timestamp)


PLAIN = Dialect()


def history(operator, options, lines, name="history", clock="stream_time"):
    return History(operator, options, tuple(lines), clock, name)


def emitted(operator, options, lines, dialect=PLAIN):
    """What comes out, as (arrival, key, value, timestamp), with the window after the key where there is one."""
    (outcome,) = KafkaWitness(dialect).evaluate([history(operator, options, lines)])
    return [
        (entry.arrival, *(part for part in entry.output[:2] if part is not None), *entry.output[2:])
        for entry in outcome.entries
    ]


# Session windows, gap 10.


def sessions(lines, dialect=PLAIN, **options):
    return emitted("session_windows", {"gap_ms": 10, "aggregate": "list", **options}, lines, dialect)


SESSIONS = {
    "records exactly a gap apart merge": (
        0,
        [event("k", "a", 0), event("k", "b", 10), event("k", "c", 21)],
        [
            (0, "k", (0, 0), ["a"], 0),
            (1, "k", (0, 0), None, 0),
            (1, "k", (0, 10), ["a", "b"], 10),
            (2, "k", (21, 21), ["c"], 21),
        ],
    ),
    "tombstones come first, by end": (
        100,
        [event("k", "a", 0), event("k", "b", 20), event("k", "c", 10)],
        [
            (0, "k", (0, 0), ["a"], 0),
            (1, "k", (20, 20), ["b"], 20),
            (2, "k", (0, 0), None, 0),
            (2, "k", (20, 20), None, 20),
            (2, "k", (0, 20), ["a", "b", "c"], 20),
        ],
    ),
    "sessions merge in session order, the new record last": (
        100,
        [event("k", "a", 20), event("k", "b", 0), event("k", "c", 10)],
        [
            (0, "k", (20, 20), ["a"], 20),
            (1, "k", (0, 0), ["b"], 0),
            (2, "k", (0, 0), None, 0),
            (2, "k", (20, 20), None, 20),
            (2, "k", (0, 20), ["b", "a", "c"], 20),
        ],
    ),
    "a record inside a session takes its tombstone back at once": (
        0,
        [event("k", "a", 0), event("k", "b", 10), event("k", "c", 5)],
        [
            (0, "k", (0, 0), ["a"], 0),
            (1, "k", (0, 0), None, 0),
            (1, "k", (0, 10), ["a", "b"], 10),
            (2, "k", (0, 10), None, 10),
            (2, "k", (0, 10), ["a", "b", "c"], 10),
        ],
    ),
    "a second record at the same time brings no tombstone": (
        0,
        [event("k", "a", 0), event("k", "b", 0)],
        [(0, "k", (0, 0), ["a"], 0), (1, "k", (0, 0), ["a", "b"], 0)],
    ),
    "lateness is tested on the merged session": (
        0,
        [event("k", 1, 0), event("k", 2, 10), event("j", 1, 12), event("k", 3, 0)],
        [
            (0, "k", (0, 0), [1], 0),
            (1, "k", (0, 0), None, 0),
            (1, "k", (0, 10), [1, 2], 10),
            (2, "j", (12, 12), [1], 12),
            (3, "k", (0, 10), None, 10),
            (3, "k", (0, 10), [1, 2, 3], 10),
        ],
    ),
    "stream time is shared by all keys": (
        0,
        [event("k", 1, 0), event("j", 1, 11), event("k", 2, 0)],
        [(0, "k", (0, 0), [1], 0), (1, "j", (11, 11), [1], 11)],
    ),
    "a null key moves nothing, a null value is a member": (
        0,
        [event("k", None, 0), event(None, 1, 100), event("k", 2, 5)],
        [(0, "k", (0, 0), [None], 0), (2, "k", (0, 0), None, 0), (2, "k", (0, 5), [None, 2], 5)],
    ),
    "a heartbeat moves stream time and is emitted nowhere": (
        0,
        [event("k", 1, 0), ClockAdvance(11), event("k", 2, 0)],
        [(0, "k", (0, 0), [1], 0)],
    ),
}


@needs_kafka
@pytest.mark.parametrize(("grace_ms", "lines", "expected"), SESSIONS.values(), ids=SESSIONS)
def test_a_session_is_emitted_as_the_facts_say(grace_ms, lines, expected):
    assert sessions(lines, grace_ms=grace_ms) == expected


@needs_kafka
@pytest.mark.parametrize(
    ("aggregate", "values", "expected"),
    [("count", ["x", None], 2), ("sum", [2, 5], 7), ("min", [2, 5], 2), ("max", [2, 5], 5), ("list", [2, 5], [2, 5])],
)
def test_every_aggregate_is_served(aggregate, values, expected):
    lines = [event("k", values[0], 0), event("k", values[1], 0)]
    assert sessions(lines, aggregate=aggregate)[-1] == (1, "k", (0, 0), expected, 0)
    assert emitted("windowed_table", {"size_ms": 10, "aggregate": aggregate}, lines)[-1] == (
        1,
        "k",
        (0, 10),
        expected,
        0,
    )


FORGOTTEN = [event("k", 1, 0), event("j", 1, 10), event("k", 2, 0)]


@needs_kafka
def test_under_its_own_retention_kafka_forgets_a_session_one_step_early():
    assert sessions(FORGOTTEN, Dialect(exact_retention=True))[-1] == (2, "k", (0, 0), [2], 0)


@needs_kafka
def test_with_one_ms_more_retention_a_session_is_remembered_until_it_closes():
    assert sessions(FORGOTTEN)[-1] == (2, "k", (0, 0), [1, 2], 0)


REVISED = [event("k", 1, 0), event("j", 1, 12), event("k", 2, 10)]


@needs_kafka
def test_under_a_long_retention_kafka_revises_a_closed_session():
    assert sessions(REVISED, Dialect(exact_retention=True), retention_ms=100)[2:] == [
        (2, "k", (0, 0), None, 0),
        (2, "k", (0, 10), [1, 2], 10),
    ]


@needs_kafka
def test_by_default_a_closed_session_stays_whatever_the_retention():
    assert sessions(REVISED, retention_ms=100)[2:] == [(2, "k", (10, 10), [2], 10)]


CLOSED = [*FORGOTTEN, event("j", 1, 11), event("j", 1, 100)]


@needs_kafka
def test_a_closed_session_is_emitted_once():
    assert sessions(CLOSED, emit="close") == [(3, "k", (0, 0), [1, 2], 0), (4, "j", (10, 11), [1, 1], 11)]


@needs_kafka
def test_under_its_own_retention_kafka_never_emits_a_closed_session():
    assert sessions(CLOSED, Dialect(exact_retention=True), emit="close") == []


@needs_kafka
def test_suppress_emits_a_session_one_step_early_and_then_again():
    assert sessions(CLOSED, Dialect(suppress=True), emit="close") == [
        (1, "k", (0, 0), [1], 0),
        (2, "k", (0, 0), [1, 2], 0),
        (4, "j", (10, 11), [1, 1], 11),
    ]


# Foreign-key joins.


def foreign_key_join(join, lines):
    return emitted("foreign_key_join", {"foreign_key": "fk", "join": join, "null_foreign_key": "keep"}, lines)


def of(foreign_key, **more):
    return {"fk": foreign_key, **more}


FOREIGN_KEYS = [
    # arrival, what comes out inner, what comes out left (None: nothing; "same": as inner)
    (left("k", of("1"), 0), None, ("k", [of("1"), None], 0)),
    (left("k", of("2"), 1), ("k", None, 1), ("k", [of("2"), None], 1)),
    (left("k", of("3"), 2), ("k", None, 2), ("k", [of("3"), None], 2)),
    (right("1", "foo", 3), None, None),
    (right("3", "bar", 4), ("k", [of("3"), "bar"], 4), "same"),
    (left("k", None, 5), ("k", None, 5), "same"),
    (left("k", of("1"), 6), ("k", [of("1"), "foo"], 6), "same"),
    (left("q", of("10"), 7), None, ("q", [of("10"), None], 7)),
    (right("10", "baz", 8), ("q", [of("10"), "baz"], 8), "same"),
]


@needs_kafka
@pytest.mark.parametrize("join", ["inner", "left"])
def test_a_foreign_key_join_is_emitted_as_the_facts_say(join):
    lines = [line for line, _, _ in FOREIGN_KEYS]
    columns = [inner if join == "inner" or other == "same" else other for _, inner, other in FOREIGN_KEYS]
    expected = [(arrival, *column) for arrival, column in enumerate(columns) if column is not None]
    assert foreign_key_join(join, lines) == expected


JOINED = [right("r", "A", 0), right("s", "B", 0), left("k", of("r"), 1)]
FOREIGN_KEY_CHANGES = {
    "a null foreign key after a valid one": (
        [left("k", of(None), 2)],
        [(3, "k", None, 2)],
        [(3, "k", [of(None), None], 2)],
    ),
    "a valid foreign key after a null one": (
        [left("k", of(None), 2), left("k", of("s"), 3)],
        [(3, "k", None, 2), (4, "k", [of("s"), "B"], 3)],
        [(3, "k", [of(None), None], 2), (4, "k", [of("s"), "B"], 3)],
    ),
    "another foreign key": (
        [left("k", of("s"), 2), right("r", "A2", 3)],
        [(3, "k", [of("s"), "B"], 2)],
        [(3, "k", [of("s"), "B"], 2)],
    ),
    "an unmatched foreign key": (
        [left("k", of("q"), 2)],
        [(3, "k", None, 2)],
        [(3, "k", [of("q"), None], 2)],
    ),
    "a deletion, and a second one": (
        [left("k", None, 2), left("k", None, 3)],
        [(3, "k", None, 2)],
        [(3, "k", None, 2)],
    ),
    "an older right row": (
        [right("r", "A2", 0)],
        [(3, "k", [of("r"), "A2"], 0)],
        [(3, "k", [of("r"), "A2"], 0)],
    ),
    "the same right row again": (
        [right("r", "A", 2)],
        [(3, "k", [of("r"), "A"], 2)],
        [(3, "k", [of("r"), "A"], 2)],
    ),
    "a right tombstone, and one more": (
        [right("r", None, 2), right("r", None, 3)],
        [(3, "k", None, 2), (4, "k", None, 3)],
        [(3, "k", [of("r"), None], 2), (4, "k", [of("r"), None], 3)],
    ),
    "a null right key": ([right(None, "A", 2), left(None, of("r"), 2)], [], []),
}


@needs_kafka
@pytest.mark.parametrize("join", ["inner", "left"])
@pytest.mark.parametrize("change", FOREIGN_KEY_CHANGES)
def test_a_foreign_key_join_answers(change, join):
    lines, inner, outer = FOREIGN_KEY_CHANGES[change]
    expected = inner if join == "inner" else outer
    assert foreign_key_join(join, [*JOINED, *lines])[1:] == expected


@needs_kafka
def test_a_deletion_in_an_inner_join_is_stamped_by_the_right_row_too():
    lines = [left("k", of("r"), 0), right("r", "A", 8), left("k", None, 6)]
    assert foreign_key_join("inner", lines)[-1] == (2, "k", None, 8)
    assert foreign_key_join("left", lines)[-1] == (2, "k", None, 6)


@needs_kafka
def test_a_foreign_key_that_another_one_begins_with_is_another():
    lines = [left("a", of("fk1"), 0), left("b", of("fk"), 0), right("fk", "X", 1)]
    assert foreign_key_join("inner", lines) == [(2, "b", [of("fk"), "X"], 1)]


@needs_kafka
def test_a_right_row_fans_out_by_the_bytes_of_the_left_keys():
    keys = ["l10", "l1", "l1!", "é", "z"]
    lines = [*(left(key, of("r"), 0) for key in keys), right("r", "A", 1)]
    assert [key for _, key, _, _ in foreign_key_join("inner", lines)] == ["l1", "l1!", "l10", "z", "é"]


# Stream-stream joins.


def stream_stream_join(join, lines, before=5, after=5, grace=0, emit="close"):
    options = {"join": join, "before_ms": before, "after_ms": after, "grace_ms": grace, "emit": emit}
    return emitted("stream_stream_join", {**options, "null_key": "keep"}, lines)


@needs_kafka
def test_bounds_are_inclusive_at_both_ends():
    lines = [left("k", "l", 10), *(right("k", at, at) for at in (6, 7, 15, 16))]
    assert stream_stream_join("inner", lines, before=3, after=5, grace=20) == [
        (2, "k", ["l", 7], 10),
        (3, "k", ["l", 15], 15),
    ]


@needs_kafka
def test_an_unmatched_left_row_is_emitted_once_no_partner_can_come():
    lines = [left("k", 1, 0), left("z", 1, 5), left("z", 1, 6)]
    assert stream_stream_join("left", lines) == [(2, "k", [1, None], 0)]


@needs_kafka
def test_unmatched_rows_are_emitted_by_timestamp_then_right_before_left_then_key():
    lines = [left("b", 1, 0), right("c", 1, 0), right("a", 2, 0), left("a0", 1, 0), left("x", 1, 3), left("z", 1, 100)]
    assert stream_stream_join("outer", lines) == [
        (5, "a", [None, 2], 0),
        (5, "c", [None, 1], 0),
        (5, "a0", [1, None], 0),
        (5, "b", [1, None], 0),
        (5, "x", [1, None], 3),
    ]


@needs_kafka
def test_an_eager_join_emits_null_at_once_and_the_pair_later():
    lines = [left("k", "l", 0), right("k", "r", 5), right("z", "r", 5)]
    assert stream_stream_join("outer", lines, emit="eager") == [
        (0, "k", ["l", None], 0),
        (1, "k", ["l", "r"], 5),
        (2, "z", [None, "r"], 5),
    ]


@needs_kafka
@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("inner", []),
        ("left", [(0, [1, None], 1)]),
        ("outer", [(0, [1, None], 1), (1, [None, 2], 2)]),
    ],
)
def test_a_null_key_is_emitted_at_once_or_dropped(join, expected):
    assert stream_stream_join(join, [left(None, 1, 1), right(None, 2, 2)]) == expected


@needs_kafka
def test_a_null_value_is_dropped_from_both_streams():
    assert stream_stream_join("outer", [left("k", None, 0), right("k", None, 0), left("z", 1, 0)]) == []


@needs_kafka
def test_null_keys_and_null_values_move_the_stream_time_of_a_join_but_emit_no_unmatched_row():
    lines = [left("k", 1, 0), right(None, 1, 50), left("k", None, 100), left("j", 1, 90), left("z", 1, 100)]
    assert stream_stream_join("left", lines) == [(3, "j", [1, None], 90), (4, "k", [1, None], 0)]


@needs_kafka
def test_kafka_19536_an_older_row_is_emitted_with_null_at_once_and_joins_all_the_same():
    lines = [left("z", 1, 20), left("k", 2, 1), right("k", 3, 3)]
    assert stream_stream_join("left", lines, grace=50) == [(1, "k", [2, None], 1), (2, "k", [2, 3], 3)]


@needs_kafka
def test_kafka_16123_a_record_beyond_grace_still_joins():
    lines = [left("k", "A", 0), left("z", 1, 150), right("k", "a", 50)]
    assert stream_stream_join("left", lines, before=100, after=100) == [
        (1, "k", ["A", None], 0),
        (2, "k", ["A", "a"], 50),
    ]


@needs_kafka
def test_without_bounds_and_grace_simultaneous_records_never_join():
    assert stream_stream_join("inner", [left("k", 1, 5), right("k", 2, 5)], before=0, after=0) == []


@needs_kafka
def test_after_a_scan_an_unmatched_row_waits_for_the_youngest_row_that_the_scan_saw():
    lines = [left("a", 1, 0), left("b", 2, 12), left("c", 3, 25), left("z", 4, 26), left("z", 4, 45), left("z", 4, 51)]
    # Due at 38: 12 + after 5 + grace 20 < 38. The scan at 26 has seen c at 25, and until 25 + 25 < 51 none scans again.
    assert stream_stream_join("left", lines, grace=20) == [
        (3, "a", [1, None], 0),
        (5, "b", [2, None], 12),
        (5, "c", [3, None], 25),
    ]


@needs_kafka
def test_an_unmatched_row_waits_for_the_reach_of_the_record_that_would_emit_it():
    # Due at 32: 28 + after 3 < 32; but a right record scans only when 28 + before 8 lies behind it.
    lines = [left("a", 1, 28), right("z", 2, 36), right("z", 3, 37)]
    assert stream_stream_join("left", lines, before=8, after=3) == [(2, "a", [1, None], 28)]


# Table-table joins: one key, in order.

TABLES = [
    # arrival, then the value that comes out inner, left, outer ("-": nothing, None: a tombstone)
    (("left", "l1"), "-", ["l1", None], ["l1", None]),
    (("right", "r1"), ["l1", "r1"], ["l1", "r1"], ["l1", "r1"]),
    (("left", None), None, None, [None, "r1"]),
    (("left", None), None, None, [None, "r1"]),
    (("left", "l2"), ["l2", "r1"], ["l2", "r1"], ["l2", "r1"]),
    (("right", None), None, ["l2", None], ["l2", None]),
    (("right", None), None, ["l2", None], ["l2", None]),
    (("left", None), "-", None, None),
    (("left", None), "-", "-", "-"),
    (("right", "r2"), "-", "-", [None, "r2"]),
    (("right", None), "-", "-", None),
]


@needs_kafka
@pytest.mark.parametrize("join", ["inner", "left", "outer"])
def test_a_table_table_join_is_emitted_as_the_facts_say(join):
    column = ["inner", "left", "outer"].index(join) + 1
    lines = [Record(row[0][0], "k", row[0][1], at) for at, row in enumerate(TABLES)]
    expected = [(arrival, "k", row[column], arrival) for arrival, row in enumerate(TABLES) if row[column] != "-"]
    assert emitted("table_table_join", {"join": join}, lines) == expected


@needs_kafka
def test_a_joined_row_is_stamped_by_the_younger_side_and_arrival_order_wins():
    lines = [left("k", "l", 9), right("k", "r", 2), left("k", "older", 1), right(None, "r", 50)]
    assert emitted("table_table_join", {}, lines) == [(1, "k", ["l", "r"], 9), (2, "k", ["older", "r"], 2)]


# Stream-table joins.

LOOK_UPS = [
    left("a", 1, 0),
    right("a", 1, 9),
    left("a", 2, 3),
    left("a", None, 4),
    left(None, 1, 5),
    right("a", None, 6),
    left("a", 3, 7),
]


@needs_kafka
def test_a_left_stream_table_join_emits_every_record_with_a_value_at_its_own_time():
    assert emitted("stream_table_join", {"join": "left", "null_key": "keep"}, LOOK_UPS) == [
        (0, "a", [1, None], 0),
        (2, "a", [2, 1], 3),
        (4, [1, None], 5),
        (6, "a", [3, None], 7),
    ]


@needs_kafka
def test_an_inner_stream_table_join_emits_what_the_table_has():
    assert emitted("stream_table_join", {"join": "inner"}, LOOK_UPS) == [(2, "a", [2, 1], 3)]


# Table aggregates.


def member(group, amount):
    return {"group": group, "amount": amount}


MOVES = [
    event("a", member("p", 1), 0),
    event("b", member("p", 2), 5),
    event("c", member("p", 1), 1),
    event("b", member("p", 4), 2),
    event("c", member("q", 1), 3),
    event("a", member(None, 9), 4),
    event("b", None, 6),
    event(None, member("p", 1), 9),
]
MOVED = [(0, "p", 0), (1, "p", 5), (2, "p", 5), (3, "p", 5), (4, "p", 5), (4, "q", 3), (5, "p", 5), (6, "p", 6)]


@needs_kafka
@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"aggregate": "count"}, [1, 2, 3, 3, 2, 1, 1, 0]),
        ({"aggregate": "sum", "field": "amount"}, [1, 3, 4, 6, 5, 1, 4, 0]),
        ({"aggregate": "list", "field": "amount"}, [[1], [1, 2], [1, 2, 1], [1, 1, 4], [1, 4], [1], [4], []]),
    ],
    ids=["count", "sum", "list"],
)
def test_a_table_aggregate_subtracts_the_old_first_and_then_adds_the_new(options, values):
    expected = [(arrival, key, value, at) for (arrival, key, at), value in zip(MOVED, values, strict=True)]
    assert emitted("table_aggregate", {"group_by": "group", **options}, MOVES) == expected


@needs_kafka
def test_a_list_takes_members_of_any_text_away():
    values = ["(?m)^\\Q\\E$", 'say "\n"', "(?m)^\\Q\\E$ more"]
    lines = [event(str(index), member("p", value), 0) for index, value in enumerate(values)]
    lines += [event(str(index), None, 0) for index in (0, 1, 2)]
    options = {"group_by": "group", "aggregate": "list", "field": "amount"}
    assert [value for _, _, value, _ in emitted("table_aggregate", options, lines)][2:] == [
        values,
        values[1:],
        values[2:],
        [],
    ]


# Windowed tables.


def windowed(lines, dialect=PLAIN, **options):
    return emitted("windowed_table", {"size_ms": 10, "aggregate": "list", **options}, lines, dialect)


@needs_kafka
def test_a_record_is_emitted_in_each_of_its_windows_by_start():
    assert windowed([event("k", 1, 7), event("k", 2, 5)], step_ms=5) == [
        (0, "k", (0, 10), [1], 7),
        (0, "k", (5, 15), [1], 7),
        (1, "k", (0, 10), [1, 2], 7),
        (1, "k", (5, 15), [1, 2], 7),
    ]


@needs_kafka
def test_a_window_is_closed_once_its_end_and_grace_are_reached():
    lines = [event("k", 1, 0), event("j", 1, 11), event("k", 2, 1), ClockAdvance(12), event("k", 3, 1)]
    assert windowed(lines, grace_ms=2) == [
        (0, "k", (0, 10), [1], 0),
        (1, "j", (10, 20), [1], 11),
        (2, "k", (0, 10), [1, 2], 1),
    ]


@needs_kafka
def test_a_null_value_is_a_member_of_its_window_and_a_null_key_of_none():
    assert windowed([event("k", None, 0), event(None, 1, 50), event("k", 2, 1)]) == [
        (0, "k", (0, 10), [None], 0),
        (2, "k", (0, 10), [None, 2], 1),
    ]


CLOSING = [event("b", 1, 3), event("a", 1, 0), event("a", 2, 4), event("c", 1, 18), event("z", 1, 90)]
TOLD_CLOSED = [(3, "a", (0, 10), [1, 2], 4), (3, "b", (0, 10), [1], 3), (4, "c", (10, 20), [1], 18)]


@needs_kafka
@pytest.mark.parametrize("suppress", [False, True])
def test_a_closed_window_is_emitted_once_by_end_then_key(suppress):
    assert windowed(CLOSING, Dialect(suppress=suppress), emit="close") == TOLD_CLOSED


@needs_kafka
def test_under_its_own_retention_kafka_never_emits_a_closed_window():
    assert windowed(CLOSING, Dialect(exact_retention=True), emit="close") == []


PAIRED = [event("k", 1, 0), Record("right", "k", 2, 3), Record("right", "j", 3, 1)]


@needs_kafka
@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("inner", [(1, "k", (0, 10), [[1], [2]], 3)]),
        ("left", [(0, "k", (0, 10), [[1], None], 0), (1, "k", (0, 10), [[1], [2]], 3)]),
        (
            "outer",
            [
                (0, "k", (0, 10), [[1], None], 0),
                (1, "k", (0, 10), [[1], [2]], 3),
                (2, "j", (0, 10), [None, [3]], 1),
            ],
        ),
    ],
)
def test_two_windowed_tables_join_on_the_same_window(join, expected):
    assert windowed(PAIRED, **{"with": "windowed_table", "join": join}) == expected


@needs_kafka
def test_two_windowed_tables_share_a_clock_unless_each_is_left_to_its_own():
    lines = [event("k", 1, 0), Record("right", "j", 1, 20), event("k", 2, 1)]
    options = {"with": "windowed_table", "join": "left"}
    assert windowed(lines, **options) == [(0, "k", (0, 10), [[1], None], 0)]
    own = windowed(lines, Dialect(own_clocks=True), **options)
    assert own == [(0, "k", (0, 10), [[1], None], 0), (2, "k", (0, 10), [[1, 2], None], 1)]


@needs_kafka
def test_two_windowed_tables_that_close_together_emit_their_pair_twice():
    lines = [event("k", 1, 0), Record("right", "k", 2, 1), event("k", 3, 50)]
    pair = (2, "k", (0, 10), [[1], [2]], 1)
    assert windowed(lines, emit="close", **{"with": "windowed_table", "join": "inner"}) == [pair, pair]


# Outcomes.


@needs_kafka
def test_batches_are_numbered_by_cuts_which_are_no_arrivals():
    lines = [left("k", 1, 0), CUT, ClockAdvance(9), CUT, CUT, right("k", 2, 1)]
    (outcome,) = KafkaWitness().evaluate([history("table_table_join", {}, lines, "named")])
    assert [(entry.arrival, entry.batch) for entry in outcome.entries] == [(2, 3)]
    assert (outcome.history, outcome.grain, outcome.knows_dropped) == ("named", Grain.ARRIVAL, False)


MIXED = [
    history("session_windows", {"gap_ms": 10, "aggregate": "sum"}, [event("k", 1, 0), event("k", 2, 5)]),
    history("table_table_join", {"join": "outer"}, [left("k", 1, 0), right("k", 2, 1)]),
    history(
        "stream_stream_join",
        {"join": "outer", "before_ms": 5, "after_ms": 5, "emit": "close", "null_key": "keep"},
        [left("k", 1, 0), right("j", 2, 100), left("z", 1, 300)],
    ),
    history("foreign_key_join", {"foreign_key": "fk"}, [left("k", of("r"), 0), right("r", 2, 1)]),
    history("session_windows", {"gap_ms": 10, "emit": "close"}, [event("k", 1, 0), event("k", 2, 50)]),
    history("windowed_table", {"size_ms": 10, "emit": "close"}, [event("k", 1, 0), event("k", 2, 50)]),
    history("table_aggregate", {"group_by": "fk"}, [event("k", of("r"), 0), event("k", of("s"), 1)]),
    history("table_table_join", {}, []),
]


@needs_kafka
def test_histories_answered_together_are_answered_as_each_alone():
    # Twice over: a topology that has been played before has to start from nothing again.
    assert KafkaWitness().evaluate(MIXED * 2) == [KafkaWitness().evaluate([each])[0] for each in MIXED] * 2


@needs_kafka
def test_keys_and_values_of_any_text_come_back_as_they_went_in():
    awkward = 'a@1/2]\n\t"\\é💧heartbeat'
    lines = [event(awkward, awkward, 0), event("heartbeat", 1.5, 0), event("", {"b": [True, None], "a": 10**30}, 0)]
    assert sessions([*lines, ClockAdvance(3)]) == [
        (0, awkward, (0, 0), [awkward], 0),
        (1, "heartbeat", (0, 0), [1.5], 0),
        (2, "", (0, 0), [{"b": [True, None], "a": 10**30}], 0),
    ]


# Refusals, which need no Kafka.

REFUSED = {
    "kafka has no batch clock": history("table_table_join", {}, [], clock="batch"),
    "kafka has no deliveries": history("table_table_join", {}, [Delivery("subscription", "r", None)]),
    "kafka has no range_aggregate": history("range_aggregate", {"preceding_ms": 5}, []),
    "kafka has no one_to_many_join": history("one_to_many_join", {"foreign_key": "fk"}, []),
    "kafka has no late 'own'": history("session_windows", {"gap_ms": 5, "late": "own"}, []),
    "kafka has no join of a windowed table with 'table'": history(
        "windowed_table", {"size_ms": 5, "with": "table"}, []
    ),
    "kafka has no to_stream": history("windowed_table", {"size_ms": 5, "to_stream": "window_in_key"}, []),
    "kafka has no shift_ms": history("windowed_table", {"size_ms": 5, "with": "windowed_table", "shift_ms": 5}, []),
    "kafka has no emit 'arrival'": history("stream_stream_join", {"join": "left", "before_ms": 1, "after_ms": 1}, []),
    "kafka has no protocol 'answer'": history("foreign_key_join", {"foreign_key": "fk", "protocol": "answer"}, []),
    "kafka has no left join that ignores null foreign keys": history(
        "foreign_key_join", {"foreign_key": "fk", "join": "left"}, [left("k", of(None), 0)]
    ),
    "kafka has no left join that drops null keys": history("stream_table_join", {"join": "left"}, [left(None, 1, 0)]),
    "kafka has no outer join that drops null keys": history(
        "stream_stream_join",
        {"join": "outer", "before_ms": 1, "after_ms": 1, "emit": "close"},
        [right(None, 1, 0)],
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_kafka_has_no_counterpart_for_is_refused_with_the_reason(reason):
    with pytest.raises(BadInput, match=f"^history: {reason}"):
        KafkaWitness().evaluate([REFUSED[reason]])


@pytest.mark.parametrize("join", ["left", "inner"])
def test_an_option_is_refused_only_where_a_record_asks_for_it(join):
    assert (
        KafkaWitness().refuses(history("stream_table_join", {"join": join}, [left("k", 1, 0), right(None, 1, 0)]))
        is None
    )
    assert (
        KafkaWitness().refuses(
            history("foreign_key_join", {"foreign_key": "fk", "join": join}, [left("k", of("r"), 0)])
        )
        is None
    )


def test_a_record_that_the_operator_cannot_take_is_named():
    with pytest.raises(BadInput, match="history: arrival 1: unknown input 'events'"):
        KafkaWitness().evaluate([history("table_table_join", {}, [left("k", 1, 0), event("k", 1, 0)])])


def test_no_histories_need_no_kafka(monkeypatch):
    monkeypatch.setattr(kafka_witness, "kafka_jvm", lambda: pytest.fail("started a JVM"))
    assert KafkaWitness().evaluate([]) == []

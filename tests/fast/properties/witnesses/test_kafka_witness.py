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


# Foreign-key joins.


def foreign_key_join(lines, join):
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
    assert foreign_key_join(lines, join) == expected


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
    "an unmatched foreign key": ([left("k", of("q"), 2)], [(3, "k", None, 2)], [(3, "k", [of("q"), None], 2)]),
    "a deletion, and a second one": (
        [left("k", None, 2), left("k", None, 3)],
        [(3, "k", None, 2)],
        [(3, "k", None, 2)],
    ),
    "an older right row": ([right("r", "A2", 0)], [(3, "k", [of("r"), "A2"], 0)], [(3, "k", [of("r"), "A2"], 0)]),
    "the same right row again": ([right("r", "A", 2)], [(3, "k", [of("r"), "A"], 2)], [(3, "k", [of("r"), "A"], 2)]),
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
    assert foreign_key_join([*JOINED, *lines], join)[1:] == expected


@needs_kafka
def test_a_deletion_in_an_inner_join_is_stamped_by_the_right_row_too():
    lines = [left("k", of("r"), 0), right("r", "A", 8), left("k", None, 6)]
    assert foreign_key_join(lines, "inner")[-1] == (2, "k", None, 8)
    assert foreign_key_join(lines, "left")[-1] == (2, "k", None, 6)


@needs_kafka
def test_a_right_row_fans_out_by_the_bytes_of_the_left_keys():
    keys = ["l10", "l1", "l1!", "é", "z"]
    lines = [*(left(key, of("r"), 0) for key in keys), right("r", "A", 1)]
    assert [key for _, key, _, _ in foreign_key_join(lines, "inner")] == ["l1", "l1!", "l10", "z", "é"]


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


# One answer each.


def stream_stream_join(lines, join, before=5, after=5, grace=0, emit="close"):
    options = {"join": join, "before_ms": before, "after_ms": after, "grace_ms": grace, "emit": emit}
    return emitted("stream_stream_join", {**options, "null_key": "keep"}, lines)


def stream_table_join(lines, **options):
    return emitted("stream_table_join", options, lines)


def table_table_join(lines, **options):
    return emitted("table_table_join", options, lines)


def windowed(lines, dialect=PLAIN, **options):
    return emitted("windowed_table", {"size_ms": 10, "aggregate": "list", **options}, lines, dialect)


OWN_RETENTION = {"dialect": Dialect(exact_retention=True)}
FORGOTTEN = [event("k", 1, 0), event("j", 1, 10), event("k", 2, 0)]
FIRST_TWO = [(0, "k", (0, 0), [1], 0), (1, "j", (10, 10), [1], 10)]
REVISED = [event("k", 1, 0), event("j", 1, 12), event("k", 2, 10)]
BEFORE_REVISED = [(0, "k", (0, 0), [1], 0), (1, "j", (12, 12), [1], 12)]
CLOSED = [*FORGOTTEN, event("j", 1, 11), event("j", 1, 100)]
NULL_KEYS = [left(None, 1, 1), right(None, 2, 2)]
LOOK_UPS = [left("a", 1, 0), right("a", 1, 9), left("a", 2, 3), left("a", None, 4), left(None, 1, 5)]
LOOK_UPS += [right("a", None, 6), left("a", 3, 7)]
CLOSING = [event("b", 1, 3), event("a", 1, 0), event("a", 2, 4), event("c", 1, 18), event("z", 1, 90)]
CLOSED_ONCE = [(3, "a", (0, 10), [1, 2], 4), (3, "b", (0, 10), [1], 3), (4, "c", (10, 20), [1], 18)]
PAIRED = [event("k", 1, 0), right("k", 2, 3), right("j", 3, 1)]
LEFT_ALONE, PAIR = (0, "k", (0, 10), [[1], None], 0), (1, "k", (0, 10), [[1], [2]], 3)
OTHER_CLOCKS = [event("k", 1, 0), right("j", 1, 20), event("k", 2, 1)]
TOGETHER = [event("k", 1, 0), right("k", 2, 1), event("k", 3, 50)]
BOTH_WINDOWED = {"with": "windowed_table"}
ANSWERS = {
    "under its own retention, it forgets a session one step early": (
        *(sessions, FORGOTTEN, OWN_RETENTION),
        [*FIRST_TWO, (2, "k", (0, 0), [2], 0)],
    ),
    "with 1 ms more retention, a session is remembered until it closes": (
        *(sessions, FORGOTTEN, {}),
        [*FIRST_TWO, (2, "k", (0, 0), [1, 2], 0)],
    ),
    "under a long retention, it revises a closed session": (
        *(sessions, REVISED, {**OWN_RETENTION, "retention_ms": 100}),
        [*BEFORE_REVISED, (2, "k", (0, 0), None, 0), (2, "k", (0, 10), [1, 2], 10)],
    ),
    "by default, a closed session stays, whatever the retention": (
        *(sessions, REVISED, {"retention_ms": 100}),
        [*BEFORE_REVISED, (2, "k", (10, 10), [2], 10)],
    ),
    "a closed session is emitted once": (
        *(sessions, CLOSED, {"emit": "close"}),
        [(3, "k", (0, 0), [1, 2], 0), (4, "j", (10, 11), [1, 1], 11)],
    ),
    "under its own retention, it never emits a closed session": (
        sessions,
        CLOSED,
        {**OWN_RETENTION, "emit": "close"},
        [],
    ),
    "suppress emits a session one step early, and then again": (
        *(sessions, CLOSED, {"dialect": Dialect(suppress=True), "emit": "close"}),
        [(1, "k", (0, 0), [1], 0), (2, "k", (0, 0), [1, 2], 0), (4, "j", (10, 11), [1, 1], 11)],
    ),
    "a foreign key that another one begins with is another": (
        *(foreign_key_join, [left("a", of("fk1"), 0), left("b", of("fk"), 0), right("fk", "X", 1)], {"join": "inner"}),
        [(2, "b", [of("fk"), "X"], 1)],
    ),
    "bounds are inclusive at both ends": (
        stream_stream_join,
        [left("k", "l", 10), *(right("k", at, at) for at in (6, 7, 15, 16))],
        {"join": "inner", "before": 3, "after": 5, "grace": 20},
        [(2, "k", ["l", 7], 10), (3, "k", ["l", 15], 15)],
    ),
    "an unmatched left row is emitted once no partner can come": (
        *(stream_stream_join, [left("k", 1, 0), left("z", 1, 5), left("z", 1, 6)], {"join": "left"}),
        [(2, "k", [1, None], 0)],
    ),
    "unmatched rows are emitted by timestamp, then right before left, then key": (
        stream_stream_join,
        [left("b", 1, 0), right("c", 1, 0), right("a", 2, 0), left("a0", 1, 0), left("x", 1, 3), left("z", 1, 100)],
        {"join": "outer"},
        [
            *((5, key, [None, value], 0) for key, value in (("a", 2), ("c", 1))),
            *((5, key, [1, None], at) for key, at in (("a0", 0), ("b", 0), ("x", 3))),
        ],
    ),
    "an eager join emits null at once, and the pair later": (
        stream_stream_join,
        [left("k", "l", 0), right("k", "r", 5), right("z", "r", 5)],
        {"join": "outer", "emit": "eager"},
        [(0, "k", ["l", None], 0), (1, "k", ["l", "r"], 5), (2, "z", [None, "r"], 5)],
    ),
    "a null key is dropped by an inner join": (stream_stream_join, NULL_KEYS, {"join": "inner"}, []),
    "a null key is emitted at once by a left join": (
        *(stream_stream_join, NULL_KEYS, {"join": "left"}),
        [(0, [1, None], 1)],
    ),
    "null keys are emitted at once by an outer join": (
        *(stream_stream_join, NULL_KEYS, {"join": "outer"}),
        [(0, [1, None], 1), (1, [None, 2], 2)],
    ),
    "a null value is dropped from both streams": (
        *(stream_stream_join, [left("k", None, 0), right("k", None, 0), left("z", 1, 0)], {"join": "outer"}),
        [],
    ),
    "null keys and null values move the stream time of a join, but emit no unmatched row": (
        stream_stream_join,
        [left("k", 1, 0), right(None, 1, 50), left("k", None, 100), left("j", 1, 90), left("z", 1, 100)],
        {"join": "left"},
        [(3, "j", [1, None], 90), (4, "k", [1, None], 0)],
    ),
    "KAFKA-19536: an older row is emitted with null at once, and joins all the same": (
        *(stream_stream_join, [left("z", 1, 20), left("k", 2, 1), right("k", 3, 3)], {"join": "left", "grace": 50}),
        [(1, "k", [2, None], 1), (2, "k", [2, 3], 3)],
    ),
    "KAFKA-16123: a record beyond grace still joins": (
        stream_stream_join,
        [left("k", "A", 0), left("z", 1, 150), right("k", "a", 50)],
        {"join": "left", "before": 100, "after": 100},
        [(1, "k", ["A", None], 0), (2, "k", ["A", "a"], 50)],
    ),
    "without bounds and grace, simultaneous records never join": (
        *(stream_stream_join, [left("k", 1, 5), right("k", 2, 5)], {"join": "inner", "before": 0, "after": 0}),
        [],
    ),
    # Due at 38: 12 + after 5 + grace 20 < 38. The scan at 26 has seen c at 25, and until 25 + 25 < 51 none scans again.
    "after a scan, an unmatched row waits for the youngest row that the scan saw": (
        stream_stream_join,
        [*map(left, "abczzz", (1, 2, 3, 4, 4, 4), (0, 12, 25, 26, 45, 51))],
        {"join": "left", "grace": 20},
        [(3, "a", [1, None], 0), (5, "b", [2, None], 12), (5, "c", [3, None], 25)],
    ),
    # Due at 32: 28 + after 3 < 32; but a right record scans only when 28 + before 8 lies behind it.
    "an unmatched row waits for the reach of the record that would emit it": (
        stream_stream_join,
        [left("a", 1, 28), right("z", 2, 36), right("z", 3, 37)],
        {"join": "left", "before": 8, "after": 3},
        [(2, "a", [1, None], 28)],
    ),
    "a joined row is stamped by the younger side, and arrival order wins": (
        *(table_table_join, [left("k", "l", 9), right("k", "r", 2), left("k", "older", 1), right(None, "r", 50)], {}),
        [(1, "k", ["l", "r"], 9), (2, "k", ["older", "r"], 2)],
    ),
    "a left stream-table join emits every record with a value at its own time": (
        *(stream_table_join, LOOK_UPS, {"join": "left", "null_key": "keep"}),
        [(0, "a", [1, None], 0), (2, "a", [2, 1], 3), (4, [1, None], 5), (6, "a", [3, None], 7)],
    ),
    "an inner stream-table join emits what the table has": (
        *(stream_table_join, LOOK_UPS, {"join": "inner"}),
        [(2, "a", [2, 1], 3)],
    ),
    "a record is emitted in each of its windows, by start": (
        *(windowed, [event("k", 1, 7), event("k", 2, 5)], {"step_ms": 5}),
        [(at, "k", window, [1, 2][: at + 1], 7) for at in (0, 1) for window in ((0, 10), (5, 15))],
    ),
    "a window is closed once its end and grace are reached": (
        windowed,
        [event("k", 1, 0), event("j", 1, 11), event("k", 2, 1), ClockAdvance(12), event("k", 3, 1)],
        {"grace_ms": 2},
        [(0, "k", (0, 10), [1], 0), (1, "j", (10, 20), [1], 11), (2, "k", (0, 10), [1, 2], 1)],
    ),
    "a null value is a member of its window, and a null key of none": (
        *(windowed, [event("k", None, 0), event(None, 1, 50), event("k", 2, 1)], {}),
        [(0, "k", (0, 10), [None], 0), (2, "k", (0, 10), [None, 2], 1)],
    ),
    "a closed window is emitted once, by end, then key": (windowed, CLOSING, {"emit": "close"}, CLOSED_ONCE),
    "suppress emits a closed window once too": (
        *(windowed, CLOSING, {"dialect": Dialect(suppress=True), "emit": "close"}),
        CLOSED_ONCE,
    ),
    "under its own retention, it never emits a closed window": (
        windowed,
        CLOSING,
        {**OWN_RETENTION, "emit": "close"},
        [],
    ),
    "inner, two windowed tables join on the same window": (
        windowed,
        PAIRED,
        {**BOTH_WINDOWED, "join": "inner"},
        [PAIR],
    ),
    "left, two windowed tables join on the same window": (
        *(windowed, PAIRED, {**BOTH_WINDOWED, "join": "left"}),
        [LEFT_ALONE, PAIR],
    ),
    "outer, two windowed tables join on the same window": (
        *(windowed, PAIRED, {**BOTH_WINDOWED, "join": "outer"}),
        [LEFT_ALONE, PAIR, (2, "j", (0, 10), [None, [3]], 1)],
    ),
    "two windowed tables share a clock": (windowed, OTHER_CLOCKS, {**BOTH_WINDOWED, "join": "left"}, [LEFT_ALONE]),
    "two windowed tables may each have a clock": (
        *(windowed, OTHER_CLOCKS, {**BOTH_WINDOWED, "join": "left", "dialect": Dialect(own_clocks=True)}),
        [LEFT_ALONE, (2, "k", (0, 10), [[1, 2], None], 1)],
    ),
    "two windowed tables that close together emit their pair twice": (
        *(windowed, TOGETHER, {**BOTH_WINDOWED, "join": "inner", "emit": "close"}),
        [(2, "k", (0, 10), [[1], [2]], 1)] * 2,
    ),
}


@needs_kafka
@pytest.mark.parametrize(("ask", "lines", "options", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_kafka_answers_as_the_facts_say(ask, lines, options, expected):
    assert ask(lines, **options) == expected


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
        "stream_stream_join", {"join": "outer", "before_ms": 1, "after_ms": 1, "emit": "close"}, [right(None, 1, 0)]
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

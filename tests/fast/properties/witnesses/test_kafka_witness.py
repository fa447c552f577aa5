"""The real Kafka Streams 4.3.1, checked against what is known of it, its contradictions of itself included."""

from __future__ import annotations

import pytest
from notation import history_of
from streamproof.properties.outcomes.outcomes import Grain
from streamproof.properties.witnesses.kafka import witness as kafka_witness
from streamproof.properties.witnesses.kafka.builder import Dialect
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, Delivery, History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Record

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


# What the reference is asserted to emit, text by text (tests/fast/reference), Kafka Streams emits too.

BOUNDED = {"before_ms": 3, "after_ms": 5, "grace_ms": 20, "null_key": "keep"}
BOTH_WINDOWED = {"with": "windowed_table"}
SAME = {
    "sessions": (
        "session_windows",
        [{"gap_ms": 10, "aggregate": "list"}],
        [
            "k=a@0 k=b@10 k=c@21",
            "k=a@0 k=b@10 k=c@5",
            "k=a@0 k=b@0",
            "k=1@0 k=2@10 j=1@12 k=3@0",
            "k=1@0 j=1@11 k=2@0",
            "k=null@0 -=1@100 k=2@5",
            "k=1@0 ~11 k=2@0",
            "k=1@0 j=1@10 k=2@0",
        ],
    ),
    "sessions with a long retention": (
        *("session_windows", [{"gap_ms": 10, "aggregate": "list", "retention_ms": 100}]),
        ["k=1@0 j=1@12 k=2@10"],
    ),
    "closed sessions": (
        *("session_windows", [{"gap_ms": 10, "aggregate": "list", "emit": "close"}]),
        ["k=1@0 j=1@10 k=2@0 j=1@11 j=1@100"],
    ),
    "streams": (
        "stream_stream_join",
        [{**BOUNDED, "join": join, "emit": "close"} for join in ("inner", "left", "outer")],
        ["L -=1@1 R -=2@2 L k=1@3 R k=2@4", "L k=∅@0 R k=∅@0 L z=1@0 R z=1@1"],
    ),
    "bounds of streams": (
        *("stream_stream_join", [{**BOUNDED, "join": join, "emit": "close"} for join in ("inner", "left")]),
        ["L k=l@10 R k=6@6 k=7@7 k=15@15 k=16@16"],
    ),
    "unmatched rows": (
        "stream_stream_join",
        [{**BOUNDED, "grace_ms": 0, "join": join, "emit": "close"} for join in ("left", "outer")],
        ["L k=1@0 z=1@5 z=1@6", "L b=1@0 R c=1@0 a=2@0 L a0=1@0 x=1@3 z=1@100"],
    ),
    "eager streams": (
        *("stream_stream_join", [{**BOUNDED, "join": "outer", "emit": "eager"}]),
        ["L k=l@0 R k=r@5 z=r@5"],
    ),
    "streams and tables": (
        *("stream_table_join", [{"join": "left", "null_key": "keep"}, {"join": "inner"}]),
        ["L a=1@0 R a=1@9 L a=2@3 a=∅@4 -=1@5 R a=∅@6 L a=3@7"],
    ),
    "windows": (
        "windowed_table",
        [{"size_ms": 10, "aggregate": "list", **more} for more in ({}, {"step_ms": 5}, {"grace_ms": 2})],
        ["k=1@7 k=2@5", "k=1@0 j=1@11 k=2@1 ~12 k=3@1", "k=∅@0 -=1@50 k=2@1"],
    ),
    "closed windows": (
        *("windowed_table", [{"size_ms": 10, "aggregate": "list", "emit": "close"}]),
        ["b=1@3 a=1@0 a=2@4 c=1@18 z=1@90"],
    ),
    "two windowed tables": (
        "windowed_table",
        [{"size_ms": 10, "aggregate": "list", **BOTH_WINDOWED, "join": join} for join in ("inner", "left", "outer")],
        ["E k=1@0 R k=2@3 j=3@1", "E k=1@0 R k=2@3 j=1@20 E k=2@1"],
    ),
    "sessions with grace": (
        "session_windows",
        [{"gap_ms": 10, "grace_ms": 100, "aggregate": "list"}],
        ["k=a@0 k=b@20 k=c@10", "k=a@20 k=b@0 k=c@10"],
    ),
    "foreign keys": (
        "foreign_key_join",
        [{"join": join, "null_foreign_key": "keep"} for join in ("inner", "left")],
        [
            "L k=a|1 k=a|2 k=a|3 R 1=foo 3=bar L k=∅ k=a|1 q=a|10 R 10=baz",
            "L l10=a|r l1=a|r l1!=a|r é=a|r z=a|r R r=A",
            "L a=v|fk1 b=v|fk R fk=X",
            *(
                f"R r=A@0 s=B@0 L k=a|r@1 {then}"
                for then in (
                    "k=a|null@2 k=a|s@3",
                    "k=a|s@2 R r=A2@3",
                    "k=a|q@2",
                    "k=∅@2 k=∅@3",
                    "R r=A2@0",
                    "R r=A@2",
                    "R r=∅@2 r=∅@3",
                    "-=a|r@2 R -=A@2",
                )
            ),
        ],
    ),
    "tables": (
        "table_table_join",
        [{"join": join} for join in ("inner", "left", "outer")],
        ["L k=l1 R k=r1 L k=∅ k=∅ k=l2 R k=∅ k=∅ L k=∅ k=∅ R k=r2 k=∅", "L k=l@9 R k=r@2 L k=older@1 R -=r@50"],
    ),
    "groups": (
        "table_aggregate",
        [{"aggregate": aggregate, "field": "v"} for aggregate in ("count", "sum", "list")],
        ["a=1/p@0 b=2/p@5 c=1/p@1 b=4/p@2 c=1/q@3 a=9/null@4 b=∅@6 -=1/p@9"],
    ),
}


@needs_kafka
@pytest.mark.parametrize(("operator", "declared", "texts"), SAME.values(), ids=SAME)
def test_kafka_emits_in_order_what_the_reference_is_asserted_to(operator, declared, texts):
    histories = [history_of(text, operator, **options) for options in declared for text in texts]
    for asked, outcome in zip(histories, KafkaWitness(PLAIN).evaluate(histories), strict=True):
        changes = [entry for entry in play(asked).entries if isinstance(entry.output, Change)]
        assert [entry[0::2] for entry in outcome.entries] == [entry[0::2] for entry in changes] != [], asked.to_text()


# Session windows, gap 10.


def sessions(lines, dialect=PLAIN, **options):
    return emitted("session_windows", {"gap_ms": 10, "aggregate": "list", **options}, lines, dialect)


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


@needs_kafka
def test_a_deletion_in_an_inner_join_is_stamped_by_the_right_row_too():
    lines = [left("k", of("r"), 0), right("r", "A", 8), left("k", None, 6)]
    assert foreign_key_join(lines, "inner")[-1] == (2, "k", None, 8)
    assert foreign_key_join(lines, "left")[-1] == (2, "k", None, 6)


# Table aggregates.


def member(group, amount):
    return {"group": group, "amount": amount}


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


def windowed(lines, dialect=PLAIN, **options):
    return emitted("windowed_table", {"size_ms": 10, "aggregate": "list", **options}, lines, dialect)


OWN_RETENTION = {"dialect": Dialect(exact_retention=True)}
FORGOTTEN = [event("k", 1, 0), event("j", 1, 10), event("k", 2, 0)]
FIRST_TWO = [(0, "k", (0, 0), [1], 0), (1, "j", (10, 10), [1], 10)]
REVISED = [event("k", 1, 0), event("j", 1, 12), event("k", 2, 10)]
BEFORE_REVISED = [(0, "k", (0, 0), [1], 0), (1, "j", (12, 12), [1], 12)]
CLOSED = [*FORGOTTEN, event("j", 1, 11), event("j", 1, 100)]
CLOSING = [event("b", 1, 3), event("a", 1, 0), event("a", 2, 4), event("c", 1, 18), event("z", 1, 90)]
CLOSED_ONCE = [(3, "a", (0, 10), [1, 2], 4), (3, "b", (0, 10), [1], 3), (4, "c", (10, 20), [1], 18)]
LEFT_ALONE = (0, "k", (0, 10), [[1], None], 0)
OTHER_CLOCKS = [event("k", 1, 0), right("j", 1, 20), event("k", 2, 1)]
TOGETHER = [event("k", 1, 0), right("k", 2, 1), event("k", 3, 50)]
ANSWERS = {
    "under its own retention, it forgets a session one step early": (
        *(sessions, FORGOTTEN, OWN_RETENTION),
        [*FIRST_TWO, (2, "k", (0, 0), [2], 0)],
    ),
    "under a long retention, it revises a closed session": (
        *(sessions, REVISED, {**OWN_RETENTION, "retention_ms": 100}),
        [*BEFORE_REVISED, (2, "k", (0, 0), None, 0), (2, "k", (0, 10), [1, 2], 10)],
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

"""The real Kafka Streams 4.3.1, checked against what is known of it, its contradictions of itself included."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamproof.properties.checking.samples import definitions_sample, reference_sample
from streamproof.properties.generators.draws import under_stream_time
from streamproof.properties.laws.base import LawResult
from streamproof.properties.laws.of_reference.kafka import KafkaLaw
from streamproof.properties.laws.runs import ReferenceRun
from streamproof.properties.outcomes.outcomes import Grain
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.kafka import witness as kafka_witness
from streamproof.properties.witnesses.kafka.builder import KafkaDialect
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


PLAIN = KafkaDialect()


def history(operator, options, lines, name="history", clock="stream_time"):
    return History(operator, options, tuple(lines), clock, name)


def emitted(operator, options, lines, dialect=PLAIN):
    """What comes out, as (arrival, key, value, timestamp), with the window after the key where there is one."""
    (outcome,) = KafkaWitness(dialect).evaluate([history(operator, options, lines)])
    return [
        (entry.arrival, *(part for part in entry.output[:2] if part is not None), *entry.output[2:])
        for entry in outcome.entries
    ]


@needs_kafka
@pytest.mark.parametrize("operator", [name for name, one in registered().items() if one.kafka is not None])
def test_kafka_emits_step_by_step_what_the_reference_does_but_for_named_divergences(operator):
    registration, law = registration_of(operator), KafkaLaw()
    profiles = [reference_sample(registration, profile, 8, seed=0) for profile in registration.profiles]
    definitions = definitions_sample(registration, 60, seed=0)
    definitions = replace(definitions, histories=[*map(under_stream_time, definitions.histories)])
    asked = [sample for sample in profiles if law.is_asked_of(sample)]
    result = LawResult(law)
    for sample in [*asked, definitions]:
        before = result.judged
        assert [one.case.history.to_text() for one in law.judge(ReferenceRun(sample), result)] == []
        assert result.judged > before
    assert asked


def sessions(lines, dialect=PLAIN, **options):
    return emitted("session_windows", {"gap_ms": 10, "aggregate": "list", **options}, lines, dialect)


def of(foreign_key):
    return {"fk": foreign_key}


@needs_kafka
def test_a_list_takes_members_of_any_text_away():
    values = ["(?m)^\\Q\\E$", 'say "\n"', "(?m)^\\Q\\E$ more"]
    lines = [event(str(index), {"group": "p", "amount": value}, 0) for index, value in enumerate(values)]
    lines += [event(str(index), None, 0) for index in (0, 1, 2)]
    options = {"group_by": "group", "aggregate": "list", "field": "amount"}
    assert [value for _, _, value, _ in emitted("table_aggregate", options, lines)][2:] == [
        values,
        values[1:],
        values[2:],
        [],
    ]


# What is known of Kafka, an answer each.


def stream_stream_join(lines, join, before=5, after=5, grace=0, emit="close"):
    options = {"join": join, "before_ms": before, "after_ms": after, "grace_ms": grace, "emit": emit}
    return emitted("stream_stream_join", {**options, "null_key": "keep"}, lines)


def windowed(lines, dialect=PLAIN, **options):
    return emitted("windowed_table", {"size_ms": 10, "aggregate": "list", **options}, lines, dialect)


OWN_RETENTION = {"dialect": KafkaDialect(exact_retention=True)}
FORGOTTEN = [event("k", 1, 0), event("j", 1, 10), event("k", 2, 0)]
FIRST_TWO = [(0, "k", (0, 0), [1], 0), (1, "j", (10, 10), [1], 10)]
REVISED = [event("k", 1, 0), event("j", 1, 12), event("k", 2, 10)]
BEFORE_REVISED = [(0, "k", (0, 0), [1], 0), (1, "j", (12, 12), [1], 12)]
CLOSED = [*FORGOTTEN, event("j", 1, 11), event("j", 1, 100)]
CLOSING = [event("b", 1, 3), event("a", 1, 0), event("a", 2, 4), event("c", 1, 18), event("z", 1, 90)]
CLOSED_ONCE = [(3, "a", (0, 10), [1, 2], 4), (3, "b", (0, 10), [1], 3), (4, "c", (10, 20), [1], 18)]
LEFT_ALONE = (0, "k", (0, 10), [[1], None], 0)
OTHER_CLOCKS = [event("k", 1, 0), right("j", 1, 20), event("k", 2, 1)]
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
        *(sessions, CLOSED, {"dialect": KafkaDialect(suppress=True), "emit": "close"}),
        [(1, "k", (0, 0), [1], 0), (2, "k", (0, 0), [1, 2], 0), (4, "j", (10, 11), [1, 1], 11)],
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
        *(windowed, CLOSING, {"dialect": KafkaDialect(suppress=True), "emit": "close"}),
        CLOSED_ONCE,
    ),
    "under its own retention, it never emits a closed window": (
        windowed,
        CLOSING,
        {**OWN_RETENTION, "emit": "close"},
        [],
    ),
    "two windowed tables may each have a clock": (
        *(windowed, OTHER_CLOCKS, {"with": "windowed_table", "join": "left", "dialect": KafkaDialect(own_clocks=True)}),
        [LEFT_ALONE, (2, "k", (0, 10), [[1, 2], None], 1)],
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

"""Trace validation by TLC: traces of the protocol are behaviours of the specification, and doctored ones aren't."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from foreign_key_protocols import JOIN
from foreign_key_schedules import RACES
from notation import history_of
from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.history import Delivery, History
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.records import Record
from streamproof.reference.foreign_key_protocol import Protocol
from streamproof.specs.checking import find_tools
from streamproof.specs.replays.foreign_key_kafka import KAFKA, WITHOUT_KEY
from streamproof.specs.traces import UNKNOWN, JoinTrace, TraceEvent
from streamproof.specs.validation import Refusal, Validated, record_trace, validate

RACE = RACES["1 delete, then insert"]


def traced(text: str = RACE, protocol: str = "kafka 4.3", **options: str) -> JoinTrace:
    machine = KAFKA[protocol][1] if protocol in KAFKA else Protocol
    history = history_of(text, JOIN, delivery="manual", **options)
    return record_trace(history, machine, protocol)


def merged(traces: list[JoinTrace]) -> JoinTrace:
    """One trace of many, under keys of their own."""
    events = []
    for number, trace in enumerate(traces):
        for event in trace.events:
            key = event.foreign_key
            own = key if key is None or key is UNKNOWN else f"{number}{key}"
            events.append(replace(event, line=len(events) + 2, key=f"{number}{event.key}", foreign_key=own))
    return replace(traces[0], events=tuple(events), quiet=all(trace.quiet for trace in traces))


def random_history(seed: int, join: str, protocol: type[Protocol], lefts: int = 4, rights: int = 3) -> History:
    """A history whose changes and deliveries are drawn, until nothing waits that a history can deliver."""
    draw = random.Random(seed)
    options = {"foreign_key": "fk", "join": join, "null_foreign_key": "keep", "delivery": "manual"}
    if join == "inner":
        del options["null_foreign_key"]
    machine = protocol(operator_named("foreign_key_join").declare(options), StreamTime())
    lines: list[Any] = []
    while True:
        moves: list[Any] = [Delivery(*route) for route in machine.waiting if route[1] != WITHOUT_KEY]
        if lefts:
            row = {"v": draw.choice("ab"), "fk": draw.choice(["r1", "r2", None])}
            moves.append(Record("left", "l", draw.choice([row, row, None]), 0))
        if rights:
            moves.append(Record("right", draw.choice(["r1", "r2"]), draw.choice(["x", "y", None]), 0))
        if not moves:
            return History("foreign_key_join", options, tuple(lines))
        line = draw.choice(moves)
        lines.append(line)
        if isinstance(line, Delivery):
            machine.deliver(*line)
        else:
            machine.arrive(line)
            lefts, rights = lefts - (line.input == "left"), rights - (line.input == "right")


def asked(trace: JoinTrace) -> Validated:
    return validate(trace, find_tools(), timeout=600)


def refused(trace: JoinTrace) -> Refusal:
    (refusal,) = asked(trace).refusals
    return refusal


def altered(trace: JoinTrace, line: int, **changed: Any) -> JoinTrace:
    events = tuple(replace(event, **changed) if event.line == line else event for event in trace.events)
    return replace(trace, events=events)


def without(trace: JoinTrace, chosen: Callable[[TraceEvent], bool]) -> JoinTrace:
    return replace(trace, events=tuple(event for event in trace.events if not chosen(event)))


def test_a_trace_of_the_protocol_has_all_that_happened_in_order() -> None:
    trace = traced()
    assert [event.line for event in trace.events] == list(range(2, 17))
    assert (trace.quiet, trace.order, trace.protocol) == (True, "total", "kafka 4.3")
    assert [event.kind for event in trace.events][:7] == [
        "right",
        "left",
        "subscription sent",
        "subscription delivered",
        "response sent",
        "response delivered",
        "output",
    ]
    assert not traced("R r1=x L l=a|r1").quiet


def test_traces_of_every_race_are_explained_in_their_order_and_by_their_topics() -> None:
    trace = merged([traced(text) for text in RACES.values()])
    for one in (trace, trace.by_topics()):
        found = asked(one)
        assert (found.parts, found.events, found.refusals) == (len(RACES), len(one.events), ())


@pytest.mark.parametrize(
    ("protocol", "join"),
    [("kafka 4.3", "inner"), ("kafka 3.9", "inner"), ("kip", "inner"), ("kip", "left"), ("kafka 4.3", "left")],
)
def test_random_traces_are_explained(protocol: str, join: str) -> None:
    machine = KAFKA[protocol][1] if protocol in KAFKA else Protocol
    histories = [random_history(seed, join, machine) for seed in range(20)]
    found = asked(merged([record_trace(history, machine, protocol) for history in histories]))
    assert found.parts >= 20  # a right row that no one names is a part of its own
    assert found.refusals == ()


def test_random_traces_by_their_topics_are_explained() -> None:
    machine = KAFKA["kafka 4.3"][1]
    histories = [random_history(seed, "inner", machine, 3, 2) for seed in range(20)]
    traces = [record_trace(history, machine, "kafka 4.3") for history in histories]
    # Responses of two right keys that are sent in one order and arrive in the other can't be in one topic.
    ordered = [trace for trace in traces if arrive_as_sent(trace)]
    assert len(ordered) > 10
    assert asked(merged(ordered).by_topics()).refusals == ()


def arrive_as_sent(trace: JoinTrace) -> bool:
    sent = [event.foreign_key for event in trace.events if event.kind == "response sent"]
    return sent == [event.foreign_key for event in trace.events if event.kind == "response delivered"]


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        (4, {"instruction": "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"}),
        (4, {"of": None}),
        (6, {"value": "y"}),
        (6, {"of": None}),
        (8, {"value": None}),
        (12, {"value": "x"}),
        (14, {"foreign_key": "r1"}),
        (15, {"foreign_key": "r1"}),
    ],
)
def test_a_doctored_event_is_refused_at_its_line(line: int, changed: dict[str, Any]) -> None:
    refusal = refused(altered(traced(), line, **changed))
    assert refusal.event is not None
    assert refusal.event.line == line
    assert str(refusal).startswith(f"line {line} (")
    assert refusal.explained < line - 1
    assert refusal.possible


def test_what_a_step_does_and_the_trace_lacks_is_named() -> None:
    refusal = refused(without(traced(), lambda event: event.kind == "output"))
    assert refusal.event is None
    assert str(refusal) == 'it lacks the next event after line 7: output l = [{"v": "a", "fk": "r1"}, "x"]'


def test_what_could_have_happened_is_told() -> None:
    refusal = refused(altered(traced(), 12, value="x"))
    assert [str(way) for way in refusal.possible] == [
        'left l = {"v": "b", "fk": "r2"}: subscription sent, l to r2: PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE, '
        'hash of {"v": "b", "fk": "r2"}',
        "subscription delivered, l to r1: response sent, r1 to l: ∅, hash of ∅",
    ]


def test_a_trace_that_ends_while_messages_wait_is_not_quiet() -> None:
    trace = traced("R r1=x L l=a|r1 >r1")
    assert asked(trace).refusals == ()
    assert refused(replace(trace, quiet=True)).event is None


def test_topics_that_no_interleaving_explains_are_refused() -> None:
    trace = traced().by_topics()
    # r1 answers the delete with its row, which no order of events makes it do.
    assert (refusal := refused(altered(trace, 12, value="x"))).event is not None
    assert refusal.event.line == 12
    shown_twice = replace(trace, events=(*trace.events, replace(trace.events[4], line=20)))
    assert trace.events[4].kind == "output"
    assert [event.line for event in refused(shown_twice).unexplained] == [20]


def test_what_was_not_recorded_is_explained_by_anything() -> None:
    trace = traced()
    events = [replace(event, of=UNKNOWN) for event in trace.events]
    events = [replace(event, foreign_key=UNKNOWN) if event.kind == "response sent" else event for event in events]
    blind = replace(trace, events=tuple(events))
    assert asked(blind).refusals == ()
    assert asked(blind.by_topics()).refusals == ()
    assert refused(altered(blind, 6, value="y")).event is not None


def test_a_trace_is_held_to_the_protocol_that_is_asked_for() -> None:
    update = "R r1=x L l=a|r1 >r1 <r1/l l=b|r1 >r1 <r1/l"
    trace = traced(update)
    refusal = refused(replace(trace, protocol="kafka 3.9"))
    assert refusal.event is not None
    assert (refusal.event.line, refusal.event.instruction) == (10, "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE")
    assert asked(traced(update, "kafka 3.9")).refusals == ()


def test_of_many_parts_the_one_that_is_refused_is_named() -> None:
    trace = merged([traced(text) for text in list(RACES.values())[:3]])
    line = next(event.line for event in trace.events if event.kind == "output" and event.key == "1l")
    assert (refusal := refused(altered(trace, line, value=None))).event is not None
    assert refusal.event.line == line

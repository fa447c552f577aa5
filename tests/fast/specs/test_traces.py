"""Traces of a foreign-key join: how files are read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamproof.reference.core.errors import BadInput
from streamproof.specs.traces import UNKNOWN, TraceEvent, parse_trace, read_trace

HEADER: dict[str, Any] = {"trace": "foreign_key_join", "join": "inner", "protocol": "kafka 4.3", "order": "total"}
LEFT: dict[str, Any] = {"event": "left", "key": "l", "value": {"fk": "r"}, "foreign_key": "r"}
SENT: dict[str, Any] = {
    "event": "subscription sent",
    "foreign_key": "r",
    "key": "l",
    "instruction": "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE",
}
DELIVERED: dict[str, Any] = {"event": "subscription delivered", "foreign_key": "r", "key": "l"}
ANSWERED: dict[str, Any] = {"event": "response sent", "key": "l", "value": None}


def text_of(*lines: Any) -> str:
    return "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)


def test_a_trace_is_written_as_it_is_read() -> None:
    trace = parse_trace(text_of(HEADER, LEFT, SENT, "", DELIVERED, {**ANSWERED, "of": {"fk": "r"}}))
    assert (trace.join, trace.protocol, trace.order, trace.quiet) == ("inner", "kafka 4.3", "total", False)
    assert [event.line for event in trace.events] == [2, 3, 5, 6]
    again = parse_trace(trace.to_text())
    assert [event.to_json() for event in again.events] == [event.to_json() for event in trace.events]


def test_what_was_not_recorded_is_not_the_same_as_none() -> None:
    *_, answered = parse_trace(text_of(HEADER, LEFT, ANSWERED)).events
    assert (answered.of, answered.foreign_key) == (UNKNOWN, UNKNOWN)
    *_, answered = parse_trace(text_of(HEADER, LEFT, {**ANSWERED, "of": None, "foreign_key": None})).events
    assert (answered.of, answered.foreign_key) == (None, None)


def test_topics_alone_have_no_deliveries() -> None:
    trace = parse_trace(text_of(HEADER, LEFT, SENT, DELIVERED, ANSWERED)).by_topics()
    assert [event.kind for event in trace.events] == ["left", "subscription sent", "response sent"]
    assert parse_trace(trace.to_text()).order == "topics"


def test_events_without_a_key_in_common_are_parts() -> None:
    other = {**LEFT, "key": "k", "foreign_key": "s"}
    shared = {**LEFT, "key": "m", "foreign_key": "r"}
    trace = parse_trace(text_of(HEADER, LEFT, other, {"event": "right", "key": "s", "value": 1}, shared))
    assert [[event.line for event in part.events] for part in trace.parts()] == [[2, 5], [3, 4]]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (TraceEvent(1, "left", "l", value={"v": 1}), 'left l = {"v": 1}'),
        (TraceEvent(1, "right", "r"), "right r = ∅"),
        (TraceEvent(1, "output", "l", value=[1, 2]), "output l = [1, 2]"),
        (
            TraceEvent(1, "subscription sent", "l", "r", instruction="X", of=None),
            "subscription sent, l to r: X, hash of ∅",
        ),
        (TraceEvent(1, "subscription delivered", "l"), "subscription delivered, l to no key"),
        (TraceEvent(1, "response sent", "l", UNKNOWN, value=1), "response sent, an unknown key to l: 1"),
    ],
)
def test_an_event_is_told_in_words(event: TraceEvent, text: str) -> None:
    assert str(event) == text


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "trace: empty: the first line is the header"),
        ([LEFT], "trace: line 1: not a header, which begins with"),
        (["{"], "trace: line 1: not JSON"),
        (["[]"], r"trace: line 1: \[\] isn't a JSON object"),
        ([{**HEADER, "joins": 1}], "trace: line 1: unknown field 'joins': use join, protocol"),
        ([{**HEADER, "join": "outer"}], "'join' is \"outer\", but must be one of inner, left"),
        ([{**HEADER, "quiet": 1}], "'quiet' is 1, but must be one of true, false"),
        ([{**HEADER, "protocol": "kafka 5"}], "'protocol' is \"kafka 5\", but must be one of kip, answer, kafka 4.3"),
        ([{"trace": "foreign_key_join", "join": "left"}], "line 1: 'protocol' is missing"),
        ([HEADER, SENT], "trace: line 2: no earlier event caused this: with the order total"),
        ([HEADER, {**LEFT, "event": "joined"}], 'line 2: the event is "joined", but must be one of left, right'),
        ([HEADER, {**LEFT, "event": ["left"]}], r"line 2: the event is \[\"left\"\], but must be one of left"),
        ([HEADER, LEFT, {**SENT, "instruction": "ASK"}], 'line 3: the instruction is "ASK", but must be one of D'),
        ([HEADER, {**LEFT, "key": 3}], "line 2: 'key' is 3, but must be a string"),
        ([HEADER, {**LEFT, "of": 3}], "line 2: the event 'left' has no 'of': its fields are key, value, foreign_key"),
        ([HEADER, {"event": "left", "key": "l"}], "line 2: 'value' of the event 'left' is missing"),
        ([HEADER, LEFT, {"event": "output", "key": "l", "value": 1}], "line 3: 'value' is 1, but must be a pair"),
        ([{**HEADER, "order": "topics"}, DELIVERED], "line 2: a delivery isn't part of a topic: leave it out"),
    ],
)
def test_what_is_no_trace_is_refused_by_its_line(lines: list[Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_trace(text_of(*lines))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none.jsonl: can't be read \(No such file"):
        read_trace(tmp_path / "none.jsonl")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff")
    with pytest.raises(BadInput, match=r"binary.jsonl: not UTF-8"):
        read_trace(tmp_path / "binary.jsonl")

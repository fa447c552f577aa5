"""A job's history as text, there and back."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from streamproof.properties.counterexamples.of_jobs import JobStore, saved_histories
from streamproof.properties.generators.columns.forms.rows import microseconds
from streamproof.properties.generators.columns.histories.drawing import draw_histories
from streamproof.properties.generators.columns.histories.standing_alone import without_clock
from streamproof.properties.generators.columns.histories.text import columns_text, parse, to_text
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve, resolve_all
from streamproof.properties.generators.columns.values import key_kinds, kinds
from streamproof.properties.system.visible import visible
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.reference.core.errors import BadInput

EVERY_TYPE = (
    "k string, at timestamp, a tinyint, b smallint, c int, d bigint, e float, f double, g decimal(10,2), h string, "
    "i binary, j boolean, l date, m timestamp, n timestamp_ntz, o void, p array<decimal(5,1)>, "
    "q struct<a: date, `b c`: timestamp>, r map<int, array<binary>>, s map<string, timestamp_ntz>"
)
AT = datetime(2024, 1, 15, 12, tzinfo=UTC)
EVERY = resolve(Input(EVERY_TYPE, time="at", key="k")).source
STRANGE: dict[str, tuple[Any, ...]] = {
    "string": (
        r"\b\N{BULLET}\u0041",
        "\x1b[31m",
        "\u202e",
        "\u2028\r\x85\x0b",
        "'''",
        "'''''",
        "\\",
        '"""',
        "\U000e0041",
    ),
    "double": (float("inf"), 0.1 + 0.2, -0.0, float("nan")),
    "binary": (bytes(range(256)),),
}
CLICKS = resolve(Input("user string, at timestamp, amount decimal(5,2) not null", key="user"))


def row(**values: Any) -> Arrival:
    return Arrival("events", {"user": "a", "at": AT, "amount": Decimal("1.00"), **values})


def test_a_history_of_every_type_comes_back_exactly() -> None:
    inputs = resolve_all([Input(EVERY_TYPE, time="at", key="k"), Input("t timestamp_ntz, x double", name="more")])
    sources = [given.source for given in inputs]
    for history in draw_histories(inputs, [60_000_000], 60, 0):
        for kept in (history, without_clock(history)):
            text = to_text(kept, sources)
            back = parse(text, sources)
            assert (back, back.name, repr(back)) == (kept, kept.name, repr(kept))
            assert to_text(back, sources) == text


@pytest.mark.parametrize("column", EVERY.schema.names)
def test_every_value_that_is_drawn_comes_back_from_the_lines_to_paste(column: str) -> None:
    kind = EVERY.schema.field(column).type
    plainest = dict.fromkeys(EVERY.schema.names) | {"at": AT, "k": "a"}
    for values in [*kinds(kind, AT), *key_kinds(kind, AT), STRANGE.get(str(kind), ())]:
        rows = [Arrival("events", {**plainest, column: value}) for value in values]
        history = JobHistory((tuple(rows), ()), name="it's '''\\")
        printed = JobStore(None, [EVERY]).failure(history, RunOptions(), "it fails").partition("    examples=")[2]
        assert visible(printed, lines=True) == printed
        (back,) = saved_histories(ast.literal_eval(printed), None, [EVERY])
        assert (back.name, repr(back)) == (history.name, repr(history))


def test_an_example_of_one_line_is_a_text_and_no_file() -> None:
    (history,) = saved_histories([to_text(JobHistory(((),)), [CLICKS.source]).strip()], None, [CLICKS.source])
    assert history.arrivals == []
    with pytest.raises(BadInput, match="example 0, line 1: the header is missing"):
        saved_histories([' {"input": "events"}'], None, [CLICKS.source])
    with pytest.raises(BadInput, match=r"nowhere\.jsonl: can't be read"):
        saved_histories(["nowhere.jsonl"], None, [CLICKS.source])


def test_the_text_reads_like_a_history_file() -> None:
    history = JobHistory(
        ((row(),), (row(at=AT + timedelta(milliseconds=1)),)), (microseconds(AT), microseconds(AT) + 1000), "h7"
    )
    lines = to_text(history, [CLICKS.source]).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"job": "h7", "inputs": {"events": "user string, at timestamp, amount decimal(5,2) NOT NULL"}},
        {"input": "events", "row": {"user": "a", "at": "2024-01-15T12:00:00Z", "amount": "1.00"}},
        {"heartbeat": "2024-01-15T12:00:00Z"},
        {"cut": True},
        {"input": "events", "row": {"user": "a", "at": "2024-01-15T12:00:00.001000Z", "amount": "1.00"}},
        {"heartbeat": "2024-01-15T12:00:00.001000Z"},
    ]


def test_a_time_may_be_written_in_any_zone() -> None:
    text = to_text(JobHistory(((row(),),)), [CLICKS.source]).replace("12:00:00Z", "13:00:00+01:00")
    assert parse(text, [CLICKS.source]).arrivals == [row()]


def test_the_columns_of_an_input_are_its_schema_again() -> None:
    source = resolve(Input(EVERY_TYPE + ", `the ``last``` int not null", time="at", key="k")).source
    text = columns_text(source)
    assert text.endswith("`the ``last``` int NOT NULL")
    assert text.startswith("k string, at timestamp, a tinyint")


HEADER = '{"job": "h", "inputs": {"events": "…"}}\n'
GOOD = '{"input": "events", "row": {"user": "a", "at": "2024-01-15T12:00:00Z", "amount": "1.00"}}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "history is empty"),
        ("\n", "history is empty"),
        ("{", "history, line 1: this isn't JSON"),
        ('{"job": ' + "[" * 100_000, "history, line 1: nested too deeply to be read"),
        ('{"job": ' + "9" * 5000 + "}", "history, line 1: this isn't JSON"),
        ("[]", "history, line 1: this isn't a JSON object"),
        (GOOD, "line 1: the header is missing"),
        ('{"job": "h", "inputs": {"clicks": ""}}', "line 1: the file has the inputs clicks, but the job has events"),
        (HEADER + "\n" + GOOD + '{"cat": 1}', "line 4: use {"),
        (HEADER + '{"cut": true, "more": 1}', "line 2: use {"),
        (HEADER + GOOD.replace("events", "event"), "line 2: there is no input 'event': the job has events"),
        (HEADER + GOOD.replace("user", "users"), "line 2: input events has no column 'users': it has user, at, amount"),
        (HEADER + GOOD.replace('"user": "a", ', ""), "line 2: the row lacks the column 'user' of input events"),
        (
            HEADER + GOOD.replace('"1.00"', "1.0"),
            "line 2: 1.0 in the column 'amount' isn't of type decimal128(5, 2): write it as",
        ),
        (HEADER + GOOD.replace('"1.00"', '"1.0"'), "line 2: '1.0' in the column 'amount' becomes Decimal('1.00') as"),
        (HEADER + GOOD.replace('"1.00"', '"1.005"'), "line 2: '1.005' in the column 'amount' isn't of type decimal128"),
        (HEADER + GOOD.replace('"1.00"', '"NaN"'), "line 2: 'NaN' in the column 'amount' isn't of type decimal128"),
        (HEADER + GOOD.replace('"1.00"', "null"), "line 2: the column 'amount' is null, but isn't nullable"),
        (HEADER + GOOD.replace('"a"', "7"), "line 2: 7 in the column 'user' isn't of type string"),
        (HEADER + GOOD.replace("00Z", "00"), "in the column 'at' isn't of type timestamp[us, tz=UTC]: write it as"),
        (HEADER + GOOD.replace('"2024-01-15T12:00:00Z"', "null"), "line 2: the event time 'at' is null"),
        (HEADER + '{"heartbeat": 5}', "line 2: use {"),
        (HEADER + '{"heartbeat": "noon"}', "line 2: the heartbeat 'noon' has no valid time"),
        (HEADER + '{"heartbeat": "2024-01-15T12:00:00"}', "line 2: the heartbeat '2024-01-15T12:00:00' has no zone"),
        (HEADER + '{"heartbeat": "2024-01-15T12:00:00Z"}\n' * 2, "line 3: a second heartbeat in one batch"),
        (HEADER + '{"heartbeat": "2024-01-15T12:00:00Z"}\n{"cut": true}\n', "history: batch 1 has no heartbeat"),
        (
            HEADER + '{"heartbeat": "2024-01-15T12:00:00Z"}\n{"cut": true}\n{"heartbeat": "2024-01-15T11:00:00Z"}',
            "history: a heartbeat is earlier than the previous batch",
        ),
        (
            HEADER + GOOD + '{"heartbeat": "2024-01-15T11:00:00Z"}',
            "history: batch 0 has a row at 2024-01-15 12:00:00+00:00",
        ),
    ],
)
def test_a_line_that_is_none_of_a_history_is_named(text: str, said: str) -> None:
    with pytest.raises(BadInput) as raised:
        parse(text, [CLICKS.source])
    assert said in raised.value.message

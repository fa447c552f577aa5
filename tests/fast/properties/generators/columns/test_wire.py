"""The wire form of a source: event times that are no timestamps, Kafka's records and lines of text."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streamproof import BadInput, MissingTool, avro
from streamproof.properties.counterexamples.tables import arrivals_table
from streamproof.properties.generators.columns.debezium import are_in_order, envelope
from streamproof.properties.generators.columns.forms.payloads import (
    EMPTY,
    FAULTS,
    NO_TIME,
    NOISE,
    NULL,
    TRUNCATED,
    WRONG_TIME,
    payload,
)
from streamproof.properties.generators.columns.forms.rows import from_microseconds, microseconds
from streamproof.properties.generators.columns.forms.times import time_form
from streamproof.properties.generators.columns.histories.drawing import draw_histories
from streamproof.properties.generators.columns.histories.goals import covered, goals
from streamproof.properties.generators.columns.histories.shrinking import shrink
from streamproof.properties.generators.columns.histories.standing_alone import standing_alone, without_clock
from streamproof.properties.generators.columns.histories.text import parse, to_text
from streamproof.properties.generators.columns.inputs import Input, ResolvedInput
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory, Unreadable
from streamproof.properties.generators.columns.packing import pack, tables_alone, unpack
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.laws.expected.comparison import in_their_form
from streamproof.properties.witnesses.job.rows import rows_of

MINUTE_US, DAY_US = 60_000_000, 86_400_000_000
AT = datetime(2024, 10, 27, 1, 30, 0, 123_456, UTC)
FORMS: list[tuple[str, str | None, Any]] = [
    ("ts bigint", "s", 1_729_992_600),
    ("ts int", "s", 1_729_992_600),
    ("ts bigint", "ms", 1_729_992_600_123),
    ("ts bigint", "us", 1_729_992_600_123_456),
    ("ts double", "s", 1_729_992_600.123456),
    ("ts double", "ms", 1_729_992_600_123.0),
    ("ts decimal(20,3)", "s", Decimal("1729992600.123")),
    ("ts decimal(20,6)", "s", Decimal("1729992600.123456")),
    ("ts string", None, "2024-10-27T01:30:00.123456Z"),
    ("ts string", "ms", "1729992600123"),
    ("ts string", "%d/%b/%Y:%H:%M:%S %z", "27/Oct/2024:01:30:00 +0000"),
    ("ts string", "%Y%m%d%H%M", "202410270130"),
    ("ts date", None, date(2024, 10, 27)),
]


def clicks(column: str = "at timestamp", /, **more: Any) -> ResolvedInput:
    more.setdefault("time", column.split()[0])
    return resolve(Input(f"user string, {column}, amount bigint", key="user", name="clicks", **more))


def of_kafka(**more: Any) -> ResolvedInput:
    return clicks(**{"format": "kafka", **more})


def tables(resolved: ResolvedInput, *rows: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    history = JobHistory((tuple(Arrival("clicks", row) for row in rows),), **more)
    (table,) = tables_alone(history, [resolved.source])
    found: list[dict[str, Any]] = table["clicks"].to_pylist()
    return found


@pytest.mark.parametrize(("column", "time_format", "value"), FORMS)
def test_a_job_is_given_the_event_time_as_its_source_has_it(column: str, time_format: str | None, value: Any) -> None:
    source = clicks(column, time_format=time_format).source
    at = source.time_of(microseconds(AT))
    (row,) = tables(clicks(column, time_format=time_format), {"user": "a", "ts": at, "amount": 1})
    assert row == {"user": "a", "ts": value, "amount": 1}
    assert source.wire_time is None
    # Of an expected time and of what a job emits unchanged the values are the same.
    expected = in_their_form([Expected("end", [[{"ts": at, "start": AT}]])], [[[{"ts": value, "start": AT}]]], [source])
    assert expected[0].rows == [[{"ts": value, "start": AT}]]
    assert source.encoding is not None
    assert source.encoding.form is not None
    assert source.encoding.form.time(value) == at
    assert source.encoding.form.time(None) is None
    as_time = in_their_form([Expected("end", [[{"ts": at}]])], [[[{"ts": AT}]]], [source])
    assert as_time[0].rows == [[{"ts": at}]]


@given(st.sampled_from(FORMS), st.integers(-2_000_000_000 * 1_000_000, 2_000_000_000 * 1_000_000))
@example(FORMS[4], microseconds(datetime(2005, 3, 7, 20, 56, 3, 142_943, UTC)))
@example(FORMS[4], -microseconds(datetime(2005, 3, 7, 20, 56, 3, 142_943, UTC)))
def test_a_time_keeps_its_order_and_its_distance_in_any_form(form: tuple[str, str | None, Any], time_us: int) -> None:
    source = clicks(form[0], time_format=form[1]).source
    assert source.encoding is not None
    assert source.encoding.form is not None
    whole = source.time_of(time_us)
    assert 0 <= time_us - microseconds(whole) < source.grain_us
    of = source.encoding.form.of
    assert of(source.time_of(microseconds(whole) + source.grain_us)) != of(whole) == of(source.time_of(time_us))
    if form[0].startswith(("ts double", "ts decimal")) and form[1] == "s":
        assert int(of(whole) * 1_000_000) == microseconds(whole)  # as Spark casts it to a timestamp


@pytest.mark.parametrize(
    ("time", "more", "said"),
    [
        ("ts bigint", {}, "the event time 'ts' is int64, and its unit isn't known: give time_format="),
        ("ts bigint", {"time_format": "min"}, "time_format is 'min': give time_format"),
        ("ts int", {"time_format": "ms"}, "is too small for ms since 1970: use a bigint"),
        ("ts float", {"time_format": "s"}, "is float, which is no type of an event time"),
        ("ts string", {"time_format": "%H:%M"}, "a pattern of strftime that says the whole time in UTC"),
        ("ts timestamp", {"time_format": "ms"}, "leave time_format out"),
        ("ts date", {"time_format": "s"}, "leave time_format out"),
        ("ts timestamp not null", {"null_times": 0.1}, "isn't nullable"),
        ("ts timestamp", {"null_times": 2}, "null_times is 2: give a share from 0 up to 1"),
        ("ts timestamp", {"format": "mqtt"}, "format is 'mqtt': give 'kafka', 'kinesis', 'eventhubs', "),
        ("ts timestamp", {"malformed": 0.1}, 'give the format too, format="kafka"'),
        ("ts timestamp", {"value": "csv"}, 'give the format too, format="kafka"'),
        (
            "ts timestamp",
            {"format": "kafka", "value": "avro"},
            "Avro needs the record's schema: from streamproof import avro, and give value=avro(",
        ),
        ("ts timestamp", {"format": "kafka", "value": "text"}, "can't contain the event time 'ts'"),
        ("ts timestamp, more array<int>", {"format": "kafka", "value": "csv"}, "CSV can't contain the column 'more'"),
        ("n int", {"format": "kafka", "value": "text", "malformed": 0.1, "time": None}, "any text is valid"),
        ("ts timestamp", {"format": "text", "null_values": 0.1}, "lines of text have none"),
        ("n int", {"format": "kafka", "time": "timestamp", "time_format": "ms"}, "is the records' own timestamp"),
        ("ts timestamp", {"format": "kinesis", "null_values": 0.1}, "records of kinesis have none"),
        ("ts timestamp", {"format": "eventhubs", "headers": True}, "records of eventhubs have none"),
        ("n int", {"format": "pubsub", "time": None}, "no column is a timestamp"),
    ],
)
def test_a_source_that_cannot_be_is_refused_with_the_remedy(time: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as raised:
        clicks(time, **more)
    assert said in raised.value.message
    assert "input clicks: " in raised.value.message


GRAINS = [("ts bigint", "s", 1_000_000), ("ts bigint", "ms", 1_000), ("ts date", None, DAY_US)]


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(("column", "time_format", "grain_us"), GRAINS)
def test_times_are_drawn_whole_and_meet_every_goal_that_they_can(
    column: str, time_format: str | None, grain_us: int, late: bool
) -> None:
    resolved, distances, delay_us = clicks(column, time_format=time_format), [30 * MINUTE_US, DAY_US], 10 * MINUTE_US
    for seed in range(2):
        histories = draw_histories([resolved], distances, 300, seed, late=late, delay_us=delay_us)
        assert not [time for one in histories for time in one.clock if time % grain_us]
        asked = goals([resolved], distances, late)
        assert ("times exactly 30 minutes apart" in asked) == (grain_us < DAY_US)
        assert {*asked} <= covered(histories, [resolved.source], distances, delay_us), seed
        for history in histories:
            for number, batch in enumerate(history.batches):
                times = [resolved.source.time_us(row) for _, row in batch]
                assert all(time % grain_us == 0 and time <= history.clock[number] for time in times)
                horizon = history.clock[number - 1] - delay_us if number else 0
                assert late or all(time > horizon for time in times)


def test_records_of_kafka_have_its_columns_and_offsets_without_gaps() -> None:
    resolved = of_kafka(headers=True)
    rows = [{"user": user, "at": AT, "amount": 1} for user in "abcabc"]
    batches = tuple(tuple(Arrival("clicks", row) for row in some) for some in (rows[:4], rows[4:]))
    clock = tuple(microseconds(AT) + 5_000_000 * number for number in (0, 1))
    both = tables_alone(JobHistory(batches, clock), [resolved.source])
    assert [str(column.type) for column in both[0]["clicks"].schema][:4] == ["binary", "binary", "string", "int32"]
    found = [row for table in both for row in table["clicks"].to_pylist()]
    assert [row["key"] for row in found] == [b"a", b"b", b"c", b"a", b"b", b"c"]
    assert {row["topic"] for row in found} == {"clicks"}
    assert json.loads(found[0]["value"]) == {"user": "a", "at": "2024-10-27T01:30:00.123456Z", "amount": 1}
    assert len({row["partition"] for row in found}) > 1
    for partition in {row["partition"] for row in found}:
        offsets = [row["offset"] for row in found if row["partition"] == partition]
        assert offsets == [*range(len(offsets))]
    assert {row["key"]: row["partition"] for row in found} == {row["key"]: row["partition"] for row in found[:3]}
    appended = [microseconds(row["timestamp"]) for row in found]
    assert appended == [time - time % 1000 for time in [clock[0]] * 4 + [clock[1]] * 2]
    assert any(row["headers"] for row in found)
    assert not all(row["headers"] for row in found)


ENVELOPES = {
    "kinesis": {
        "partitionKey": "a",
        "data": b'{"user":"a"}',
        "stream": "clicks",
        "shardId": "shardId-000000000000",
        "approximateArrivalTimestamp": AT.replace(microsecond=123_000),
    },
    "eventhubs": {
        "body": b'{"user":"a"}',
        "partition": "0",
        "offset": "0",
        "sequenceNumber": 0,
        "enqueuedTime": AT.replace(microsecond=123_000),
        "partitionKey": "a",
        "properties": [],
    },
    "pulsar": {"value": b'{"user":"a"}', "__key": b"a", "__publishTime": AT.replace(microsecond=123_000)},
}


@pytest.mark.parametrize("form", ENVELOPES)
def test_records_of_other_brokers_have_their_columns_and_may_have_the_event_time(form: Any) -> None:
    resolved = resolve(Input("user string", key="user", name="clicks", format=form))
    time = resolved.source.time
    assert time == resolved.source.wire_time
    (row,) = tables(resolved, {"user": "a", time: AT.replace(microsecond=123_000)})
    assert {name: row[name] for name in ENVELOPES[form]} == ENVELOPES[form]
    assert resolved.source.records_key in row


def test_records_of_pub_sub_have_their_time_as_a_number() -> None:
    resolved = clicks(format="pubsub")
    (row,) = tables(resolved, {"user": "a", "at": AT, "amount": 1})
    assert row["payload"].startswith(b'{"user":"a"')
    assert row["publishTimestampInMillis"] == microseconds(AT) // 1000


def test_without_a_timestamp_in_the_payload_the_event_time_is_that_of_kafka_s_record() -> None:
    resolved = resolve(Input("user string, text string", key="user", name="clicks", format="kafka", value="text"))
    assert (resolved.source.time, resolved.source.wire_time) == ("timestamp", "timestamp")
    at = resolved.source.time_of(microseconds(AT))
    (row,) = tables(resolved, {"user": "a", "text": "x", "timestamp": at})
    assert (row["value"], row["timestamp"]) == (b"x", AT.replace(microsecond=123_000))
    assert of_kafka(time="timestamp").source.schema.names == ["user", "at", "amount", "timestamp"]


def test_a_job_is_not_given_a_time_that_its_source_does_not_have() -> None:
    resolved = resolve(Input("user string, amount bigint", key="user", name="clicks", time=False))
    assert (resolved.source.time, resolved.source.wire_time) == ("timestamp", None)
    assert tables(resolved, {"user": "a", "amount": 1, "timestamp": AT}) == [{"user": "a", "amount": 1}]
    lines = resolve(Input("line string", name="clicks", format="text", value="text"))
    assert tables(lines, {"line": "x y", "timestamp": AT}) == [{"value": "x y"}]
    (history,) = draw_histories([resolved], [], 1, 0)
    assert parse(to_text(history, [resolved.source]), [resolved.source]).batches == history.batches
    with pytest.raises(BadInput, match="time is False, but there is a column 'timestamp': rename it"):
        resolve(Input("user string, timestamp bigint", time=False))


def test_a_payload_has_values_as_spark_reads_them() -> None:
    columns = (
        "k string, at timestamp, d date, b binary, x decimal(10,2), f double, t boolean, l array<timestamp_ntz>, "
        "s struct<`a b`: int, z: string>, m map<int, string>, n int"
    )
    row = {
        "k": 'a"\u2028é',
        "at": AT,
        "d": date(2024, 1, 2),
        "b": b"\x00\xff",
        "x": Decimal("1.50"),
        "f": float("inf"),
        "t": True,
        "l": [datetime(2024, 1, 2)],
        "s": {"a b": 1, "z": None},
        "m": {1: "x"},
        "n": None,
    }
    resolved = resolve(Input(columns, key="k", format="text", name="clicks"))
    (line,) = tables(resolved, row)
    assert json.loads(line["value"]) == {
        **{"k": 'a"\u2028é', "at": "2024-10-27T01:30:00.123456Z", "d": "2024-01-02", "b": "AP8=", "x": 1.5},
        **{"f": float("inf"), "t": True, "l": ["2024-01-02T00:00:00.000000"], "s": {"a b": 1, "z": None}},
        **{"m": {"1": "x"}, "n": None},
    }
    assert '"x":1.50' in line["value"]


def test_a_row_is_the_only_element_of_a_payload_that_is_an_array() -> None:
    row, schema = {"user": "a", "n": 1}, pa.schema([("user", pa.string()), ("n", pa.int32())])
    assert payload("json_array", row, schema, "clicks") == b'[{"user":"a","n":1}]'
    assert resolve(Input("user string, at timestamp", format="kafka", value="json_array"))


def test_a_function_of_the_user_s_makes_the_payload_of_a_row_as_its_source_has_it() -> None:
    resolved = clicks("ts bigint", time_format="s", format="kafka", value=lambda row: f"{row['ts']}".encode())
    at = resolved.source.time_of(microseconds(AT))
    assert tables(resolved, {"user": "a", "ts": at, "amount": 1})[0]["value"] == b"1729992600"
    for wrong, said in ((lambda row: 7, "returned int for"), (lambda row: row["none"], "raised KeyError: 'none'")):
        with pytest.raises(BadInput, match=said):
            tables(of_kafka(value=wrong), {"user": "a", "at": AT, "amount": 1})


def test_a_column_that_a_stream_gets_in_its_middle_is_drawn_where_the_payloads_leave_nulls_out() -> None:
    def without_nulls(row: dict[str, Any]) -> bytes:
        return json.dumps({name: value for name, value in row.items() if value is not None}, default=str).encode()

    columns = "user string, seq int NOT NULL, city string"
    resolved = resolve(Input(columns, key="user", format="kafka", value=without_nulls, values={"city": [None, "x"]}))
    grown = 0
    for history in draw_histories([resolved], [MINUTE_US], 20, 0):
        batches = tables_alone(history, [resolved.source])
        payloads = [value for batch in batches for table in batch.values() for value in table["value"].to_pylist()]
        has_city = ["city" in json.loads(value) for value in payloads]
        grown += True in has_city and not has_city[0]
    assert grown >= 5


def test_histories_that_share_a_query_have_their_keys_in_the_payload_too() -> None:
    resolved = of_kafka(malformed=0.1)
    row = {"user": "a", "at": AT, "amount": 1}
    history = JobHistory(
        ((Arrival("clicks", row),),), (microseconds(AT),), unreadable=(Unreadable(0, "clicks", row, NULL),)
    )
    (table,) = pack([history, history], [resolved])
    records = table["clicks"].to_pylist()
    assert sorted(record["key"] for record in records) == [b"00001|a"] * 2 + [b"00002|a"] * 2
    payloads = [json.loads(record["value"]) for record in records if record["value"] is not None]
    assert sorted(payload["user"] for payload in payloads) == ["00001|a", "00002|a"]


def test_the_key_of_kafka_s_record_says_whose_a_row_is_and_comes_back_as_it_was() -> None:
    resolved = of_kafka()
    row = {"user": "a", "at": AT, "amount": 1}
    histories = [
        JobHistory(((Arrival("clicks", row),),)),
        JobHistory(((),), unreadable=(Unreadable(0, "clicks", row, NULL),)),
    ]
    emitted = [{"key": b"00002|a", "was": "00002|a", "n": 2}, {"key": b"00001|a", "was": None, "n": 1}]
    unpacked = unpack(emitted, histories, [resolved.source], ["key"])
    assert unpacked == [[{"key": b"a", "was": None, "n": 1}], [{"key": b"a", "was": "a", "n": 2}]]


def test_times_beyond_what_python_has_are_refused_with_the_column() -> None:
    column = pa.chunked_array([pa.array([1_729_992_600_000 * 1_000_000], pa.timestamp("us", "UTC"))])
    with pytest.raises(BadInput, match="the column 'start' has a time or date beyond the years 1 to 9999"):
        rows_of(pa.table({"start": column}))


def test_shares_bring_rows_without_a_time_and_records_that_are_no_rows_of_every_kind() -> None:
    resolved = of_kafka(malformed=0.1, null_values=0.1, null_times=0.1)
    plain = draw_histories([of_kafka()], [MINUTE_US], 300, 0)
    drawn = draw_histories([resolved], [MINUTE_US], 300, 0)
    assert [len(one.arrivals) for one in drawn] == [len(one.arrivals) for one in plain]
    unreadable = [one for history in drawn for one in history.unreadable]
    assert {one.fault for one in unreadable} == {*FAULTS, NULL}
    rows = [row for history in drawn for _, row in history.arrivals]
    assert 0.05 < sum(row["at"] is None for row in rows) / len(rows) < 0.15
    malformed = sum(one.fault != NULL for one in unreadable)
    assert 0.05 < malformed / (len(rows) + len(unreadable)) < 0.15
    asked = {*goals([resolved], [MINUTE_US])} - {*goals([of_kafka()], [MINUTE_US])}
    assert asked == {
        "null in at of input clicks",
        "a malformed record on input clicks",
        "a record of a null value on input clicks",
    }
    assert asked <= covered(drawn, [resolved.source], [MINUTE_US])
    assert not asked & covered(plain, [resolved.source], [MINUTE_US])


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_a_history_with_flaws_is_the_same_once_it_is_read_back(seed: int) -> None:
    resolved = of_kafka(malformed=0.2, null_values=0.2, null_times=0.2)
    for history in draw_histories([resolved], [MINUTE_US], 3, seed):
        for one in (history, without_clock(history)):
            assert parse(to_text(one, [resolved.source]), [resolved.source]).played == one.played
        assert all(alone.unreadable for alone in standing_alone(history, [resolved]) if history.unreadable)


@pytest.mark.parametrize(
    ("value", "faults"),
    [("csv", {EMPTY, NOISE, WRONG_TIME}), ("json_array", {EMPTY, NOISE}), (lambda row: b"made", {EMPTY, NOISE})],
)
def test_what_may_still_be_a_row_is_no_fault(value: Any, faults: set[str]) -> None:
    drawn = draw_histories([of_kafka(value=value, malformed=0.2)], [MINUTE_US], 100, 0)
    assert {one.fault for history in drawn for one in history.unreadable} == faults


def flawed() -> tuple[ResolvedInput, JobHistory]:
    resolved = of_kafka(malformed=0.2, null_values=0.2, null_times=0.2)
    drawn = draw_histories([resolved], [MINUTE_US], 300, 0)
    return resolved, max(drawn, key=lambda one: len(one.unreadable))


def test_unreadable_records_come_in_their_batches_alone_and_beside_others() -> None:
    resolved, history = flawed()
    assert {one.batch for one in history.unreadable} - {0}
    assert history.played != replace(history, unreadable=()).played
    count = [len(batch) + len(history.unreadable_in(number)) for number, batch in enumerate(history.batches)]
    for tables in (tables_alone(history, [resolved.source]), pack([history], [resolved])):
        assert [table.num_rows for batch in tables for table in batch.values()] == count


def test_shrinking_leaves_the_record_that_is_needed_and_no_rows() -> None:
    resolved, history = flawed()
    assert len({one.fault for one in history.unreadable}) > 1
    fault = history.unreadable[-1].fault

    def fails(candidates: Any) -> list[bool]:
        return [any(one.fault == fault for one in candidate.unreadable) for candidate in candidates]

    smallest = shrink(history, [resolved], fails)
    assert [(one.batch, one.fault, one.row["user"]) for one in smallest.unreadable] == [(0, fault, "a")]
    assert not smallest.arrivals
    assert not shrink(history, [resolved], lambda some: [len(one.arrivals) > 1 for one in some]).unreadable


def test_an_unreadable_record_need_be_no_copy_of_its_event() -> None:
    resolved = of_kafka(identity="user")
    row, other = ({"user": user, "at": AT, "amount": 1} for user in "ab")
    history = JobHistory(((Arrival("clicks", row), Arrival("clicks", other)),))
    history = replace(history, unreadable=(Unreadable(0, "clicks", {**row, "amount": 2}, "empty"),))

    def fails(candidates: Any) -> list[bool]:
        amounts = [({one.row["amount"] for one in some.arrivals}, some.unreadable) for some in candidates]
        return [any(row and row != {one.row["amount"]} for one in unreadable) for row, unreadable in amounts]

    smallest = shrink(history, [resolved], fails)
    assert [one.row["user"] for one in (*smallest.arrivals, *smallest.unreadable)] == ["a", "a"]


def test_shrinking_keeps_a_row_without_a_time_only_where_it_matters() -> None:
    resolved, _ = flawed()
    history = next(
        one
        for one in draw_histories([resolved], [MINUTE_US], 300, 0)
        if len(one.arrivals) > 2 and any(row["at"] is None for _, row in one.arrivals)
    )
    smallest = shrink(history, [resolved], lambda some: [bool(one.arrivals) for one in some])
    assert [row["at"] is None for _, row in smallest.arrivals] == [False]
    timeless = shrink(
        history, [resolved], lambda some: [any(row["at"] is None for _, row in one.arrivals) for one in some]
    )
    assert [row["at"] for _, row in timeless.arrivals] == [None]


def test_what_arrives_shows_a_record_that_is_no_row() -> None:
    source = of_kafka().source
    row = {"user": "a", "at": AT, "amount": 1}
    faults = tuple(Unreadable(0, "clicks", row, fault) for fault in (*FAULTS, NULL))
    shown = "\n".join(arrivals_table(JobHistory(((Arrival("clicks", row),),), unreadable=faults), [source], []))
    assert 'truncated: {"user":"a"' in shown
    assert "an event time of another type: " in shown
    assert shown.count("\n") == 1 + len(faults)
    assert "payload" not in arrivals_table(JobHistory(((Arrival("clicks", row),),)), [source], [])[0]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ('"at": null', "let rows have none: Input(…, null_times=0.05)"),
        ('"at": "2024-10-27T01:30:00.500000Z"', "which its type can't contain: give a whole number of 1 second"),
    ],
)
def test_a_time_that_the_source_cannot_have_is_refused_in_a_file(changed: str, said: str) -> None:
    source = clicks("at bigint", time_format="s").source
    history = JobHistory(((Arrival("clicks", {"user": "a", "at": from_microseconds(0), "amount": 1}),),))
    text = to_text(history, [source]).replace('"at": "1970-01-01T00:00:00Z"', changed)
    with pytest.raises(BadInput) as raised:
        parse(text, [source])
    assert said in raised.value.message


def test_a_payload_in_a_file_is_refused_where_there_is_none_or_none_of_that_kind() -> None:
    row = {"user": "a", "at": AT, "amount": 1}
    text = to_text(JobHistory(((),), unreadable=(Unreadable(0, "clicks", row, NULL),)), [of_kafka().source])
    with pytest.raises(BadInput, match="has columns, but no payload"):
        parse(text, [clicks().source])
    with pytest.raises(BadInput, match="unknown payload 'mended': use truncated"):
        parse(text.replace('"null"', '"mended"'), [of_kafka().source])


def test_a_sample_gives_values_and_no_times_in_any_form() -> None:
    table = pa.table({"user": ["a", "b"], "ts": pa.array([1, 2]), "amount": [7, 8]})
    columns = "user string, ts bigint not null, amount bigint"
    resolved = resolve(Input(columns, sample=table, time="ts", time_format="s", key="user", name="clicks"))
    assert [row["amount"] for row in resolved.sample] == [7, 8]
    histories = draw_histories([resolved], [MINUTE_US], 20, 0)
    assert all(row["ts"].year == 2024 for one in histories for _, row in one.arrivals)


def accounts(**more: Any) -> ResolvedInput:
    more = {"key": "id", "format": "kafka", "value": "debezium", **more}
    return resolve(Input("id int, amount bigint", name="accounts", **more))


def test_debezium_s_envelopes_follow_from_the_changes_before() -> None:
    resolved = accounts()
    at = [from_microseconds(microseconds(AT) // 1000 * 1000 + number * MINUTE_US) for number in range(5)]
    inserted = {"id": 1, "amount": 5, "deleted": False, "ts_ms": at[0]}
    updated = {"id": 1, "amount": 7, "deleted": False, "ts_ms": at[1]}
    deleted = {"id": 1, "amount": None, "deleted": True, "ts_ms": at[2]}
    again = {"id": 1, "amount": 7, "deleted": False, "ts_ms": at[3]}
    unknown = {"id": 2, "amount": 3, "deleted": True, "ts_ms": at[4]}
    rows = [[inserted], [updated, updated, deleted], [again, unknown]]
    history = JobHistory(tuple(tuple(Arrival("accounts", row) for row in batch) for batch in rows))
    batches = tables_alone(history, [resolved.source])
    records = [record for batch in batches for record in batch["accounts"].to_pylist()]
    events = [None if record["value"] is None else json.loads(record["value"]) for record in records]
    five, seven, three = ({"id": number, "amount": amount} for number, amount in ((1, 5), (1, 7), (2, 3)))
    assert [event and (event["op"], event["before"], event["after"]) for event in events] == [
        (events[0]["op"], None, five),
        ("u", five, seven),
        ("u", five, seven),
        ("d", seven, None),
        None,
        ("c", None, seven),
        ("d", three, None),
        None,
    ]
    assert events[0]["op"] in ("c", "r")
    assert [event["ts_ms"] for event in events if event] == [
        microseconds(row["ts_ms"]) // 1000 for batch in rows for row in batch
    ]
    assert all(event["source"]["ts_ms"] == event["ts_ms"] for event in events if event)
    assert events[1] == events[2]
    assert [json.loads(record["key"]) for record in records] == [{"id": 1}] * 6 + [{"id": 2}] * 2
    assert resolved.source.wire_time is None
    assert resolved.source.records_key is None


@pytest.mark.parametrize(
    ("op", "before", "images", "snapshot"),
    [
        ("c", False, ["before", None, "after", 1], "false"),
        ("r", False, ["before", None, "after", 1], "true"),
        ("u", True, ["before", 2, "after", 1], "false"),
        ("d", True, ["before", 2, "after", None], "false"),
    ],
)
def test_an_envelope_says_its_images_and_whether_it_is_of_the_first_snapshot(
    op: str, before: bool, images: list[Any], snapshot: str
) -> None:
    row, columns = {"n": 1, "ts_ms": 7}, [pa.field("n", pa.int64())]
    made = json.loads(envelope(row, columns, "t", op, {"n": 2} if before else None, 3))
    assert [made["before"] and made["before"]["n"], made["after"] and made["after"]["n"]] == images[1::2]
    assert (made["op"], made["source"]["snapshot"], made["source"]["txId"]) == (op, snapshot, 3)


def test_only_a_row_that_never_was_there_is_a_snapshot_s() -> None:
    resolved, at = accounts(), from_microseconds(microseconds(AT) // 1000 * 1000)
    first, again = set(), set()
    for amount in range(20):
        row = {"id": 1, "amount": amount, "deleted": False, "ts_ms": at}
        changes = [row, {**row, "deleted": True}, {**row, "amount": amount + 100}]
        history = JobHistory((tuple(Arrival("accounts", change) for change in changes),))
        (batch,) = tables_alone(history, [resolved.source])
        inserted, _, _, inserted_again = (record["value"] for record in batch["accounts"].to_pylist())
        first.add(json.loads(inserted)["op"])
        again.add(json.loads(inserted_again)["op"])
    assert (first, again) == ({"c", "r"}, {"c"})


def test_the_changes_of_a_row_are_drawn_and_shrunk_in_the_order_of_a_log() -> None:
    resolved = accounts(malformed=0.1)
    source = resolved.source
    histories = draw_histories([resolved], [MINUTE_US], 300, 0)
    assert covered(histories, [source], [MINUTE_US]) >= set(goals([resolved], [MINUTE_US]))
    ops = set()
    for history in histories:
        rows = [row for _, row in history.arrivals]
        assert are_in_order(source, rows)
        for key in {row["id"] for row in rows}:
            times = [row["ts_ms"] for row in rows if row["id"] == key]
            assert times == sorted(times)
    for batch in pack(histories, [resolved]):
        for record in batch["accounts"].to_pylist():
            with contextlib.suppress(ValueError, TypeError):
                ops.add(json.loads(record["value"] or "")["op"])
    assert ops == set("rcud")

    def deleted_after_two(history: JobHistory) -> bool:
        assert are_in_order(source, [row for _, row in history.arrivals])
        changes = [row["deleted"] for _, row in history.arrivals]
        return len(changes) > 2 and changes[-1]

    first = next(history for history in histories if len(history.arrivals) > 5 and deleted_after_two(history))
    smallest = shrink(first, [resolved], lambda some: [*map(deleted_after_two, some)])
    assert len(smallest.arrivals) == 3
    assert parse(to_text(smallest, [source]), [source]).batches == smallest.batches


def test_without_deletes_no_row_is_deleted_and_a_sample_s_rows_are_changes() -> None:
    resolved = accounts(deletes=0)
    drawn = [row for one in draw_histories([resolved], [MINUTE_US], 60, 0) for _, row in one.arrivals]
    assert not any(row["deleted"] for row in drawn)
    sampled = accounts(sample=pa.table({"id": pa.array([1, 2], pa.int32()), "amount": [7, 8]}))
    drawn = [row for one in draw_histories([sampled], [MINUTE_US], 60, 0) for _, row in one.arrivals]
    assert {row["amount"] for row in drawn} == {7, 8}
    assert {row["deleted"] for row in drawn} == {True, False}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"key": ()}, "needs the table's primary key: name its columns, key="),
        ({"format": "text"}, "needs records of Kafka"),
        ({"format": None}, "give the format too"),
        ({"time": "amount"}, "time is given, but the event time of a change event is its 'ts_ms'"),
        ({"time_format": "ms"}, "time_format is given"),
        ({"null_times": 0.1}, "null_times is given"),
        ({"deletes": 1.5}, "deletes is 1.5: give a share"),
    ],
)
def test_a_change_log_that_cannot_be_is_refused_with_the_remedy(more: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as raised:
        accounts(**more)
    assert said in raised.value.message


VISIT = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "amount", "type": ["null", "long"]},
    ],
}


def test_an_avro_payload_is_read_back_as_the_row(tmp_path: Path) -> None:
    fastavro = pytest.importorskip("fastavro")
    file = tmp_path / "visit.avsc"
    file.write_text(json.dumps(VISIT), encoding="utf-8")
    row = {"user": "a", "at": AT, "amount": None}
    for schema in (VISIT, json.dumps(VISIT), file, str(file)):
        (record,) = tables(of_kafka(value=avro(schema)), row)
        assert fastavro.schemaless_reader(io.BytesIO(record["value"]), VISIT) == row
    (record,) = tables(of_kafka(value=avro(VISIT, schema_id=258)), row)
    assert record["value"][:5] == b"\x00\x00\x00\x01\x02"
    assert fastavro.schemaless_reader(io.BytesIO(record["value"][5:]), VISIT) == row


def test_a_time_without_a_zone_is_written_to_avro_as_utc() -> None:
    fastavro = pytest.importorskip("fastavro")
    written = avro(VISIT)({"user": "a", "at": AT.replace(tzinfo=None), "amount": 1})
    assert fastavro.schemaless_reader(io.BytesIO(written), VISIT)["at"] == AT


@pytest.mark.parametrize(
    ("schema", "more", "said"),
    [
        ("nowhere.avsc", {}, "nowhere.avsc: the Avro schema can't be read"),
        ("{", {}, "the Avro schema: not JSON"),
        ({"type": "long"}, {}, "isn't a record"),
        ({"type": "record"}, {}, "the Avro schema can't be used"),
        (VISIT, {"schema_id": -1}, "schema_id is -1: give the schema's number"),
    ],
)
def test_an_avro_schema_that_cannot_be_is_refused(schema: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as raised:
        avro(schema, **more)
    assert said in raised.value.message


def test_a_column_that_the_avro_schema_lacks_is_named_and_so_is_a_value_that_it_does_not_take() -> None:
    with pytest.raises(BadInput, match="the Avro schema has no field 'more', only user, at, amount"):
        resolve(Input("user string, at timestamp, more int", key="user", format="kafka", value=avro(VISIT)))
    wrong = {**VISIT, "fields": [*VISIT["fields"][:2], {"name": "amount", "type": "string"}]}  # type: ignore[index]
    with pytest.raises(BadInput, match="input clicks: its value avro raised"):
        tables(of_kafka(value=avro(wrong)), {"user": "a", "at": AT, "amount": 1})


def test_without_fastavro_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(MissingTool, match=r"streamproof\[avro\]"):
        avro(VISIT)


NESTED = "user string, meta struct<at: timestamp, src: string>"
PLACES = {
    "a struct": (NESTED, "meta.at", "at", {"meta": {"src": "x"}}, {"meta": {"at": AT, "src": "x"}}),
    "a struct that is null": (NESTED, "meta.at", "at", {"meta": None}, {"meta": {"at": AT, "src": None}}),
    "a struct without other members": ("user string, m struct<at: timestamp>", "m.at", "at", {}, {"m": {"at": AT}}),
    "a struct of a struct": (
        "user string, a struct<b: struct<t: timestamp, n: int>, c: int>",
        "a.b.t",
        "t",
        {"a": {"b": {"n": 1}, "c": 2}},
        {"a": {"b": {"t": AT, "n": 1}, "c": 2}},
    ),
    "a struct beside a column of its name": (
        "user string, at int, meta struct<at: timestamp>",
        "meta.at",
        "meta.at",
        {"at": 1},
        {"at": 1, "meta": {"at": AT}},
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_an_event_time_in_a_struct_is_a_column_of_histories_and_the_job_s_in_its_place(place: str) -> None:
    schema, path, name, row, wire = PLACES[place]
    resolved = resolve(Input(schema, path, key="user", name="clicks"))
    source = resolved.source
    assert (source.time, source.wire_time) == (name, None)
    assert source.schema.names == ["user", *row, name]
    (given_row,) = tables(resolved, {"user": "a", **row, name: AT})
    assert given_row == {"user": "a", **wire}
    assert source.encoding is not None
    assert source.encoding.place is not None
    flat = source.encoding.place.flat(given_row)
    assert {"user": "a", **row, name: AT} == flat or row == {"meta": None}
    in_json = resolve(Input(schema, path, key="user", name="clicks", format="kafka", malformed=0.2))
    (record,) = tables(in_json, {"user": "a", **row, name: AT})
    assert record["value"].count(b"2024-10-27T01:30:00.123456Z") == 1
    drawn = draw_histories([in_json], [MINUTE_US], 30, 0)
    assert {one.fault for history in drawn for one in history.unreadable} <= {*FAULTS} - {WRONG_TIME}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("meta.when", "there is no column 'meta.when', named as the event time: 'when' isn't among at, src"),
        ("user.at", "there is no column 'user.at', named as the event time: 'at' isn't among string"),
        ("meta.src", "strftime"),
    ],
)
def test_a_path_to_no_event_time_is_refused(path: str, said: str) -> None:
    more = {"time_format": "%H"} if path == "meta.src" else {}
    with pytest.raises(BadInput, match=said):
        resolve(Input(NESTED, path, key="user", **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("first", ["left", "right"])
def test_a_time_of_several_forms_is_expected_in_the_form_of_its_own_column(first: str) -> None:
    left, right = (
        replace(clicks("ts bigint", time_format=form).source, name=name)
        for name, form in (("left", "ms"), ("right", "s"))
    )
    named = [("seen" if field.name == "ts" else field.name, field.type) for field in right.schema]
    right = replace(right, time="seen", schema=pa.schema(named))
    sources = [left, right] if first == "left" else [right, left]
    rows = [{"ts": AT, "seen": AT, "other": AT}]
    emitted = [[[{"ts": 1, "seen": 1, "other": 1}]]]
    in_form = in_their_form([Expected("end", [rows])], emitted, sources)
    seconds = microseconds(AT) // 1_000_000
    # Of the third column it isn't known which of both it is.
    assert in_form[0].rows == [[{"ts": microseconds(AT) // 1_000, "seen": seconds, "other": AT}]]


def test_a_cut_record_without_a_payload_stays_without() -> None:
    schema = pa.schema([("text", pa.string())])
    cut = [payload("text", {"text": text}, schema, "clicks", TRUNCATED) for text in (None, "abcd")]
    assert cut == [None, b"ab"]


@pytest.mark.parametrize("kind", [pa.date32(), pa.string(), pa.int64(), pa.float64(), pa.decimal128(18, 3)])
def test_no_time_is_none_in_every_form(kind: pa.DataType) -> None:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    form = time_form("at", kind, "s" if number else None)
    assert form is not None
    assert (form.of(None), form.time(None)) == (None, None)


@pytest.mark.parametrize(
    ("fault", "read"),
    [
        ("", {"a": 1, "at": 5, "b": "x"}),
        (NO_TIME, {"a": 1, "b": "x"}),
        (WRONG_TIME, {"a": 1, "at": "never", "b": "x"}),
    ],
)
def test_a_fault_of_the_time_leaves_the_other_columns_as_they_are(fault: str, read: dict[str, Any]) -> None:
    schema = pa.schema([("a", pa.int64()), ("at", pa.int64()), ("b", pa.string())])
    row = {"a": 1, "at": 5, "b": "x"}
    made, whole, cut = (payload("json", row, schema, "clicks", one, "at") for one in (fault, "", TRUNCATED))
    assert made is not None
    assert whole is not None
    assert json.loads(made) == read
    assert cut == whole[: len(whole) // 2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(0), "0 00:00:00.000000"),
        (timedelta(days=1, hours=2, minutes=3, seconds=4, microseconds=5), "1 02:03:04.000005"),
        (-timedelta(minutes=61), "-0 01:01:00.000000"),
    ],
)
def test_an_interval_is_written_as_spark_reads_it(value: timedelta, text: str) -> None:
    schema = pa.schema([("a", pa.duration("us"))])
    assert payload("csv", {"a": value}, schema, "clicks") == f"INTERVAL '{text}' DAY TO SECOND".encode()

"""What is wrong in a history file is refused: each message names the source, the line and the remedy."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from history_lines import HEADER, LATEST, QUIET, RECORD, record, text_of
from hypothesis import given
from hypothesis import strategies as st
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import Delivery, parse_history, read_history
from streamproof.reference.core.play import play


def header(**options: Any) -> str:
    return json.dumps({"operator": "session_windows", "options": {"gap_ms": 10, **options}})


# Refusing what is wrong: each message names the source, the line and the remedy.


BAD_HEADERS = {
    "not JSON": ("operator: session_windows", "not JSON"),
    "no object": ('["session_windows"]', "must be a JSON object, not list"),
    "missing": (RECORD, "the first line must be the header"),
    "unknown field": (HEADER[:-1] + ', "grace": 1}', "the header has no 'grace': it takes clock, operator, options"),
    "unknown operator": ('{"operator": "sessions"}', "unknown operator 'sessions': use one of session_windows"),
    "operator null": ('{"operator": null}', "unknown operator None: use one of session_windows"),
    "operator twice": ('{"operator": "a", "operator": "session_windows"}', "'operator' appears twice .*: keep one"),
    "unknown clock": (HEADER[:-1] + ', "clock": "wall"}', "unknown clock 'wall': use one of stream_time, batch"),
    "options no object": ('{"operator": "session_windows", "options": 10}', "options must be an object, such as"),
    "unknown option": (header(gap=10), "session_windows has no option 'gap': it takes aggregate, emit, gap_ms"),
}
BAD_LINES = {
    "not JSON": ("a@0", "not JSON: .* at column 1"),
    "two objects": (RECORD + RECORD, "not JSON: Extra data"),
    "an array": ("[1]", "must be a JSON object, not list"),
    "nested too deeply": ("[" * 100_000, "nested too deeply"),
    "an empty object": ("{}", "without 'input': it needs input, key, value and timestamp"),
    "NaN": (RECORD.replace('"x"', "NaN"), "NaN isn't a JSON value: use null or leave the record out"),
    "-Infinity deep inside": (RECORD.replace('"x"', '{"a": [-Infinity]}'), "-Infinity isn't a JSON value"),
    "a field twice": (RECORD[:-1] + ', "key": "b"}', "'key' appears twice in one object: keep one of them"),
    "a field twice deep inside": (RECORD.replace('"x"', '[{"a": 1, "a": 2}]'), "'a' appears twice"),
    "an unknown field": (record(offset=1), "a record has no 'offset': it takes input, key, timestamp, value"),
    **{
        f"no {name}": (
            json.dumps({field: value for field, value in json.loads(RECORD).items() if field != name}),
            f"without '{name}': it needs input, key, value and timestamp",
        )
        for name in ("input", "key", "value", "timestamp")
    },
    "an unknown input": (record(input="left"), "unknown input 'left': session_windows has events"),
    "an int key": (record(key=1), "the key 1 isn't a string: quote it, or use null"),
    "a fraction timestamp": (record(timestamp=0.5), "the timestamp 0.5 isn't a whole number"),
    "a negative timestamp": (record(timestamp=-1), "the timestamp -1 is out of range: give milliseconds since 1970"),
    "a timestamp too large": (record(timestamp=LATEST + 1), "is out of range: .* up to the year 9999"),
    "cut false": ('{"cut": false}', 'a cut is written {"cut": true}'),
    "cut and more": ('{"cut": true, "at": 5}', "a cut has no 'at': it takes cut"),
    "a bool heartbeat": ('{"heartbeat": true}', "the heartbeat True isn't a whole number: give milliseconds"),
    "heartbeat and more": ('{"heartbeat": 5, "key": "a"}', "a heartbeat has no 'key': it takes heartbeat"),
    "a second header": (HEADER, "a second header: a history file has one, on its first line"),
    "a delivery": (
        '{"deliver": "response", "foreign_key": "r"}',
        "has no channels to deliver from: leave the line out",
    ),
}


@pytest.mark.parametrize(("line", "message"), BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_bad_header_is_refused(line: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"^h.jsonl: line 1: .*{message}"):
        parse_history(text_of(line, RECORD), source="h.jsonl")


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_refused(line: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"^h.jsonl: line 3: .*{message}"):
        parse_history(text_of(HEADER, RECORD, line, RECORD), source="h.jsonl")


def of(operator: str, **options: Any) -> str:
    return json.dumps({"operator": operator, "options": options})


BY_ARTIST = of("foreign_key_join", foreign_key="artist")
MANUAL = of("foreign_key_join", foreign_key="artist", delivery="manual")
ONE_TO_MANY = of("one_to_many_join", foreign_key="artist")
COUNT_BY = of("table_aggregate", group_by="country")
SUM_BY = of("table_aggregate", group_by="country", aggregate="sum", field="amount")
LOOKED_UP = of("windowed_table", size_ms=10, **{"with": "stream_lookup", "window_start": "day"})


def on(side: str, value: Any, key: str | None = "a") -> str:
    return record(input=side, key=key, value=value)


BAD_VALUES = {
    "a foreign key missing": (BY_ARTIST, on("left", {"title": "x"}), "has no field 'artist': the foreign key is read"),
    "one to many, no string": (ONE_TO_MANY, on("left", {"artist": []}), r"holds \[\], not a string"),
    "a group missing": (COUNT_BY, on("events", {"amount": 1}), "has no field 'country': the group is read from it"),
    "a row no object": (
        COUNT_BY,
        on("events", 5),
        "the value 5 is not an object: the group is read from its field 'country'",
    ),
    "a summed field missing": (
        SUM_BY,
        on("events", {"country": "x"}),
        "has no field 'amount': the aggregated value is read",
    ),
    "a summed field no number": (SUM_BY, on("events", {"country": "x", "amount": "1"}), "sum can't take the value '1'"),
    "a window's start missing": (LOOKED_UP, on("right", {}), "has no field 'day': the window's start is read from it"),
    "a window's start no number": (
        LOOKED_UP,
        on("right", {"day": "mon"}),
        "holds 'mon': give the window's start in wh",
    ),
    "an average of text": (
        of("window_aggregate", size=10, aggregate="average"),
        on("events", "x"),
        "average can't take the value 'x': it needs a number",
    ),
    "a windowed sum of text": (
        *(of("windowed_table", size_ms=10, aggregate="sum"), on("events", "x")),
        "sum can't take the value 'x': it needs a number",
    ),
    "a session's sum of text": (header(aggregate="sum"), on("events", "x"), "sum can't take the value 'x'"),
    "a sum of nothing": (
        of("range_aggregate", preceding_ms=1, aggregate="sum"),
        on("events", None),
        "it needs a number",
    ),
}
LACKING = {
    "left of session windows": (HEADER, "left", "session_windows has events"),
    "left of a windowed table": (
        of("windowed_table", size_ms=10),
        "left",
        "windowed_table has events",
    ),
    "right of a windowed table alone": (
        of("windowed_table", size_ms=10),
        "right",
        "windowed_table has events; the input right needs the option with",
    ),
    "left of a joined windowed table": (
        of("windowed_table", size_ms=10, **{"with": "table"}),
        "left",
        "windowed_table has events, right",
    ),
}
BAD_DELIVERIES = {
    "immediate": (
        BY_ARTIST,
        {"deliver": "subscription", "foreign_key": "r"},
        'say "delivery": "manual" in the options',
    ),
    "no channels": (
        ONE_TO_MANY,
        {"deliver": "subscription", "foreign_key": "r"},
        "one_to_many_join has no channels to",
    ),
    "unknown channel": (
        MANUAL,
        {"deliver": "message", "foreign_key": "r"},
        "unknown channel 'message': deliver a subs",
    ),
    "a null key": (MANUAL, {"deliver": "response", "foreign_key": "r", "key": None}, "needs the string key"),
    "a number": (MANUAL, {"deliver": "subscription", "foreign_key": 1}, "needs the string foreign_key"),
    "a key too many": (
        MANUAL,
        {"deliver": "subscription", "foreign_key": "r", "key": "l"},
        "the delivery of a subscription has no 'key': it takes deliver, foreign_key",
    ),
}


@pytest.mark.parametrize(("line", "bad", "message"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_value_that_the_operator_cannot_take_is_refused(line: str, bad: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"^h.jsonl: line 3: .*{message}"):
        parse_history(text_of(line, '{"cut": true}', bad), source="h.jsonl")


@pytest.mark.parametrize(("line", "bad", "message"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_without_key_it_may_be_anything(line: str, bad: str, message: str) -> None:
    assert len(parse_history(text_of(line, json.dumps({**json.loads(bad), "key": None}))).records) == 1


def test_a_summed_field_that_is_missing_is_not_said_to_be_null() -> None:
    with pytest.raises(BadInput) as refused:
        parse_history(text_of(SUM_BY, on("events", {"country": "x"})))
    assert "use null" not in str(refused.value)


@pytest.mark.parametrize(("line", "side", "message"), LACKING.values(), ids=LACKING)
def test_a_record_on_an_input_that_the_operator_lacks_is_refused(line: str, side: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"^h.jsonl: line 2: unknown input '{side}': {message}$"):
        parse_history(text_of(line, record(input=side)), source="h.jsonl")


@pytest.mark.parametrize(("line", "delivery", "message"), BAD_DELIVERIES.values(), ids=BAD_DELIVERIES)
def test_a_delivery_that_cannot_be_is_refused(line: str, delivery: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^h.jsonl: line 2: .*{message}"):
        parse_history(text_of(line, json.dumps(delivery)), source="h.jsonl")


@pytest.mark.parametrize("channel", [["response"], {"response": 1}])
def test_a_channel_that_is_no_string_is_refused(channel: Any) -> None:
    line = json.dumps({"deliver": channel, "foreign_key": "r", "key": "l"})
    with pytest.raises(BadInput, match="line 2: unknown channel"):
        parse_history(text_of(MANUAL, line), source="h.jsonl")


def test_a_delivery_is_read_and_written_with_its_route() -> None:
    text = text_of(
        MANUAL,
        '{"deliver": "subscription", "foreign_key": "r"}',
        '{"deliver": "response", "foreign_key": "r", "key": "l"}',
    )
    history = parse_history(text)
    assert history.lines == (Delivery("subscription", "r", None), Delivery("response", "r", "l"))
    assert history.to_text() == text


def test_a_delivery_from_an_empty_channel_is_refused_when_it_is_played() -> None:
    lines = (on("left", {"artist": "r"}), '{"deliver": "subscription", "foreign_key": "s"}')
    with pytest.raises(BadInput, match=r"^h: line 3: no message waits on subscription s: .* \(subscription r\)"):
        play(parse_history(text_of(MANUAL, *lines), name="h"))


@pytest.mark.parametrize("text", ["", "\n", "  \n\t\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r'^h.jsonl: empty: the first line must be a header such as {"operator"'):
        parse_history(text, source="h.jsonl")


def test_a_number_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(BadInput, match="line 2: 1e999 is too large for a number: write a smaller one"):
        parse_history(text_of(HEADER, RECORD.replace('"x"', "1e999")))


def test_an_integer_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(BadInput, match="line 2: a whole number with too many digits: write it as a string"):
        parse_history(text_of(HEADER, RECORD.replace('"x"', "1" * 5000)))


@pytest.mark.parametrize("field", ["key", "value"])
def test_half_a_surrogate_pair_is_refused(field: str) -> None:
    with pytest.raises(BadInput, match="line 2: half of a surrogate pair, which isn't text: write the whole character"):
        parse_history(text_of(HEADER, record(**{field: "\ud800"})))


@pytest.mark.parametrize("aggregate", ["min", "max"])
def test_numbers_and_strings_in_one_history_are_refused_where_they_would_be_compared(aggregate: str) -> None:
    lines = (record(value=1), '{"cut": true}', record(key="b", value="x"), record(value="x"))
    history = parse_history(text_of(header(aggregate=aggregate), *lines), name="h")
    with pytest.raises(BadInput, match=rf"^h: line 5: {aggregate} can't take .* together: use values of one type"):
        play(history)


def test_a_file_that_is_not_utf8_is_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(b'{"operator": "\xff"}')
    with pytest.raises(BadInput, match=rf"^{path}: not UTF-8 at byte 14: save the file as UTF-8"):
        read_history(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    with pytest.raises(BadInput, match=rf"^{path}: can't be read \(No such file or directory\): check the path"):
        read_history(path)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=rf"^{tmp_path}: can't be read \(Is a directory\): check the path"):
        read_history(tmp_path)


def test_a_bad_line_is_reported_with_the_files_path(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(text_of(HEADER, "{}"), encoding="utf-8")
    with pytest.raises(BadInput, match=rf"^{path}: line 2: "):
        read_history(path)


@QUIET
@given(st.lists(st.text(alphabet='{}[]":,ab01 \n') | st.sampled_from([HEADER, RECORD, '{"cut": true}']), max_size=5))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    with suppress(BadInput):
        parse_history("\n".join(pieces))

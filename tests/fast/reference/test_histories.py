"""History files are read and written."""

from __future__ import annotations

from pathlib import Path

import pytest
from history_lines import HEADER, LATEST, QUIET, RECORD, text_of
from history_strategies import declarations
from hypothesis import given
from hypothesis import strategies as st
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, Cut, History, Line, parse_history, read_history
from streamproof.reference.core.records import Record

DESIGN = """\
{"operator": "session_windows", "options": {"gap_ms": 10, "grace_ms": 100, "aggregate": "count"}}
{"input": "events", "key": "a", "value": "x", "timestamp": 0}
{"cut": true}
{"input": "events", "key": "a", "value": "y", "timestamp": 10}
"""

# Reading what is right.


def test_the_designs_example_is_read() -> None:
    assert parse_history(DESIGN) == History(
        "session_windows",
        {"gap_ms": 10, "grace_ms": 100, "aggregate": "count"},
        (Record("events", "a", "x", 0), CUT, Record("events", "a", "y", 10)),
    )


def test_the_header_may_name_the_clock_and_a_line_may_advance_it() -> None:
    history = parse_history(text_of(HEADER[:-1] + ', "clock": "batch"}', '{"heartbeat": 100}'))
    assert (history.clock, history.lines, parse_history(HEADER).clock) == ("batch", (ClockAdvance(100),), "stream_time")


@pytest.mark.parametrize("blank", ["", "   ", "\t"])
def test_blank_lines_are_skipped(blank: str) -> None:
    assert parse_history(text_of(blank, HEADER, blank, RECORD, blank)) == parse_history(text_of(HEADER, RECORD))


def test_blank_lines_count_in_messages() -> None:
    with pytest.raises(BadInput, match="line 4"):
        parse_history(text_of(HEADER, "", "", "{}"))


def test_the_last_line_needs_no_line_end() -> None:
    assert parse_history(text_of(HEADER, RECORD).rstrip()) == parse_history(text_of(HEADER, RECORD))


def test_line_ends_of_windows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(DESIGN.replace("\n", "\r\n").encode())
    assert read_history(path) == parse_history(DESIGN) == parse_history(DESIGN.replace("\n", "\r\n"))


def test_a_line_separator_within_a_string_ends_no_line() -> None:
    line = RECORD.replace('"x"', '"\u2028\x85\x0c"'.replace("\x0c", "\\f"))
    assert parse_history(text_of(HEADER, line)).records[0].value == "\u2028\x85\x0c"


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + DESIGN.encode())
    assert read_history(path) == parse_history("\ufeff" + DESIGN) == parse_history(DESIGN)


def test_a_history_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "late.rescue.jsonl"
    path.write_text(DESIGN, encoding="utf-8")
    assert read_history(path).name == "late.rescue"


def test_the_name_is_no_part_of_the_history() -> None:
    assert parse_history(DESIGN, name="one") == parse_history(DESIGN, name="two")


# What a history says of itself.


def test_the_records_are_those_lines_alone() -> None:
    one = Record("events", "a", 1, 0)
    assert History("session_windows", {}, (CUT, one, ClockAdvance(5), CUT)).records == [one]


@pytest.mark.parametrize(
    ("lines", "batches"),
    [
        ((), [[]]),
        ((CUT,), [[], []]),
        ((ClockAdvance(1), CUT, CUT, ClockAdvance(2)), [[ClockAdvance(1)], [], [ClockAdvance(2)]]),
        ((ClockAdvance(1), ClockAdvance(2)), [[ClockAdvance(1), ClockAdvance(2)]]),
    ],
)
def test_n_cuts_make_one_batch_more(lines: tuple[Line, ...], batches: list[list[Line]]) -> None:
    assert History("session_windows", {}, lines).batches == batches


def test_other_lines_leave_everything_else() -> None:
    history = History("session_windows", {"gap_ms": 10}, (CUT,), "batch", "h")
    other = history.with_lines([ClockAdvance(1)])
    assert (other, other.name) == (History("session_windows", {"gap_ms": 10}, (ClockAdvance(1),), "batch"), "h")


# Writing.


def test_a_history_is_written_one_line_each() -> None:
    assert parse_history(DESIGN).to_text() == DESIGN


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def any_history(draw: st.DrawFn, /) -> History:
    options = draw(declarations())
    value = st.integers() if options["aggregate"] in ("sum", "min", "max") else VALUES
    one = st.builds(Record, st.just("events"), st.none() | st.text(), value, st.integers(0, LATEST))
    lines = draw(st.lists(one | st.builds(ClockAdvance, st.integers(0, LATEST)) | st.builds(Cut)))
    return History("session_windows", options, tuple(lines), draw(st.sampled_from(["stream_time", "batch"])))


@QUIET
@given(any_history())
def test_what_is_written_is_read_back(history: History) -> None:
    assert parse_history(history.to_text()) == history
    at_the_edges = history.with_lines([Record("events", None, None, 0), Record("events", "", 1.5, LATEST)])
    assert parse_history(at_the_edges.to_text()) == at_the_edges

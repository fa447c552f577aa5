"""TLC's messages, read line by line, and what is kept of them while it runs."""

from __future__ import annotations

import time

from streamproof.specs.pytla.tlc.messages import MessageReader
from streamproof.specs.pytla.tlc.output import KEPT_LINES, TlcOutput, listen
from tlc_output import COUNTS, message


def test_a_message_is_given_when_it_ends():
    reader = MessageReader()
    assert reader.feed("@!@!@STARTMSG 2185:0 @!@!@") is None
    assert reader.feed("Starting...") is None
    assert reader.feed("@!@!@ENDMSG 2185 @!@!@").text == "Starting..."
    assert reader.feed("Parsing file M.tla") == "Parsing file M.tla"


def test_a_message_within_a_message_is_part_of_it_and_of_its_text():
    reader = MessageReader()
    *_, outer = map(reader.feed, (
        "@!@!@STARTMSG 1000:1 @!@!@", "The exception was", ": @!@!@STARTMSG 2132:0 @!@!@", "Assert evaluated to FALSE",
        "@!@!@ENDMSG 2132 @!@!@", "@!@!@ENDMSG 1000 @!@!@",
    ))  # fmt: skip
    assert outer.text == "The exception was\n: \nAssert evaluated to FALSE"
    assert [part.code for part in outer.parts] == [2132]
    assert outer.codes() == {1000, 2132}


def test_a_printed_string_that_looks_like_a_mark_is_none():
    reader = MessageReader()
    line = '"a @!@!@STARTMSG 2193:0 @!@!@"  TRUE'
    assert reader.feed(line) == line


def test_messages_cut_short_are_given_at_the_end():
    reader = MessageReader()
    for line in ("@!@!@STARTMSG 1000:1 @!@!@", "one", "@!@!@STARTMSG 2132:0 @!@!@", "two"):
        reader.feed(line)
    (cut,) = reader.rest()
    assert cut.text == "one\ntwo"


def test_progress_is_reported_by_phase_and_report():
    reported = []
    text = (
        message(2187, "Running breadth-first search Model-Checking")
        + message(2189, "Computing initial states...")
        + message(2190, "Finished computing initial states: 1 distinct state generated")
        + message(2192, "Checking temporal properties for the complete state space with 3 total distinct states")
        + message(2267, "Finished checking temporal properties in 00s")
        + COUNTS
    )
    listen(TlcOutput(time.monotonic()), text.splitlines(), reported.append)
    phases = [progress.phase for progress in reported]
    assert phases[:4] == ["initial states", "searching", "temporal properties", "searching"]
    assert (reported[-1].distinct, reported[-1].generated, reported[-1].depth) == (3, 4, 2)


def test_of_much_that_a_module_prints_the_start_and_the_end_are_kept():
    output = TlcOutput(time.monotonic())
    listen(output, (f"<<{number}>>" for number in range(100 * KEPT_LINES)), None)
    assert output.lines[0] == "<<0>>"
    assert output.lines[-1] == f"<<{100 * KEPT_LINES - 1}>>"
    assert len(output.lines) <= 3 * KEPT_LINES

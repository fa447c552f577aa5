"""TLC's messages, read line by line."""

from __future__ import annotations

from streamproof.specs.pytla.tlc.messages import MessageReader


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

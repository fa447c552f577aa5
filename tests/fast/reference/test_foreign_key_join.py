from __future__ import annotations

from typing import Any

import pytest
from notation import histories_drawn, result_of, rows_of, steps
from streamproof.reference.core.play import play
from streamproof.reference.foreign_key_protocol import Protocol

JOIN = "foreign_key_join"
# What Kafka Streams does (docs/facts.md), row by row: arrivals at 0, 1, 2 …

NULL_KEYS = [
    # arrival, inner, left + keep, left + ignore
    ("R r=x", "-", "-", "-"),
    ("L k=a|null", "-", "k=(a|null,null)@1", "-"),
    ("L k=b|null", "-", "k=(b|null,null)@2", "-"),
    ("L k=c|r", "k=(c|r,x)@3", "k=(c|r,x)@3", "k=(c|r,x)@3"),
    ("L k=d|null", "k=∅@4", "k=(d|null,null)@4", "k=∅@4"),
    ("L k=e|null", "-", "k=(e|null,null)@5", "-"),
    ("L k=∅", "-", "k=∅@6", "-"),
    ("L k=∅", "-", "-", "-"),
]


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ({"join": "inner"}, 1),
        ({"join": "inner", "null_foreign_key": "keep"}, 1),
        ({"join": "left", "null_foreign_key": "keep"}, 2),
        ({"join": "left"}, 3),
    ],
    ids=["inner", "inner, keep", "left, keep", "left, ignore"],
)
def test_a_null_foreign_key_joins_nothing_and_left_may_emit_it(options: dict[str, Any], column: int) -> None:
    rows_of([(row[0], row[column]) for row in NULL_KEYS], JOIN, **options)


LAST = {
    # arrivals, then what the last of them sets off in an inner join, in a left one, and in an inner one with answer
    "a new row without partner": ("L k=a|r", "-", "k=(a|r,null)@0", "k=∅@0"),
    "deleting a row that never joined": ("L k=a|r k=∅", "k=∅@1", "k=∅@1", "k=∅@1"),
    "moving to a key without row": ("L k=a|r k=a|s", "k=∅@1", "k=(a|s,null)@1", "k=∅@1"),
    "an update under the same key without row": ("L k=a|r k=b|r", "-", "k=(b|r,null)@1", "k=∅@1"),
    "a second delete": ("L k=a|r k=∅ k=∅", "-", "-", "-"),
    "a delete of what never was": ("L k=∅", "-", "-", "-"),
    "a tombstone for a right row that never was": ("L k=a|r R r=∅", "k=∅@1", "k=(a|r,null)@1", "k=∅@1"),
    "the same right row again": ("L k=a|r R r=x r=x", "k=(a|r,x)@2", "k=(a|r,x)@2", "k=(a|r,x)@2"),
    "the same left row again": ("R r=x L k=a|r k=a|r", "k=(a|r,x)@2", "k=(a|r,x)@2", "k=(a|r,x)@2"),
    "a key that another one begins with": ("L a=v|fk1 b=v|fk R fk=X", "b=(v|fk,X)@2", "b=(v|fk,X)@2", "b=(v|fk,X)@2"),
    "a right row nobody names": ("R r=x r=∅", "-", "-", "-"),
    "a right row goes": ("R r=x L k=a|r R r=∅", "k=∅@2", "k=(a|r,null)@2", "k=∅@2"),
    "a null key after a null key": ("L k=a|null k=b|null", "-", "-", "-"),
    "a null key after a pair": ("R r=x L k=a|r k=b|null", "k=∅@2", "k=∅@2", "k=∅@2"),
}


@pytest.mark.parametrize(("text", "inner", "left", "answered"), LAST.values(), ids=LAST)
def test_a_change_is_emitted_or_not_as_in_kafka_streams_and_answered_where_every_change_is(
    text: str, inner: str, left: str, answered: str
) -> None:
    ways: list[dict[str, Any]] = [{}, {"join": "left"}, {"protocol": "answer"}]
    assert [steps(text, JOIN, **options)[-1] for options in ways] == [inner, left, answered]


@pytest.mark.parametrize("join", ["inner", "left"])
def test_a_right_change_fans_out_in_the_order_of_left_keys_by_their_bytes_and_not_by_utf_16(join: str) -> None:
    text = "L \U00010000=1|r \uffee=2|r b=3|r B=4|r aa=5|r a=6|r c=7|s R r=x@9"
    emitted = "B=(4|r,x)@9 a=(6|r,x)@9 aa=(5|r,x)@9 b=(3|r,x)@9 \uffee=(2|r,x)@9 \U00010000=(1|r,x)@9"
    assert steps(text, JOIN, join=join)[-1] == emitted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L k=a|r@50 R r=x@10", "k=(a|r,x)@10"),
        ("L k=a|r@10 R r=x@50", "k=(a|r,x)@50"),
        ("R r=x@50 L k=a|r@10", "k=(a|r,x)@50"),
        ("R r=x@10 L k=a|r@50", "k=(a|r,x)@50"),
        ("L k=a|r@50 R r=x@10 r=∅@20", "k=∅@20"),
        ("R r=x@50 L k=a|r@10 k=∅@20", "k=∅@50"),
        ("R r=x@50 L k=a|r@10 k=b|s@20", "k=∅@20"),
    ],
)
def test_a_right_change_stamps_alone_and_a_left_one_with_the_later_of_both(text: str, expected: str) -> None:
    assert steps(text, JOIN)[-1] == expected


def test_the_last_to_arrive_stands_whatever_its_timestamp() -> None:
    assert result_of("R r=x@9 L k=a|r@9 k=b|r@3 R r=y@1", JOIN) == {("k", None): ([{"v": "b", "fk": "r"}, "y"], 1)}


# Laws.


def test_messages_delivered_at_once_give_the_changelog_that_the_meaning_was_written_from() -> None:
    for history in histories_drawn(JOIN, 480):
        assert play(history).entries == play(history, Protocol).entries, history.to_text()

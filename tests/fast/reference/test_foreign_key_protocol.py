"""The protocol of the foreign-key join, by the rules of KIP-213."""

from __future__ import annotations

from typing import Any

import pytest
from foreign_key_protocols import Schedule
from streamproof.reference.foreign_key_protocol import digest_of, prefix_of

DELETE_AND_ANSWER = "DELETE_KEY_AND_PROPAGATE"
NULL_IF_NONE = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"


@pytest.mark.parametrize("change", ["k=c|2", "k=∅", "k=c|null", "k=c|1"])
@pytest.mark.parametrize("join", ["inner", "left"])
def test_step_6a_an_answer_whose_hash_does_not_match_is_discarded(change: str, join: str) -> None:
    assert Schedule(join=join).then(f"R 1=foo@0 2=bar L k=a|1@0 >1 <1/k k=b|2@0 >2 {change}@0 <2/k") == [
        "k=(a|1,foo)@0"
    ]


@pytest.mark.parametrize("join", ["inner", "left"])
def test_a_deletes_answer_is_discarded_where_the_key_is_back(join: str) -> None:
    assert "k=∅@0" not in Schedule(join=join).then("R 1=foo@0 L k=a|1@0 >1 <1/k k=∅@0 >1 k=a|1@0 <1/k")


def test_a_null_key_sends_a_delete_that_is_answered() -> None:
    schedule = Schedule()
    schedule.then("R 1=foo@0 L k=a|1@0 >1 <1/k k=b|null@0")
    assert schedule.waiting == [f">1/k {DELETE_AND_ANSWER} #b|null"]


def test_with_answer_the_inner_join_asks_for_an_answer_in_any_case() -> None:
    schedule = Schedule(protocol="answer")
    schedule.then("L k=a|1@0 k=b|1@0")
    assert schedule.waiting == [f">1/k {NULL_IF_NONE} #a|1", f">1/k {NULL_IF_NONE} #b|1"]


# The combined key.


@pytest.mark.parametrize(
    ("foreign_key", "written"),
    [("", b"\0\0\0\0"), ("r", b"\0\0\0\x01r"), ("r1", b"\0\0\0\x02r1"), ("é", b"\0\0\0\x02\xc3\xa9")],
)
def test_a_combined_key_begins_with_the_foreign_key_and_its_length_in_four_bytes(
    foreign_key: str, written: bytes
) -> None:
    assert prefix_of(foreign_key) == written


PREFIXES = [
    ("L a=v|fk1@0 b=v|fk@0 >fk1 >fk", "R fk=X@0", ["<fk/b X #v|fk"]),
    ("L 1x=v|r@0 x=v|r1@0 >r >r1", "R r=X@0", ["<r/1x X #v|r"]),
    ("L 1x=v|r@0 x=v|r1@0 >r1 >r", "R r1=X@0", ["<r1/x X #v|r1"]),
]


@pytest.mark.parametrize(("subscriptions", "change", "responses"), PREFIXES)
def test_a_scan_finds_no_key_of_which_its_own_is_a_prefix(
    subscriptions: str, change: str, responses: list[str]
) -> None:
    schedule = Schedule()
    schedule.then(f"{subscriptions} {change}")
    assert schedule.waiting == responses


def test_a_right_change_is_answered_in_the_order_of_combined_keys() -> None:
    schedule = Schedule()
    schedule.then("L b=1|r@0 a=2|r@0 é=3|r@0 B=4|r@0 >r >r >r >r R r=x@0")
    assert [one.split()[0] for one in schedule.waiting] == ["<r/B", "<r/a", "<r/b", "<r/é"]


# The hash.


def test_equal_values_have_equal_hashes_however_they_are_written() -> None:
    # KAFKA-15303: bytes that differ when a value is written a second time
    assert digest_of({"fk": "r", "v": [1, {"a": 1, "b": 2}]}) == digest_of({"v": [1, {"b": 2, "a": 1}], "fk": "r"})


@pytest.mark.parametrize("other", [{"fk": "r", "v": 2}, {"fk": "r"}, {"fk": "s", "v": 1}, {"fk": "r", "v": "1"}, None])
def test_other_values_have_other_hashes(other: Any) -> None:
    assert digest_of({"fk": "r", "v": 1}) != digest_of(other)

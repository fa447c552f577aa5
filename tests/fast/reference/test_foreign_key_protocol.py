"""The protocol of the foreign-key join, by the examples and tables of KIP-213."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from foreign_key_protocols import Schedule
from streamproof.reference.foreign_key_protocol import (
    digest_of,
    prefix_of,
)

DELETE = "DELETE_KEY_NO_PROPAGATE"
DELETE_AND_ANSWER = "DELETE_KEY_AND_PROPAGATE"
NULL_IF_NONE = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
ONLY_IF_ANY = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"

# "Workflow": the table of changes of the left side, row by row.


class Step(NamedTuple):
    arrival: str
    inner_sends: list[str]
    left_sends: list[str]
    inner: str | None
    left: str | None
    right_rows: dict[str, str]


FOO, BAR, BAZ = {"1": "foo"}, {"3": "bar"}, {"10": "baz"}
WORKFLOW = [
    # Publish new event (k,1): normal fk-join induced by LHS event
    Step("k=a|1", [f">1/k {ONLY_IF_ANY}"], [f">1/k {NULL_IF_NONE}"], "k=(a|1,foo)", "k=(a|1,foo)", FOO),
    # (k,1) -> (k,2): must indicate a delete, (k,1,foo) is no longer valid output
    Step(
        "k=a|2",
        [f">1/k {DELETE}", f">2/k {NULL_IF_NONE}"],
        [f">1/k {DELETE}", f">2/k {NULL_IF_NONE}"],
        "k=∅",
        "k=(a|2,null)",
        FOO,
    ),
    # (k,2) -> (k,3): ideally would not publish a delete with inner join
    Step(
        "k=a|3",
        [f">2/k {DELETE}", f">3/k {NULL_IF_NONE}"],
        [f">2/k {DELETE}", f">3/k {NULL_IF_NONE}"],
        "k=∅",
        "k=(a|3,null)",
        FOO,
    ),
    # Publish a value to RHS-0: performs prefix scan join
    Step("R 3=bar", ["<3/k bar"], ["<3/k bar"], "k=(a|3,bar)", "k=(a|3,bar)", FOO | BAR),
    # Delete k: propagate null/delete through the sub-topology
    Step("k=∅", [f">3/k {DELETE_AND_ANSWER}"], [f">3/k {DELETE_AND_ANSWER}"], "k=∅", "k=∅", FOO | BAR),
    # Publish original event again (k,null) -> (k,1)
    Step("k=a|1", [f">1/k {ONLY_IF_ANY}"], [f">1/k {NULL_IF_NONE}"], "k=(a|1,foo)", "k=(a|1,foo)", FOO | BAR),
    # Publish to LHS (q,10): significant difference between inner and outer
    Step("q=a|10", [f">10/q {ONLY_IF_ANY}"], [f">10/q {NULL_IF_NONE}"], None, "q=(a|10,null)", FOO | BAR),
    # Publish a value to RHS-1
    Step("R 10=baz", ["<10/q baz"], ["<10/q baz"], "q=(a|10,baz)", "q=(a|10,baz)", FOO | BAR | BAZ),
]


@pytest.mark.parametrize("join", ["inner", "left"])
def test_the_workflow_table_row_by_row(join: str) -> None:
    schedule = Schedule(join=join)
    schedule.then("R 1=foo@0")
    for step in WORKFLOW:
        schedule.then(f"L {step.arrival}@0")
        sent = [written.partition(" #")[0] for written in schedule.waiting]
        assert sent == (step.inner_sends if join == "inner" else step.left_sends), step.arrival
        expected = step.inner if join == "inner" else step.left
        assert schedule.drain() == ([] if expected is None else [f"{expected}@0"]), step.arrival
        assert schedule.right_rows == step.right_rows, step.arrival


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

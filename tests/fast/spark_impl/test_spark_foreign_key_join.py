"""The foreign-key join on Spark: what is declared, what each stage decides, and a join of a join's changelog."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.properties.operators.foreign_key_join import REGISTRATION
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.joins import ForeignKeyJoin
from streamproof.spark_impl.foreign_key_stages import (
    ForeignKeyStages,
    Instruction,
    LeftState,
    Response,
    Subscribed,
    foreign_key_stages,
)
from streamproof.spark_impl.runtime.logic import Arrived, Emitted

ASK_NULL, ASK_VALUE = (
    Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE,
    Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE,
)
FORGET, DELETE = Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE


def stages(**options: Any) -> ForeignKeyStages:
    return foreign_key_stages(ForeignKeyJoin("artist", **options))


def left(value: Any, foreign_key: str | None, timestamp: int = 0) -> Arrived:
    return Arrived(timestamp, [0, timestamp], [value, foreign_key])


def asked(emitted: list[Emitted]) -> list[tuple[Any, ...]]:
    """To whom, what, with or without a hash, and the row that is carried along."""
    return [
        (to, instruction, digest is not None, row if carries else "-")
        for to, instruction, digest, carries, _, row in (one.value for one in emitted)
    ]


def subscription(
    instruction: Instruction, digest: bytes | None, timestamp: int = 0, carries: bool = False, left: Any = None
) -> Arrived:
    value = [timestamp, None, str(instruction), digest, carries, True, left, "l"]
    return Arrived(timestamp, [0, timestamp, 0], value, "messages")


def response(digest: bytes | None, right: Any, timestamp: int = 0, **row: Any) -> Arrived:
    value = [timestamp, None, *Response(True, digest, right)._replace(**row)]
    return Arrived(timestamp, [0, timestamp, 0, 0], value, "messages")


@pytest.mark.parametrize(
    ("before", "value", "after", "options", "expected"),
    [
        (None, "v", "r1", {}, [("r1", ASK_VALUE, True, "v")]),
        ("r1", "v", "r1", {}, [("r1", ASK_VALUE, True, "v")]),
        ("r1", "v", "r1", {"protocol": "answer"}, [("r1", ASK_NULL, True, "v")]),
        (None, "v", "r1", {"join": "left"}, [("r1", ASK_NULL, True, "v")]),
        ("r1", "v", "r2", {}, [("r1", FORGET, False, "-"), ("r2", ASK_NULL, True, "v")]),
        ("r1", None, "r1", {}, [("r1", DELETE, False, None)]),
        ("r1", "v", None, {}, [("r1", DELETE, True, "v")]),
        (None, "v", None, {}, [(None, None, True, "v")]),
    ],
)
def test_a_left_change_asks_as_the_protocol_says(
    before: str | None, value: Any, after: str | None, options: dict[str, Any], expected: list[Any]
) -> None:
    state = [] if before is None else [(before,)]
    assert asked(stages(**options).sender.take(("l",), state, left(value, after), 0)) == expected
    assert state == ([] if value is None or after is None else [(after,)])


def test_a_right_key_answers_with_its_row_and_the_later_timestamp() -> None:
    right = stages().right
    state = right.empty()
    assert right.take(("r",), state, Arrived(50, [], "x", "right"), 0) == []
    emitted = right.take(("r",), state, subscription(ASK_VALUE, b"1", 20, carries=True, left="v"), 0)
    assert [(Response(*one.value[1:]), one.timestamp) for one in emitted] == [
        (Response(True, b"1", "x", True, True, True, "v"), 50),
    ]
    assert right.unpack(right.pack(state) or ()).lefts == {("l",): Subscribed(b"1")}


def test_a_right_key_without_a_row_answers_only_if_it_must() -> None:
    right = stages().right
    state = right.empty()
    assert right.take(("r",), state, subscription(ASK_VALUE, b"1"), 0) == []
    assert len(right.take(("r",), state, subscription(ASK_NULL, b"1"), 0)) == 1
    assert right.take(("r",), state, subscription(FORGET, None), 0) == []
    assert right.pack(state) is None


def test_a_right_change_goes_to_all_subscribers_in_the_order_of_their_keys() -> None:
    right = stages().right
    state = right.unpack((None, None, [("b", b"2"), ("a", b"1")]))
    emitted = right.take(("r",), state, Arrived(7, [], "x", "right"), 0)
    assert [(one.value[0], one.value[2], one.value[3]) for one in emitted] == [("a", b"1", "x"), ("b", b"2", "x")]


def test_a_right_row_without_a_key_is_dropped() -> None:
    right = stages().right
    assert right.take((None,), right.empty(), Arrived(7, [], "x", "right"), 0)[0].reason == "null key"


def test_the_row_comes_before_the_response_that_its_change_has_asked_for() -> None:
    receiver = stages().receiver
    state = LeftState("old", b"0", True, True)
    emitted = receiver.take(("l",), state, response(b"1", "x", carries=True, refers=True, left="v"), 0)
    assert [one.value for one in emitted] == [{"left": "v", "right": "x"}]
    assert receiver.pack(state) == ("v", b"1", True, True)


def test_a_row_that_asked_and_was_not_answered_is_silent() -> None:
    receiver = stages(join="left").receiver
    silent = response(b"1", None, answers=False, carries=True, left="v")
    assert receiver.take(("l",), LeftState("old", b"0", True, True), silent, 0) == []


def test_a_response_to_an_older_value_is_stale() -> None:
    receiver = stages().receiver
    state = LeftState("v", b"new", True)
    assert receiver.take(("l",), state, response(b"old", "x"), 0) == []
    emitted = receiver.take(("l",), state, response(b"new", "x"), 0)
    assert [one.value for one in emitted] == [{"left": "v", "right": "x"}]


def test_a_row_that_asks_no_one_is_emitted_only_where_every_change_is_answered() -> None:
    alone = response(b"1", None, answers=False, carries=True, asked=False, left="v")
    for options, expected in (
        ({}, []),
        ({"join": "left"}, []),
        ({"join": "left", "null_foreign_key": "keep"}, [{"left": "v", "right": None}]),
    ):
        receiver = stages(**options).receiver
        assert [one.value for one in receiver.take(("l",), receiver.empty(), alone, 0)] == expected


def test_a_fused_join_refuses_manual_delivery() -> None:
    with pytest.raises(BadInput, match="delivers at once"):
        REGISTRATION.spark.build(ForeignKeyJoin("artist", delivery="manual"), None, None, None)  # type: ignore[arg-type]

"""The foreign-key join on Spark: what is declared, what each stage decides, and a join of a join's changelog."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.properties.operators.foreign_key_join import REGISTRATION
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.joins import ForeignKeyJoin
from streamproof.spark_impl.foreign_keys.stages import (
    ForeignKeyStages,
    Instruction,
    LeftState,
    Response,
    foreign_key_stages,
)
from streamproof.spark_impl.runtime.logic import Arrived, LogicOutput

ASK_NULL, ASK_VALUE = (
    Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE,
    Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE,
)
FORGET, DELETE = Instruction.DELETE_KEY_NO_PROPAGATE, Instruction.DELETE_KEY_AND_PROPAGATE


def stages(**options: Any) -> ForeignKeyStages:
    return foreign_key_stages(ForeignKeyJoin("artist", **options))


def left(value: Any, foreign_key: str | None, timestamp: int = 0) -> Arrived:
    return Arrived(timestamp, [0, timestamp], [value, foreign_key])


def asked(emitted: list[LogicOutput]) -> list[tuple[Any, ...]]:
    """To whom, what, with or without a hash, and the row that is carried along."""
    return [
        (to, instruction, digest is not None, row if carries else "-")
        for to, instruction, digest, carries, _, row in (one.value for one in emitted)
    ]


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


def test_a_right_change_goes_to_all_subscribers_in_the_order_of_their_keys() -> None:
    right = stages().right
    state = right.unpack((None, None, [("b", b"2"), ("a", b"1")]))
    emitted = right.take(("r",), state, Arrived(7, [], "x", "right"), 0)
    assert [(one.value[0], one.value[2], one.value[3]) for one in emitted] == [("a", b"1", "x"), ("b", b"2", "x")]


def test_a_response_to_an_older_value_is_stale() -> None:
    receiver = stages().receiver
    state = LeftState("v", b"new", True)
    assert receiver.take(("l",), state, response(b"old", "x"), 0) == []
    emitted = receiver.take(("l",), state, response(b"new", "x"), 0)
    assert [one.value for one in emitted] == [{"left": "v", "right": "x"}]


def test_a_fused_join_refuses_manual_delivery() -> None:
    with pytest.raises(BadInput, match="delivers immediately"):
        REGISTRATION.spark.build(ForeignKeyJoin("artist", delivery="manual"), None, None, None)  # type: ignore[arg-type]

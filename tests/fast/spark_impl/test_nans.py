"""NaNs in keys and orders of arrival, in memory: equal to each other and after all other numbers, as in Spark."""

from __future__ import annotations

from itertools import permutations
from math import inf, nan
from typing import Any

import msgspec
import pytest
from memory_runtime import Groups, Row, came, sent, stage_of
from pyspark.sql import functions as F
from pyspark.sql import types as T
from streamproof.reference.definitions.aggregates import COUNT
from streamproof.reference.definitions.joins import ForeignKeyJoin, OneToManyJoin, TableTableJoin
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.spark_impl.foreign_keys.stages import foreign_key_hops, foreign_key_stages
from streamproof.spark_impl.one_to_many_join import one_to_many_stages
from streamproof.spark_impl.runtime.codec import encode
from streamproof.spark_impl.runtime.columns import same_bits
from streamproof.spark_impl.runtime.logic import NAN, Arrived, NotANumber
from streamproof.spark_impl.runtime.processor import Stage, StageInput
from streamproof.spark_impl.session_windows import SessionLogic
from streamproof.spark_impl.table_table_join import TableTableLogic

LEFT, RIGHT = 0, 1
NUMBERS = [-inf, -1.5, 0.0, inf]


def test_a_nan_equals_every_nan_and_comes_after_all_numbers() -> None:
    for one, other in ((NAN, nan), (nan, NAN), (NAN, NotANumber())):
        assert [one == other, one != other, one < other, one > other] == [True, False, False, False]
    for one in NUMBERS:
        assert [one == NAN, one != NAN, one < NAN, one > NAN] == [False, True, True, False]
    for order in permutations([*NUMBERS, NAN]):
        assert sorted(order) == [*NUMBERS, NAN]
        assert sorted([(one,) for one in order]) == [*((one,) for one in NUMBERS), (NAN,)]
    assert len({NAN, NotANumber(), 0.0, -0.0}) == 2


def test_a_nan_is_stored_and_sent_as_any_other_and_nothing_else_is_taken_for_a_number() -> None:
    assert encode([NAN]) == encode([nan])
    with pytest.raises(TypeError, match="Encoding objects of type object is unsupported"):
        encode([object()])


def test_a_nan_closes_after_all_other_keys() -> None:
    windows = SessionWindows(gap_ms=5, grace_ms=0, retention_ms=5, aggregate=COUNT, emit="close", late="merged")
    for order in permutations([*NUMBERS, nan], 4):
        groups, stage = Groups(1), stage_of(SessionLogic(windows))
        groups.batch(stage, [Row((key,), 1, number) for number, key in enumerate(order)], 0)
        found = [one.key[0] for one in came(groups.batch(stage, [], 50))]
        assert [repr(one) for one in found] == [repr(one) for one in [*NUMBERS, nan] if repr(one) in map(repr, order)]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_rows_are_taken_by_an_order_whose_nan_is_the_largest_number(kind: str) -> None:
    order = T.StructType().add("number", kind).add("time", "timestamp").add("step", "integer")
    side = StageInput("left", order, T.IntegerType())
    stage = Stage(TableTableLogic(TableTableJoin("left")), [side, side], [], T.StructType())
    orders = [[1.0, None, 2], [nan, None, 0], [nan, None, 1], [nan, None, 2]]
    for arrival in permutations(range(4)):
        rows = [Row(("a",), 1, orders[number], number, LEFT) for number in arrival]
        found = [one.emitted.value["left"] for one in came(Groups(1).batch(stage, rows, 0))]
        assert found == [0, 1, 2, 3]


def one_to_many(groups: Groups, rows: list[Row]) -> list[Any]:
    stage = stage_of(one_to_many_stages(OneToManyJoin("refers")).right, ["messages", "right"])
    return [one.emitted.value for one in came(groups.batch(stage, rows, 0))]


def foreign_key(groups: Groups, rows: list[Row]) -> list[Any]:
    stage = stage_of(
        foreign_key_stages(ForeignKeyJoin("refers")).right, ["messages", "right"], foreign_key_hops(1, 1)[1]
    )
    return [one.key for one in sent(groups.batch(stage, rows, 0))]


@pytest.mark.parametrize(
    ("batch", "content", "gone"),
    [
        (one_to_many, ["v"], [None]),
        (
            foreign_key,
            ["PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE", b"", False, True, "v"],
            ["DELETE_KEY_NO_PROPAGATE", None, False, True, None],
        ),
    ],
    ids=["one_to_many_join", "foreign_key_join"],
)
def test_a_left_row_whose_key_is_nan_stays_one_row_until_it_goes(
    batch: Any, content: list[Any], gone: list[Any]
) -> None:
    groups = Groups(1)
    for at in range(3):
        batch(groups, [Row(("r",), at, [at, at, 0], [at, None, *content, nan])])
    (found,) = batch(groups, [Row(("r",), 3, [3, 3, 0], "x", RIGHT)])
    assert repr(found[0]) == "nan"
    batch(groups, [Row(("r",), 4, [4, 4, 0], [4, None, *gone, nan])])
    assert batch(groups, [Row(("r",), 5, [5, 5, 0], "y", RIGHT)]) == []


def test_a_row_that_refers_to_nan_goes_on_referring_to_it() -> None:
    stage = stage_of(foreign_key_stages(ForeignKeyJoin("refers")).sender, ["left"], foreign_key_hops(1, 1)[0])
    groups = Groups(1)
    for at in range(2):
        (message,) = sent(groups.batch(stage, [Row(("l",), at, [at, at], [msgspec.Raw(encode(at)), nan])], 0))
        assert repr(message.key) == "(nan,)"


@pytest.mark.parametrize("kind", ["float", "double", "long", "string", "boolean", "date", "decimal(5,2)"])
def test_a_key_has_the_same_bits_for_both_zeros_and_for_all_nans(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    field = T.StructType().add("k", kind).fields[0]
    shown = str(same_bits(F.col("k"), field))
    if kind not in ("float", "double"):
        assert shown == "Column<'k'>"
        return
    # Adding a zero makes 0.0 of -0.0.
    assert shown == f"Column<'CAST(CASE WHEN isnan(k) THEN nan ELSE +(k, 0.0) END AS {kind.upper()})'>"


def test_rows_without_a_part_of_their_order_come_before_all_others() -> None:
    logic = TableTableLogic(TableTableJoin("left"))
    for wanted in (
        [None, 1, 2],
        [[None, 5], [1, None], [1, 2]],
        [[1, [None, 3]], [1, [0, 2]], [2, None]],
        [None, "", "a"],
    ):
        for order in permutations(wanted):
            assert [one.order for one in logic.in_order([Arrived(0, one, None) for one in order])] == wanted
    late, soon = Arrived(2, None, None), Arrived(1, None, None)
    assert logic.in_order([late, soon]) == [soon, late]

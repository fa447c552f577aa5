"""The processor of production, in memory: what a group holds, and what it can't."""

from __future__ import annotations

import random

import pytest
from memory_runtime import Groups, Row, came, decode, stage_of
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.aggregates import COUNT
from streamproof.reference.definitions.joins import ForeignKeyJoin, TableTableJoin
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.spark_impl.foreign_key_stages import SenderLogic, foreign_key_hops
from streamproof.spark_impl.runtime import processor
from streamproof.spark_impl.session_windows import SessionLogic
from streamproof.spark_impl.table_table_join import TableTableLogic

SIDES = ["left", "right"]


def test_a_group_that_is_too_large_is_refused_with_the_remedy_and_its_state_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, groups = stage_of(TableTableLogic(TableTableJoin("outer")), SIDES), Groups(1)
    assert len(came(groups.batch(stage, [Row(("a",), 1, 0, "x")], 0))) == 1
    before = groups.memories[0].state
    monkeypatch.setattr(processor, "MAX_BYTES_OF_GROUP", 2**20)
    with pytest.raises(BadInput) as refusal:
        groups.batch(stage, [Row(("b",), 1, 1, random.Random(0).randbytes(2**21).hex())], 0)
    assert str(refusal.value) == (
        "the state of a group of keys has 4 MB, and a value of Spark's state at most 1: begin a new checkpoint with "
        "more state_groups, and initial_state=read_state(…) of this one"
    )
    assert groups.memories[0].state == before


def test_a_key_without_state_leaves_none() -> None:
    stage, groups = stage_of(TableTableLogic(TableTableJoin("outer")), SIDES), Groups(2)
    groups.batch(stage, [Row(("a",), 1, 0, "x"), Row(("b",), 1, 1, "x")], 0)
    assert set(groups.stored()) == {("a",), ("b",)}
    groups.batch(stage, [Row(("a",), 2, 2, None)], 0)
    assert set(groups.stored()) == {("b",)}
    groups.batch(stage, [Row(("b",), 2, 3, None)], 0)
    assert [memory.state for memory in groups.memories.values()] == [None, None]


def test_messages_without_a_key_go_to_many_groups_and_those_of_one_key_to_one() -> None:
    logic = SenderLogic(ForeignKeyJoin(foreign_key="refers"))
    stage = stage_of(logic, ["left"], foreign_key_hops(1, 1)[0])
    for refers, hashes in ((None, 8), ("r", 1)):
        rows = [Row((f"{number}",), 1, [number, 1], [{"amount": number}, refers]) for number in range(8)]
        (packed,) = Groups(1).batch(stage, rows, 0)
        assert len({*decode(packed)[0]}) == hashes


def test_what_the_clock_closes_comes_by_end_and_of_one_end_by_key() -> None:
    windows = SessionWindows(gap_ms=5, grace_ms=0, retention_ms=5, aggregate=COUNT, emit="close", late="merged")
    stage, ends = stage_of(SessionLogic(windows)), {"b": 1, "c": 3, "a": 3}
    for keys in (["c", "b"], ["a", "c"], ["c", "a"], ["c", "b", "a"]):
        groups = Groups(1)
        groups.batch(stage, [Row((key,), ends[key], order) for order, key in enumerate(keys)], 0)
        found = [(one.emitted.end, one.key[0]) for one in came(groups.batch(stage, [], 50))]
        assert found == sorted((ends[key], key) for key in keys)

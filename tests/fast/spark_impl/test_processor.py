"""The processor of production, in memory: what a group holds, and what it can't."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from memory_runtime import Groups, Row, came, decode, stage_of
from pyspark.sql import types as T
from streamproof.reference.core.errors import BadInput
from streamproof.reference.definitions.aggregates import COUNT
from streamproof.reference.definitions.joins import ForeignKeyJoin, TableTableJoin
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.spark_impl.foreign_keys.stages import SenderLogic, foreign_key_hops
from streamproof.spark_impl.runtime import processor
from streamproof.spark_impl.runtime.processor import AFTER, BEFORE, WITHIN
from streamproof.spark_impl.runtime.required import StatefulProcessorHandleState
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
        "the state of a group of keys has 4 MB, more than Spark's limit of 1 for a value: begin a new checkpoint with "
        "more state_groups, and initial_state=read_state(…) of this checkpoint"
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


def test_dropped_rows_are_emitted_where_they_are_asked_for() -> None:
    for asked in (True, False):
        stage = replace(stage_of(TableTableLogic(TableTableJoin("outer")), SIDES), report_dropped=asked)
        rows = [Row((None,), 1, 0, "x"), Row(("a",), None, 1, "x"), Row(("a",), 1, 2, "x")]
        found = [(one.key, one.emitted.reason) for one in came(Groups(1).batch(stage, rows, 0))]
        dropped = [(("a",), "null timestamp"), ((None,), "null key")]
        assert sorted(found, key=repr) == sorted([(("a",), None), *dropped * asked], key=repr)


def test_a_change_says_whether_the_clock_a_row_or_the_end_has_set_it_off() -> None:
    windows = SessionWindows(gap_ms=5, grace_ms=0, retention_ms=5, aggregate=COUNT, emit="close", late="merged")
    stage, groups = stage_of(SessionLogic(windows)), Groups(1)
    groups.batch(stage, [Row(("a",), 1, 0)], 0)
    (by_clock,) = groups.batch(stage, [], 50)
    (by_row,) = groups.batch(stage, [Row(("a",), None, 1)], 50)
    (at_end,) = Groups(1).serve(0, replace(stage, ended=True), [Row(("a",), 1, 0)], 0)
    assert [decode(one)[-2] for one in (by_clock, by_row, at_end)] == [[BEFORE], [WITHIN], [AFTER]]


class Partition:
    """A partition of the state, of which a processor's guard asks for the declaration."""

    def __init__(self) -> None:
        self.stored: tuple[str] | None = None
        self._statefulProcessorApiClient = self
        self.handle_state = StatefulProcessorHandleState.INITIALIZED
        self.keys: list[tuple[int] | None] = []

    def getValueState(self, name: str, kind: T.StructType) -> Partition:
        return self

    def get(self) -> tuple[str] | None:
        return self.stored

    def update(self, stored: tuple[str]) -> None:
        self.stored = stored

    def set_implicit_key(self, key: tuple[int]) -> None:
        self.keys.append(key)

    def remove_implicit_key(self) -> None:
        self.keys.append(None)


def guarded(partition: Partition, declaration: str, key: str = "a: string", state: str = "n: long") -> None:
    """Let a processor of a declaration and of such columns look at a partition."""
    kinds = [
        T.StructType([T.StructField(name, getattr(T, f"{kind.title()}Type")()) for name, kind in [one.split(": ")]])
        for one in (key, state)
    ]
    stage = replace(stage_of(TableTableLogic(TableTableJoin("outer")), SIDES), key=kinds[0].fields, state=kinds[1])
    processor.KeyedProcessor(stage).guard(partition, declaration)  # type: ignore[arg-type]


def test_a_partition_goes_on_under_its_own_declaration_and_columns_alone() -> None:
    declaration = "table_table_join(join=outer) with state_groups=100, form 2"
    partition = Partition()
    for _ in range(2):
        guarded(partition, declaration)
    assert partition.keys == [(0,), None] * 2
    for at in range(len(declaration)):
        other = declaration[:at] + ("x" if declaration[at] != "x" else "y") + declaration[at + 1 :]
        with pytest.raises(BadInput, match="the checkpoint was written by"):
            guarded(partition, other)
    for columns in ({"key": "a: long"}, {"key": "b: string"}, {"state": "n: string"}, {"state": "m: long"}):
        with pytest.raises(BadInput, match="the checkpoint stores"):
            guarded(partition, declaration, **columns)
    partition.handle_state = StatefulProcessorHandleState.PRE_INIT
    guarded(partition, "another")  # the driver has no state

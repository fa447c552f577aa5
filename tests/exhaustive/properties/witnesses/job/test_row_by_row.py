"""Functions with state get each row of a batch in a separate call, with all else as the batch has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from check_job_setup import CLICKS, but_for
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from streamproof import BadInput, Violated, invariants
from streamproof.properties.checking.jobs.invariants import _why_not_asked
from streamproof.properties.laws.metamorphic.row_by_row import RowsOneAtATime
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.row_by_row import _function
from streamproof.properties.witnesses.job.running import Declared
from streamproof.properties.witnesses.run_options import Mode, RunOptions

LAW = "rows one at a time"
COUNTED = "user string, clicks bigint"
TIMEOUT = GroupStateTimeout.ProcessingTimeTimeout


class ThirdInOneBatch(StatefulProcessor):
    """Emits a key once three of its rows come in one batch."""

    def init(self, handle: Any) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        if sum(1 for _ in rows) >= 3:
            yield Row(user=key[0], clicks=3)

    def close(self) -> None:
        pass


def in_one_batch(clicks: DataFrame) -> DataFrame:
    return clicks.groupBy("user").transformWithState(ThirdInOneBatch(), COUNTED, "append", "None")


def test_a_function_gets_a_row_a_call_and_the_state_of_the_call_before() -> None:
    given = (None, 1_000, -1, TIMEOUT, False, False, False, False, False, -1, b"", None)
    state = GroupState(*given)
    calls = []

    def counted(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        (frame,) = frames
        before = state.get[0] if state.exists else 0
        calls.append((key, frame.amount.tolist(), [*frame.index], before, state._timeout_timestamp))
        state.update((before + 1,))
        state.setTimeoutDuration(500)
        yield frame

    frames = iter([pd.DataFrame({"amount": [7, 8]}), pd.DataFrame({"amount": [9]})])
    out = [*_function(counted)(("a",), frames, state)]
    assert calls == [(("a",), [7], [0], 0, -1), (("a",), [8], [0], 1, -1), (("a",), [9], [0], 2, -1)]
    assert (len(out), state.get, state._timeout_timestamp) == (3, (3,), 1_500)

    timed_out = GroupState(*given[:4], True, *given[5:])
    none = pd.DataFrame({"amount": []})

    def once(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        return frames

    assert [*_function(once)(("a",), iter([none]), timed_out)] == [none]


def test_an_invariant_of_another_name_can_t_be_left_out_nor_all_of_them() -> None:
    with pytest.raises(BadInput, match="'a flood', which is no invariant and no column: leave out"):
        invariants(in_one_batch, CLICKS, without=["a flood"])
    with pytest.raises(BadInput, match="no invariant is left"):
        invariants(in_one_batch, CLICKS, without=but_for())


def test_updated_rows_are_compared_only_where_the_last_of_a_key_is_known() -> None:
    variation = RowsOneAtATime().variation(RunOptions(mode="update"), RowsOneAtATime.given)

    def why(unique: list[str], plan: Plan, mode: Mode = "update", held: str = "the order within a batch") -> str:
        declared, met = Declared(plan=plan), SimpleNamespace(plan=plan)
        judge = SimpleNamespace(unique_columns=unique, without_table=None, declared=declared, met=met)
        asked: Any = SimpleNamespace(judge=judge, why_alone="")
        return _why_not_asked(replace(variation, run=replace(variation.run, mode=mode)), asked, [held])

    last = Plan(has_function=True, ends_in_function=True)
    assert why(["user"], last) == "" == why([], Plan(has_function=True), "append")
    assert "an operator above the function" in why(["user"], Plan(has_function=True))
    assert "unique=[…]" in why([], last)
    assert "checked only after the order within a batch" in why(["user"], last, held="a restart")


@pytest.mark.usefixtures("unshrunk")
def test_a_processor_that_relies_on_a_batch_s_rows_together_is_found() -> None:
    with pytest.raises(Violated, match=r"(?s)with each row of a batch in a separate call, .* leave this out"):
        invariants(in_one_batch, CLICKS, histories=30, without=but_for(LAW))

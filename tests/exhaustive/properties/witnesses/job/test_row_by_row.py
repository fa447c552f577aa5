"""Functions with state get each row of a batch in a call of its own, with all else as the batch has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from streamproof import BadInput, Input, Violated, invariants
from streamproof.properties.checking.jobs.invariants import _why_not_asked
from streamproof.properties.laws.all import invariants as laws_of_jobs
from streamproof.properties.laws.metamorphic.row_by_row import RowByRow
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.row_by_row import _function
from streamproof.properties.witnesses.job.running import Declared
from streamproof.properties.witnesses.run_options import Mode, RunOptions

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
LAW = "rows one at a time"
OTHERS = [law.of_jobs for law in laws_of_jobs() if law.of_jobs != LAW]
COUNTED = "user string, form string, clicks bigint"
TIMEOUT = GroupStateTimeout.ProcessingTimeTimeout


def rows_of(given: Iterator[Any]) -> int:
    return sum(len(rows) if isinstance(rows, pd.DataFrame) else 1 for rows in given)


def third(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    before = state.get[0] if state.exists else 0
    count = before + rows_of(frames)
    state.update((count,))
    if before < 3 <= count:
        yield pd.DataFrame({"user": [key[0]], "form": ["groups"], "clicks": [3]})


class Third(StatefulProcessor):
    """Emits a key once it has three rows."""

    form = "pandas"

    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "count bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        before = self.before()
        count = before + rows_of(rows)
        self.count.update((count,))
        if before < 3 <= count:
            row = {"user": key[0], "form": self.form, "clicks": 3}
            yield pd.DataFrame([row]) if self.form == "pandas" else Row(**row)

    def before(self) -> int:
        return self.count.get()[0] if self.count.exists() else 0

    def close(self) -> None:
        pass


class ThirdOfRows(Third):
    form = "rows"


class ThirdInOneBatch(ThirdOfRows):
    """Takes only the rows into account that come in the same batch."""

    def before(self) -> int:
        return 0


def in_each_form(clicks: DataFrame) -> DataFrame:
    by_user = clicks.groupBy("user")
    forms = [
        by_user.applyInPandasWithState(third, COUNTED, "n bigint", "append", "NoTimeout"),
        by_user.transformWithStateInPandas(Third(), COUNTED, "append", "None"),
        by_user.transformWithState(
            statefulProcessor=ThirdOfRows(), outputStructType=COUNTED, outputMode="append", timeMode="None"
        ),
    ]
    return reduce(DataFrame.unionByName, forms)


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
        invariants(in_each_form, CLICKS, without=["a flood"])
    with pytest.raises(BadInput, match="no invariant is left"):
        invariants(in_each_form, CLICKS, without=[*OTHERS, LAW])


def test_updated_rows_are_compared_only_where_the_last_of_a_key_is_known() -> None:
    variation = RowByRow().variation(RunOptions(mode="update"), RowByRow.given)

    def why(unique: list[str], plan: Plan, mode: Mode = "update", held: str = "the order within a batch") -> str:
        judge = SimpleNamespace(unique_columns=unique, declared=Declared(plan=plan), met=SimpleNamespace(plan=plan))
        asked: Any = SimpleNamespace(judge=judge, why_alone="")
        return _why_not_asked(replace(variation, run=replace(variation.run, mode=mode)), asked, [held])

    last = Plan(has_function=True, ends_in_function=True)
    assert why(["user"], last) == "" == why([], Plan(has_function=True), "append")
    assert "an operator behind the function" in why(["user"], Plan(has_function=True))
    assert "unique=[…]" in why([], last)
    assert "asked after the order within a batch" in why(["user"], last, held="a restart")


@pytest.mark.weekly("CI asks of a wrong processor, and of right functions among the jobs")
def test_right_functions_of_each_form_pass() -> None:
    report = invariants(in_each_form, CLICKS, histories=30, without=OTHERS)
    assert report.held == {LAW: 30}
    assert f"{OTHERS[0]}: without= leaves it out" in report.not_checked


@pytest.mark.usefixtures("unshrunk")
def test_a_processor_that_relies_on_a_batch_s_rows_together_is_found() -> None:
    with pytest.raises(Violated, match=r"(?s)with each row of a batch in a call of its own, .* leave this out"):
        invariants(in_one_batch, CLICKS, histories=30, without=OTHERS)

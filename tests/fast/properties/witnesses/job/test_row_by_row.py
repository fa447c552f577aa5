"""Functions with state that are called once for each row of a batch, with the state that the call before has left."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import GroupedData
from streamproof.properties.witnesses.job.row_by_row import row_by_row

Given = list[tuple[tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """What Spark's own methods are given."""
    found: Given = []
    for name in ("applyInPandasWithState", "transformWithStateInPandas", "transformWithState"):

        def method(grouped: Any, *arguments: Any, **named: Any) -> str:
            found.append((arguments, named))
            return "declared"

        monkeypatch.setattr(GroupedData, name, method, raising=False)
    return found


def frame(*numbers: int) -> pd.DataFrame:
    return pd.DataFrame({"n": numbers}, index=[7 + number for number in range(len(numbers))])


class State:
    """The state of a key, and its timeout, which Spark forgets at each call."""

    def __init__(self, timed_out: bool = False) -> None:
        self.hasTimedOut, self._timeout_timestamp = timed_out, 0


def counting(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[Any]:
    assert state._timeout_timestamp == 0
    state._timeout_timestamp = 5
    rows = [row for one in frames for row in one.to_dict("records")]
    yield key, [row["n"] for row in rows], [*frames]


@pytest.mark.parametrize("by_name", [True, False])
def test_a_function_is_called_for_each_row_and_once_where_its_timeout_has_come(by_name: bool, given: Given) -> None:
    grouped: Any = GroupedData.__new__(GroupedData)
    with row_by_row():
        how = {"func": counting} if by_name else {}
        assert grouped.applyInPandasWithState(*[counting] * (not by_name), *["a"] * (not by_name), **how) == "declared"
    ((arguments, named),) = given
    function = named["func"] if by_name else arguments[0]
    assert arguments[1:] == ("a",) * (not by_name)
    frames = [frame(1, 2), frame(), frame(3)]
    state = State()
    assert [n for _, n, _ in function("k", iter(frames), state)] == [[1], [2], [3]]
    assert state._timeout_timestamp == 5
    assert [n for _, n, _ in function("k", iter(frames), State(timed_out=True))] == [[1, 2, 3]]


def test_a_row_of_a_frame_has_the_index_of_a_frame_of_its_own(given: Given) -> None:
    grouped: Any = GroupedData.__new__(GroupedData)
    with row_by_row():
        grouped.applyInPandasWithState(lambda key, frames, state: (list(one.index) for one in frames), "schema")
    (((function, _), _),) = given
    assert [*function("k", iter([frame(1, 2)]), State())] == [[0], [0]]


@pytest.mark.parametrize("method", ["transformWithStateInPandas", "transformWithState"])
def test_a_processor_handles_its_rows_one_by_one_and_all_else_as_it_comes(method: str, given: Given) -> None:
    called: list[Any] = []

    class Processor:
        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any, **named: Any) -> Any:
                called.append((name, *arguments[:1], *named))
                return iter(["expired"])

            return call

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Any:
            yield key, [row if isinstance(row, int) else [*row["n"]] for row in rows], timers

    grouped: Any = GroupedData.__new__(GroupedData)
    with row_by_row():
        getattr(grouped, method)(Processor(), "schema")
    (((processor, schema), _),) = given
    rows = iter([frame(1, 2)] if method.endswith("Pandas") else [1, 2])
    wanted = [[[1]], [[2]]] if method.endswith("Pandas") else [[1], [2]]
    assert [*processor.handleInputRows("k", rows, "t")] == [("k", one, "t") for one in wanted]
    assert schema == "schema"
    processor.init("handle")
    assert [*processor.handleExpiredTimer("k", 1, timerInfo=2)] == ["expired"]
    processor.handleInitialState("k", 1)
    processor.close()
    names = ["init", "handleExpiredTimer", "handleInitialState", "close"]
    assert [one[0] for one in called] == names
    assert called[1:3] == [("handleExpiredTimer", "k", "timerInfo"), ("handleInitialState", "k")]


def test_outside_of_the_block_functions_are_given_as_they_are(given: Given) -> None:
    grouped: Any = SimpleNamespace()
    with row_by_row():
        pass
    GroupedData.applyInPandasWithState(grouped, counting, "schema")  # type: ignore[call-arg, arg-type]
    assert given == [((counting, "schema"), {})]

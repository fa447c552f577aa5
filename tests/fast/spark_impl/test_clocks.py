"""Which columns move Spark's clock: a row's key and its event time alone, never its value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from declared_stages import Frame, declared
from pyspark.sql import types as T
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.operator import OPERATORS
from streamproof.reference.definitions.windows import WindowedTable
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.runtime.logic import BEFORE_ALL_TIMES
from streamproof.spark_impl.session_windows import native_session_windows
from streamproof.spark_impl.stream_stream_join import native_stream_stream_join
from streamproof.spark_impl.window_aggregate import native_window_aggregate
from streamproof.spark_impl.windowed_table import _rekeyed, native_windowed_table

TYPES = {"key": T.StringType(), "timestamp": T.LongType(), "value": T.LongType()}


@dataclass
class Watched(Frame):
    """Rows that keep the conditions of filters, and the columns with a clock; all further calls return them.

    Attributes:
        conditions: The conditions before a watermark.
        clocks: The columns with a clock.
        behind: The conditions behind a watermark.
    """

    conditions: list[str] = field(default_factory=list)
    clocks: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    def filter(self, condition: Any) -> Watched:
        (self.behind if self.clocks else self.conditions).append(str(condition))
        return self

    def select(self, *columns: Any) -> Any:
        self.clocks += [shown for column in columns if (shown := str(column)).endswith("clock'>")]
        return super().select(*columns) if len(columns) == 1 else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *more, **named: self


def columns_in(text: str) -> set[str]:
    return {*re.findall(r"\b(?:key|timestamp|value)\b", text)}


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_clock_of_an_operator_follows_the_keys_and_the_times_of_its_rows(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks: list[str] = []
    select = Frame.select

    def watching(frame: Frame, *columns: Any) -> Frame:
        clocks.extend(shown for column in columns if (shown := str(column)).endswith(" AS clock'>"))
        return select(frame, *columns)

    monkeypatch.setattr(Frame, "select", watching)
    for options in registration_of(operator).profiles.values():
        clocks.clear()
        one = declared(operator, options)
        assert len(clocks) == sum(len(stage.sides) for stage in one.stages) * one.timed[0]
        keeps = one.stages[0].logic.keeps_null_keys
        for clock in clocks:
            assert columns_in(clock) == ({"timestamp"} if keeps else {"key", "timestamp"}), clock
            assert clock.startswith("Column<'CASE WHEN " + ("True" if keeps else "not(or(False, isNull(key)))"))


COLUMNS = {"key": "key", "timestamp": "timestamp", "value": "value"}
NATIVE: dict[str, Callable[..., Any]] = {
    "session_windows": lambda rows, _: native_session_windows(rows, gap="5 ms", aggregate="sum", **COLUMNS),
    "window_aggregate": lambda rows, _: native_window_aggregate(rows, size="5 ms", aggregate="sum", **COLUMNS),
    "windowed_table": lambda rows, _: native_windowed_table(table(rows, **COLUMNS), size="5 ms", aggregate="sum"),
    "stream_stream_join": lambda left, right: native_stream_stream_join(
        table(left, **COLUMNS), table(right, **COLUMNS), before="5 ms", after="5 ms"
    ),
}


@pytest.mark.parametrize("operator", NATIVE)
def test_the_watermark_of_an_operator_of_spark_s_follows_the_keys_and_the_times_of_its_rows(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr(T.DataType, "fromDDL", {"int": T.IntegerType()}.__getitem__)
    schema = T.StructType([T.StructField(name, kind) for name, kind in TYPES.items()])
    inputs = [Watched(schema), Watched(schema)]
    NATIVE[operator](*inputs)
    for rows in inputs[: 2 if operator == "stream_stream_join" else 1]:
        (condition,), (clock,) = rows.conditions, rows.clocks
        assert columns_in(condition) == {"key", "timestamp"}
        assert columns_in(clock) == {"timestamp"}
        # A join's is 1 ms later: the watermark begins at 1970, and a record at the watermark is late.
        is_later = "+(unix_millis(timestamp_millis(timestamp)), 1)" in clock
        assert is_later == (operator == "stream_stream_join")
        # Spark moves a filter below the watermark unless it names the clock, and its rows wouldn't move the clock then.
        assert all("clock" in condition for condition in rows.behind if "value" in condition)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_declares_its_watermark_its_end_and_the_order_of_its_rows(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watermarks: list[tuple[Any, ...]] = []
    orders: list[str] = []
    select = Frame.select

    def watching(frame: Frame, *columns: Any) -> Frame:
        orders.extend(shown for column in columns if (shown := str(column)).endswith(" AS order'>"))
        return select(frame, *columns)

    def watermarked(frame: Frame, *given: Any) -> Frame:
        watermarks.append(given)
        return frame

    monkeypatch.setattr(Frame, "select", watching)
    monkeypatch.setattr(Frame, "withWatermark", watermarked)
    options = next(iter(registration_of(operator).profiles.values()))
    one = declared(operator, options)
    inputs = one.definition.inputs
    assert not any(stage.ended for stage in one.stages)
    assert watermarks == [("clock", "0 seconds")] * one.timed[0]
    if len(one.stages) > 1:
        # A row comes before the messages that rows of its place have set off, and one without a time first.
        place = f"struct(order, coalesce(unix_millis(timestamp_millis(timestamp)), {BEFORE_ALL_TIMES})"
        assert orders == [f"Column<'{place}{', -1' * stage}) AS order'>" for stage in range(len(inputs))]
    watermarks.clear()
    declared(operator, options, has_clock=True)  # the query's clock is that of the operator before it
    if len(inputs) > 1:
        assert all(stage.ended for stage in declared(operator, options, still=inputs).stages)
    assert watermarks == []


@pytest.mark.parametrize(
    ("to_stream", "columns"),
    [
        (None, {}),
        (
            "window_in_key",
            {
                "a`b": "CASE WHEN isNotNull(window) THEN concat(`a``b`, @, CAST(unix_millis(window['start']) AS start "
                "AS STRING)) ELSE `a``b` END",
                "window": "CAST(NULL AS STRING)",
            },
        ),
        (
            "window_in_value",
            {
                "value": "CASE WHEN isNotNull(window) THEN struct(value, CASE WHEN isNotNull(window) THEN "
                "struct(unix_millis(window['start']) AS start, unix_millis(window['end']) AS end) END AS window) END",
                "window": "CAST(NULL AS STRING)",
            },
        ),
    ],
)
def test_a_window_goes_into_the_key_or_into_the_value_behind_the_value_itself(
    to_stream: Any, columns: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    found: dict[str, Any] = {}
    frame: Any = Frame(T.StructType().add("window", "string"))
    monkeypatch.setattr(Frame, "withColumns", lambda self, given: found.update(given))
    _rekeyed(WindowedTable(5, to_stream=to_stream), frame, "a`b")
    assert {name: str(column)[len("Column<'") : -len("'>")] for name, column in found.items()} == columns

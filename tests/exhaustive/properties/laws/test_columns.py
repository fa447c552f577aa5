"""The law *columns*: what it expects, that it can be asked again alone, and mutants of how columns are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from streamproof.properties.checking import confirm
from streamproof.properties.checking.check import Check, check_operators
from streamproof.properties.checking.recheck import recheck
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.samples import columns_sample
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.generators.layouts import LAYOUTS, Layout
from streamproof.properties.laws.all import ON_SPARK
from streamproof.properties.laws.base import OWN, Verdict
from streamproof.properties.laws.on_spark.columns import (
    layouts_of,
)
from streamproof.properties.registration.registration import registration_of
from streamproof.spark_impl.runtime import inputs, keyed

TEXTS, BIGINT, BATCH = LAYOUTS


def test_a_join_emits_what_the_reference_emits_in_every_layout(spark: SparkSession, tmp_path: Path) -> None:
    report = checked("stream_stream_join", tmp_path, *LAYOUTS)
    assert report.result("columns").verdict is Verdict.CONFORMS


def checked(operator: str, folder: Path, *layouts: Layout) -> Report:
    """Check an operator by its samples in some layouts alone."""
    registration = registration_of(operator)
    samples = [
        columns_sample(registration, asked, 10, 0) for asked in layouts_of(registration) if asked.layout in layouts
    ]
    report = Report(operator, [], 0)
    Check(registration, report, ON_SPARK, "spark", FolderStore(folder), lambda step: None, OWN).run(samples)
    return report


def rounds_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    right = inputs.timestamp_column

    def rounded(frame: Any, timestamp: Any) -> Column:
        return F.timestamp_millis(F.round(F.unix_micros(right(frame, timestamp)) / 1000).cast("bigint"))

    monkeypatch.setattr(inputs, "timestamp_column", rounded)


def joins_key_columns_by_a_separator(monkeypatch: pytest.MonkeyPatch) -> None:
    right = inputs.key_columns

    def confused(frame: Any, key: Any) -> list[tuple[Column, T.StructField]]:
        found = right(frame, key)
        if [type(field.dataType) for _, field in found] != [T.StringType, T.StringType]:
            return found
        (first, one), (second, two) = found
        together = F.when(first.isNotNull() & second.isNotNull(), F.concat_ws("|", first, second))
        return [(together, one), (F.when(second.isNotNull(), F.lit("")), two)]

    monkeypatch.setattr(inputs, "key_columns", confused)


def takes_a_null_in_the_second_key_column(monkeypatch: pytest.MonkeyPatch) -> None:
    class Taking(keyed.KeyedProcessor):
        def held(self, *args: Any) -> Any:
            found = super().held(*args)
            found.key = found.key if found.key[0] is None else ("",)
            return found

    monkeypatch.setitem(keyed.staged.__kwdefaults__, "processor", Taking)


def reads_times_without_zone_as_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    right = inputs.timestamp_column

    def as_utc(frame: Any, timestamp: Any) -> Column:
        column = right(frame, timestamp)
        is_ntz = isinstance(frame.select(timestamp).schema[0].dataType, T.TimestampNTZType)
        return F.from_utc_timestamp(column, F.current_timezone()) if is_ntz else column

    monkeypatch.setattr(inputs, "timestamp_column", as_utc)


def reports_dropped_rows_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reporting(keyed.KeyedProcessor):
        def emitted(self, *args: Any) -> Any:
            self.stage = replace(self.stage, report_dropped=True)
            return super().emitted(*args)

    monkeypatch.setitem(keyed.staged.__kwdefaults__, "processor", Reporting)


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, Layout]] = [
    (joins_key_columns_by_a_separator, "table_table_join", TEXTS),
    (takes_a_null_in_the_second_key_column, "range_aggregate", TEXTS),
    (reads_times_without_zone_as_utc, "range_aggregate", BATCH),
    (reports_dropped_rows_unasked, "session_windows", BIGINT),
]


@pytest.mark.parametrize(("mutate", "operator", "layout"), MUTANTS, ids=[mutant[0].__name__ for mutant in MUTANTS])
@pytest.mark.in_ci("joins_key_columns_by_a_separator", "reads_times_without_zone_as_utc")
def test_a_wrong_reading_of_columns_is_killed_and_confirmed_alone(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
    operator: str,
    layout: Layout,
) -> None:
    mutate(monkeypatch)
    monkeypatch.setattr(confirm, "shrink", lambda first, *_: first)  # it is tested elsewhere, and takes long
    report = checked(operator, tmp_path, layout)
    assert report.result("columns").verdict is Verdict.VIOLATED
    ((found, _),) = report.found
    assert (found.law, found.confirmed) == ("columns", True)


@pytest.mark.weekly("half a minute: CI asks the law itself of two wrong readings")
def test_the_gate_itself_finds_rounded_microseconds_by_this_law_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds_microseconds(monkeypatch)
    report = check_operators(["table_table_join"], FolderStore(tmp_path), 12)["table_table_join"]
    violated = Counter(result.law.name for result in report.results if result.verdict is Verdict.VIOLATED)
    assert violated == {"columns": 1}
    ((found, _),) = report.found
    assert found.confirmed
    assert len(found.history.records) <= 2
    assert recheck("columns", found.history).differences

"""The law *columns*: what it expects, that it can be asked again alone, and mutants of how columns are read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from streamproof.properties.generators.layouts import LAYOUTS, Layout
from streamproof.properties.laws.all import ON_SPARK, law_named
from streamproof.properties.laws.base import OWN, CannotRecheck, LawResult, Verdict
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.on_spark.columns import expected, layouts_of, prepared
from streamproof.properties.laws.runs import TypedRun
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.report.counterexamples import FolderStore
from streamproof.properties.runner import confirm
from streamproof.properties.runner.check import Check, check
from streamproof.properties.runner.recheck import recheck
from streamproof.properties.runner.report import Report
from streamproof.properties.runner.samples import columns_sample
from streamproof.properties.witnesses.spark.witness import JobWitness
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.records import Change, Dropped
from streamproof.spark_impl.runtime import keyed

COLUMNS = law_named("columns")
TEXTS, BIGINT, BATCH = LAYOUTS
OUT_OF_ORDER = """{"operator": "range_aggregate", "options": {"preceding_ms": 10}, "clock": "batch"}
{"input": "events", "key": "a", "value": 1, "timestamp": 50}
{"input": "events", "key": "a", "value": 1, "timestamp": 45}
{"input": "events", "key": "a", "value": 1, "timestamp": 50}
{"input": "events", "key": null, "value": 1, "timestamp": 51}
{"cut": true}
{"input": "events", "key": "a", "value": 1, "timestamp": 30}
"""


def history(operator: str = "range_aggregate", **options: Any) -> History:
    header, _, lines = OUT_OF_ORDER.partition("\n")
    named = json.loads(header) | {"operator": operator, "options": options or {"preceding_ms": 10}}
    return parse_history(f"{json.dumps(named)}\n{lines}", "h")


@pytest.mark.parametrize("operator", registered())
def test_an_operator_is_asked_in_every_layout_by_a_profile_of_its_own(operator: str) -> None:
    asked = layouts_of(registration_of(operator))
    assert [one.layout for one in asked] == list(LAYOUTS)
    assert len({repr(sorted(one.options.items())) for one in asked}) == len(LAYOUTS)


@pytest.mark.parametrize("operator", registered())
def test_ten_histories_a_layout_meet_the_law_s_goals(operator: str) -> None:
    registration = registration_of(operator)
    for asked in layouts_of(registration):
        sample = columns_sample(registration, asked, 10, 0)
        answers = [replace(expected(asked.layout, one), repeated=True) for one in sample.histories]
        result = LawResult(COLUMNS, goals=tuple(COLUMNS.goals(sample)))
        assert list(COLUMNS.judge(TypedRun(sample, answers), result)) == []  # type: ignore[arg-type]
        assert (result.missing, result.judged) == ([], 10)


def test_without_an_order_a_batch_counts_as_in_order_of_time_and_two_of_one_time_never_come() -> None:
    one = prepared(BIGINT, history())
    assert [record.timestamp for record in one.records] == [50, 45, 51, 30]
    emitted = expected(BIGINT, one).outcome.entries
    assert [(entry.batch, entry.output.value, entry.output.timestamp) for entry in emitted] == [  # type: ignore[union-attr]
        (0, 1, 45),
        (0, 2, 50),
        (1, 1, 30),
    ]  # fmt: skip


def test_with_an_order_records_stay_in_it_and_dropped_ones_are_reported() -> None:
    emitted = expected(TEXTS, prepared(TEXTS, history())).outcome.entries
    assert [entry.output.timestamp if isinstance(entry.output, Change) else entry.output for entry in emitted] == [
        *(50, 45, 50),
        Dropped(None, "null key"),
        30,
    ]


def test_a_batch_frame_is_one_batch_after_which_everything_closes() -> None:
    sessions = history("session_windows", gap_ms=10, emit="close")
    emitted = expected(BATCH, sessions).outcome.entries
    assert [(entry.batch, entry.output.window) for entry in emitted if isinstance(entry.output, Change)] == [
        (0, (30, 30)),
        (0, (45, 50)),
    ]


def test_before_1970_a_stream_has_the_clock_of_1970_and_a_window_by_time_takes_nothing() -> None:
    def dropped(operator: str, **options: Any) -> int:
        one = history(operator, **options)
        layout = replace(BIGINT, reports_dropped=True)
        return sum(entry.output == Dropped("a", "late") for entry in expected(layout, one).outcome.entries)

    # Of the records at 50, 45 and 30 the last is more than the gap before 40, where 1970 begins.
    assert dropped("session_windows", gap_ms=9) == 1
    # It is in no open window either; with windows of 60 ms the history begins 60 ms before 1970.
    assert dropped("window_aggregate", size=20) == 1
    assert dropped("window_aggregate", size=60) == 4
    assert dropped("range_aggregate", preceding_ms=10) == 0


def test_the_law_is_not_asked_of_jobs_nor_of_options_that_no_layout_has() -> None:
    unknown = history(preceding_ms=77)
    with pytest.raises(CannotRecheck, match="isn't known"):
        COLUMNS.recheck([Case(unknown)])
    with pytest.raises(CannotRecheck, match="a job"):
        COLUMNS.recheck([Case(unknown)], JobWitness(lambda frame: frame))


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


# Mutants of how columns are read. Local classes, for Spark's workers can't import a test's module.


def rounds_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    right = keyed.timestamp_column

    def rounded(frame: Any, timestamp: Any) -> Column:
        return F.timestamp_millis(F.round(F.unix_micros(right(frame, timestamp)) / 1000).cast("bigint"))

    monkeypatch.setattr(keyed, "timestamp_column", rounded)


def joins_key_columns_by_a_separator(monkeypatch: pytest.MonkeyPatch) -> None:
    right = keyed.key_columns

    def confused(frame: Any, key: Any) -> list[tuple[Column, T.StructField]]:
        found = right(frame, key)
        if [type(field.dataType) for _, field in found] != [T.StringType, T.StringType]:
            return found
        (first, one), (second, two) = found
        together = F.when(first.isNotNull() & second.isNotNull(), F.concat_ws("|", first, second))
        return [(together, one), (F.when(second.isNotNull(), F.lit("")), two)]

    monkeypatch.setattr(keyed, "key_columns", confused)


def takes_a_null_in_the_second_key_column(monkeypatch: pytest.MonkeyPatch) -> None:
    class Taking(keyed.KeyedProcessor):
        def taken(self, logic: Any, key: Any, state: Any, row: Any, clock: int) -> Any:
            return super().taken(logic, key if key[0] is None else ("",), state, row, clock)

    monkeypatch.setattr(keyed, "KeyedProcessor", Taking)


def reads_times_without_zone_as_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    right = keyed.timestamp_column

    def as_utc(frame: Any, timestamp: Any) -> Column:
        column = right(frame, timestamp)
        is_ntz = isinstance(frame.select(timestamp).schema[0].dataType, T.TimestampNTZType)
        return F.from_utc_timestamp(column, F.current_timezone()) if is_ntz else column

    monkeypatch.setattr(keyed, "timestamp_column", as_utc)


def reports_dropped_rows_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reporting(keyed.KeyedProcessor):
        def named(self, *args: Any) -> Any:
            self.report_dropped = True
            return super().named(*args)

    monkeypatch.setattr(keyed, "KeyedProcessor", Reporting)


MUTANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, Layout]] = [
    (joins_key_columns_by_a_separator, "table_table_join", TEXTS),
    (takes_a_null_in_the_second_key_column, "range_aggregate", TEXTS),
    (reads_times_without_zone_as_utc, "range_aggregate", BATCH),
    (reports_dropped_rows_unasked, "session_windows", BIGINT),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("mutate", "operator", "layout"), MUTANTS, ids=[mutant[0].__name__ for mutant in MUTANTS])
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


@pytest.mark.exhaustive
def test_the_gate_itself_finds_rounded_microseconds_by_this_law_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds_microseconds(monkeypatch)
    report = check("table_table_join", FolderStore(tmp_path), 12)
    violated = Counter(result.law.name for result in report.results if result.verdict is Verdict.VIOLATED)
    assert violated == {"columns": 1}
    ((found, _),) = report.found
    assert found.confirmed
    assert len(found.history.records) <= 2
    assert recheck("columns", found.history).differences

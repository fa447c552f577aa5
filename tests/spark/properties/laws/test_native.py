"""Spark's own operators beside the stateful ones: their law, the bugs that it catches, and what they can't mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.checking.check import Check
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.samples import native_sample
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.generators.cohorts import Cohort, one_cohort, pack
from streamproof.properties.laws.all import ON_SPARK
from streamproof.properties.laws.base import LawResult, Verdict
from streamproof.properties.laws.on_spark.native import NativeLaw, compared
from streamproof.properties.laws.runs import Kind
from streamproof.properties.outcomes.outcomes import Outcome
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark.decode import entries_of
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.properties.witnesses.spark.witness import SPARK, NativeSparkWitness
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import CUT, ClockAdvance, History
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Record
from streamproof.spark_impl.inputs import stream, table
from streamproof.spark_impl.stream_stream_join import native_stream_stream_join, stream_stream_join
from streamproof.spark_impl.stream_table_join import native_stream_table_join, stream_table_join
from streamproof.spark_impl.window_aggregate import native_window_aggregate, window_aggregate
from streamproof.spark_impl.windowed_table import native_windowed_table, windowed_table

HISTORIES = 120
NATIVE = NativeSparkWitness()
WITH_NATIVE = [name for name, registration in registered().items() if registration.native]


class Asked:
    """The law asked of every operator once, with what Spark answered."""

    def __init__(self, folder: Path) -> None:
        self.results: dict[str, LawResult] = {}
        self.runs: dict[str, list[tuple[Cohort, list[Outcome]]]] = {}
        for operator in WITH_NATIVE:
            registration, report = registration_of(operator), Report(operator, [], 0)
            profiles = registration.native.profiles
            samples = [native_sample(registration, name, HISTORIES // len(profiles), 0) for name in profiles]
            assert {sample.kind for sample in samples} == {Kind.NATIVE}
            native = [law for law in ON_SPARK if isinstance(law, NativeLaw)]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(NativeSparkWitness, "run", self.noting(operator))
                Check(registration, report, native, "spark", FolderStore(folder), lambda _: None, SPARK).run(samples)
            self.results[operator] = report.result("native")

    def noting(self, operator: str) -> Callable[..., Any]:
        own = NativeSparkWitness.run

        def run(witness: NativeSparkWitness, cohort: Cohort, options: RunOptions = PLAIN) -> Any:
            answered = own(witness, cohort, options)
            self.runs.setdefault(operator, []).append((cohort, answered[0]))
            return answered

        return run


@pytest.fixture(scope="module")
def asked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(tmp_path_factory.mktemp("counterexamples"))


@pytest.mark.parametrize("operator", WITH_NATIVE)
def test_spark_s_own_operator_keeps_the_law_and_every_goal_is_met(asked: Asked, operator: str) -> None:
    result = asked.results[operator]
    assert (result.judged, result.missing, result.verdict) == (HISTORIES, [], Verdict.CONFORMS)


BUGS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("session_windows", "native", "a gap 1 ms short", {"gap_ms": 11}),
    ("stream_stream_join", "left", "bounds 1 ms short before", {"before_ms": 5}),
    ("stream_stream_join", "left", "bounds 1 ms short after", {"after_ms": 7}),
    ("stream_stream_join", "left", "watermark delayed 1 ms too long", {"grace_ms": 4}),
    ("stream_stream_join", "left", "left instead of inner", {"join": "inner"}),
    ("stream_stream_join", "outer", "outer instead of left", {"join": "left"}),
    ("stream_table_join", "left", "left instead of inner", {"join": "inner"}),
    ("window_aggregate", "hopping", "windows 1 ms short", {"size": 11}),
    ("window_aggregate", "hopping", "an average instead of a maximum", {"aggregate": "max"}),
    ("windowed_table", "tumbling", "watermark delayed 1 ms too long", {"grace_ms": 2}),
    ("windowed_table", "tumbling", "watermark delayed 1 ms too short", {"grace_ms": 4}),
]


@pytest.mark.parametrize(("operator", "profile", "bug", "meant"), BUGS, ids=[f"{bug[1]}: {bug[2]}" for bug in BUGS])
def test_the_law_catches_a_bug(asked: Asked, operator: str, profile: str, bug: str, meant: dict[str, Any]) -> None:
    # What Spark ran is the bug of what was meant.
    cohort, outcomes = asked.runs[operator][[*registration_of(operator).native.profiles].index(profile)]
    assert cohort.options == registration_of(operator).native.profiles[profile].options
    histories = [replace(history, options={**history.options, **meant}) for history in cohort.histories]
    assert any(compared(*pair).differences for pair in zip(histories, outcomes, strict=True))


@pytest.mark.parametrize("operator", WITH_NATIVE)
def test_the_law_misses_no_change_that_is_left_out_or_emitted_twice(asked: Asked, operator: str) -> None:
    for cohort, outcomes in asked.runs[operator]:
        emitted = [pair for pair in zip(cohort.histories, outcomes, strict=True) if pair[1].entries]
        for history, outcome in emitted:
            assert compared(history, replace(outcome, entries=outcome.entries[:-1])).differences
            twice = replace(outcome, entries=[*outcome.entries, outcome.entries[-1]])
            assert compared(history, twice).differences


def test_a_history_for_the_join_with_a_still_table_has_the_table_first() -> None:
    for history in native_sample(registration_of("stream_table_join"), "left", 20, 1).histories:
        inputs = [record.input for record in history.records]
        assert inputs == sorted(inputs, reverse=True)
        assert NATIVE.refuses(history) is None


# What Spark's own operators can't mean, each with its smallest history.

JOIN = {"before_ms": 0, "after_ms": 6, "join": "left", "emit": "close"}
WITHIN_REACH = History(
    "stream_stream_join",
    JOIN,
    (Record("right", "a", "r", 10), ClockAdvance(10), CUT, Record("left", "a", "l", 10), ClockAdvance(100)),
    "batch",
    "within reach",
)
QUIET = History(
    "stream_stream_join", JOIN, (Record("left", "a", "l", 10), CUT, ClockAdvance(100)), "batch", "a quiet input"
)


def run_otherwise(spark: SparkSession, histories: Sequence[History], stepwise: bool) -> list[tuple[Any, ...]]:
    cohort = one_cohort(histories)
    definition = operator_named(cohort.operator).declare(cohort.options)
    tables = pack(cohort, registration_of(cohort.operator).spark.fields(definition, []))
    build = NATIVE.builder(cohort.operator, cohort.options)
    entries = entries_of(run_stream(spark, tables, build, stepwise=stepwise), lambda value: value)
    return [
        (entry.output.key, entry.output.value["left"], entry.output.value["right"])
        for entry in entries
        if isinstance(entry.output, Change)
    ]


def test_a_record_that_is_late_within_its_reach_is_dropped_by_spark_s_own_join(spark: SparkSession) -> None:
    late, quiet = NATIVE.evaluate([WITHIN_REACH, QUIET])
    reference = [play(history).entries for history in (WITHIN_REACH, QUIET)]
    assert [entry.output for entry in reference[0]] == [Change("a", None, ["l", "r"], 10)]
    assert late.entries == []
    assert [entry.output for entry in quiet.entries] == [entry.output for entry in reference[1]]
    assert [record.input for record in registration_of("stream_stream_join").native.accepted(WITHIN_REACH).records] == [
        "right"
    ]


def test_under_the_default_watermark_policy_a_quiet_input_keeps_rows_from_closing(spark: SparkSession) -> None:
    assert run_otherwise(spark, [QUIET], stepwise=True) == []


def test_under_available_now_spark_s_own_join_takes_a_record_one_batch_too_late(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.conf.set("spark.sql.streaming.multipleWatermarkPolicy", "max")
    try:
        emitted = run_otherwise(spark, [WITHIN_REACH], stepwise=False)
    finally:
        spark.conf.unset("spark.sql.streaming.multipleWatermarkPolicy")
    assert emitted == [("00000|a", '"l"', '"r"')]


def test_spark_s_session_window_leaves_out_a_row_that_samza_s_session_takes(spark: SparkSession) -> None:
    lines = (Record("events", "a", 1, 15), ClockAdvance(20), CUT, Record("events", "a", 1, 13), ClockAdvance(100))
    samza = History("window_aggregate", {"type": "session", "size": 6}, lines, "batch")
    sparks = History("session_windows", {"gap_ms": 6, "emit": "close", "late": "own"}, lines, "batch")
    assert [entry.output for entry in play(samza).entries] == [Change("a", (13, 15), 2, 15)]
    assert [entry.output for entry in NATIVE.evaluate([sparks])[0].entries] == [Change("a", (15, 15), 1, 15)]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("stream_stream_join", {**JOIN, "emit": "arrival"}, "emit is 'arrival', but Spark's own join emits a row without"),
    ("stream_stream_join", {**JOIN, "join": "outer", "emit": "eager"}, "emit is 'eager', but Spark's own join emits a"),
    (
        "stream_stream_join",
        {**JOIN, "null_key": "keep"},
        "null_key is 'keep', but Spark's own join emits a row without",
    ),
    (
        "window_aggregate",
        {"type": "session", "size": 6},
        "type is 'session', but Spark's own session_window tests only the row",
    ),
    ("window_aggregate", {"unit": "tuple", "size": 6}, "unit is 'tuple', but Spark's own windows are bounded by time"),
    (
        "window_aggregate",
        {"size": 6, "storage": "full"},
        "storage is 'full', but Spark's own window stores an aggregate",
    ),
    (
        "window_aggregate",
        {"size": 6, "early": {"every_ms": 1}},
        "early is given, but Spark's own window is emitted once",
    ),
    (
        "window_aggregate",
        {"size": 6, "late": "update", "retention_ms": 1},
        "late is 'update', but Spark's own window is",
    ),
    (
        "windowed_table",
        {"size_ms": 6},
        "emit is 'update', but Spark's own windowed aggregate emits at best a batch's last change",
    ),
    (
        "windowed_table",
        {"size_ms": 6, "with": "table"},
        "with is 'table', but Spark's own windowed aggregate stores no",
    ),
    ("session_windows", {"gap_ms": 6}, "spark-native doesn't support emit='update'"),
    ("table_table_join", {}, "spark-native has no table_table_join: Spark has no operator with the same meaning"),
]


@pytest.mark.parametrize(("operator", "options", "message"), REFUSED, ids=[case[2][:30] for case in REFUSED])
def test_a_definition_that_spark_s_own_operator_can_t_serve_is_refused_with_the_reason(
    operator: str, options: dict[str, Any], message: str
) -> None:
    refusal = NATIVE.refuses(History(operator, options, ()))
    assert refusal is not None
    assert refusal.startswith(message)
    assert "use" in refusal
    with pytest.raises(BadInput) as refused:
        NATIVE.builder(operator, options)
    assert str(refused.value) == refusal


def test_an_inner_join_of_streams_may_keep_null_keys_and_say_when_unmatched_rows_are_emitted() -> None:
    options = {"before_ms": 0, "after_ms": 6, "emit": "eager", "null_key": "keep"}
    assert NATIVE.refuses(History("stream_stream_join", options, ())) is None


def test_a_history_whose_table_changes_under_the_stream_is_refused() -> None:
    lines = (Record("left", "a", 1, 0), Record("right", "b", 1, 0), Record("right", "a", 1, 0))
    history = History("stream_table_join", {}, lines, "batch", "h7")
    with pytest.raises(BadInput, match="h7: the row of 'a' changes after a record has looked it up, but Spark's own"):
        NATIVE.evaluate([history])


# What users of DataFrames meet.

COLUMNS: dict[str, Any] = {"key": "k", "timestamp": "t", "value": "v"}
BOUNDS: dict[str, Any] = {"before": "5 ms", "after": "5 ms"}


@pytest.fixture(scope="module")
def sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    schema = "k string, t bigint, o bigint, v string, n int"
    left = [
        ("a", 1, 2, "l0", 1),
        ("b", 9, 3, "l3", 2),
        (None, 9, 4, "l4", 3),
        ("a", 2, 5, None, 4),
        ("a", 14, 6, "l6", 5),
    ]
    right = [
        ("a", 9, 0, "r0", 1),
        ("a", 4, 1, "r1", 1),
        ("b", 2, 1, "r2", 1),
        ("c", 2, 2, "r3", 1),
        ("b", 1, 7, None, 1),
    ]
    return spark.createDataFrame(left, schema), spark.createDataFrame(right, schema)


def emitted(result: DataFrame) -> list[Any]:
    rows = result.select("k", "window", "value", "timestamp").collect()
    return sorted(map(repr, rows))


@pytest.mark.parametrize("join", ["inner", "left", "outer"])
def test_a_join_of_batch_frames_is_that_of_the_stateful_operator(sides: tuple[DataFrame, DataFrame], join: Any) -> None:
    left, right = (stream(side, **COLUMNS, order="o") for side in sides)
    native = native_stream_stream_join(left, right, **BOUNDS, join=join)
    stateful = stream_stream_join(left, right, **BOUNDS, join=join, emit=None if join == "inner" else "close")
    assert emitted(native) == emitted(stateful) != []
    assert native.schema.simpleString() == stateful.select(native.columns).schema.simpleString()


def test_a_still_table_is_folded_from_its_changes_by_their_order(sides: tuple[DataFrame, DataFrame]) -> None:
    left, right = (table(side, **COLUMNS, order="o") for side in sides)
    native = native_stream_table_join(left, right, null_key="keep")
    rows = {row.cause: (row.k, *row.value) for row in native.collect()}
    assert rows == {2: ("a", "l0", "r1"), 3: ("b", "l3", None), 4: (None, "l4", None), 6: ("a", "l6", "r1")}
    stateful = stream_table_join(left, right)
    assert native.schema.simpleString() == stateful.select(native.columns).schema.simpleString()


def test_a_table_that_changes_under_the_stream_is_answered_otherwise(sides: tuple[DataFrame, DataFrame]) -> None:
    record = sides[0].filter("o = 3").withColumn("o", F.lit(0).cast("bigint"))
    left, right = (table(frame, **COLUMNS, order="o") for frame in (record, sides[1].filter("v = 'r2'")))
    (stateful,) = stream_table_join(left, right).collect()
    (native,) = native_stream_table_join(left, right).collect()
    assert (tuple(stateful.value), tuple(native.value)) == (("l3", None), ("l3", "r2"))


def test_windows_of_a_batch_frame_are_those_of_the_stateful_operators(sides: tuple[DataFrame, DataFrame]) -> None:
    of_events: dict[str, Any] = {"key": "k", "timestamp": "t", "size": "10 ms", "step": "4 ms", "order": "o"}
    lists = {**of_events, "value": "n", "aggregate": "list"}
    native, stateful = native_window_aggregate(sides[0], **lists), window_aggregate(sides[0], **lists)
    assert emitted(native) == emitted(stateful) != []
    assert native.schema.simpleString() == stateful.select(native.columns).schema.simpleString()
    events = stream(sides[0], key="k", timestamp="t", order="o")
    in_key: dict[str, Any] = {"size": "10 ms", "step": "4 ms", "emit": "close", "to_stream": "window_in_key"}
    assert emitted(native_windowed_table(events, **in_key)) == emitted(windowed_table(events, **in_key)) != []


def test_a_wrong_declaration_is_refused_where_it_is_made(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame]
) -> None:
    rate = spark.readStream.format("rate").load().selectExpr("'a' k", "timestamp t", "value o", "'x' v")
    left, right = (table(side, **COLUMNS) for side in sides)
    other_key = right._replace(key="n")
    refused: list[tuple[Callable[[], DataFrame], str]] = [
        (lambda: native_stream_stream_join(left, right), "before_ms is missing: an unbounded"),
        (lambda: native_stream_stream_join(left, right, **BOUNDS, join="left", emit="eager"), "emit is 'eager'"),
        (lambda: native_stream_stream_join(left, other_key, **BOUNDS), "key: string on the left and"),
        (lambda: native_stream_table_join(left, table(rate, **COLUMNS)), "right: it is a stream, but Spark's own join"),
        (lambda: native_stream_table_join(left, other_key), "key: string on the left and int on the"),
        (lambda: native_window_aggregate(sides[0], **COLUMNS, size="6 ms", type="session"), "type is 'session'"),
        (lambda: native_windowed_table(left, size="6 ms", emit="update"), "emit is 'update'"),
        (lambda: native_windowed_table(left, size="6 ms", aggregate="mode"), "unknown aggregate 'mode'"),
    ]
    for declare, message in refused:
        with pytest.raises(BadInput) as refusal:
            declare()
        assert str(refusal.value).startswith(message)

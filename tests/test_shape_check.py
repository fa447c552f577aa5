from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.check import check
from streamproof.properties.cohorts import clock_schedule
from streamproof.properties.draws import Shape, draw_histories
from streamproof.properties.findings import sentence
from streamproof.properties.laws import Verdict
from streamproof.properties.mutants.table_table_join import MUTANTS
from streamproof.properties.outcomes import Difference
from streamproof.properties.shape_check import forgets_under, laws_of, long_after
from streamproof.properties.shapes import SCHEDULE, SHAPES
from streamproof.properties.spark_witness import ON_SPARK, Plan
from streamproof.properties.variants import PATIENT
from streamproof.reference.operators import operator_named

pytestmark = pytest.mark.exhaustive

OTHERS = [operator for operator in ON_SPARK if operator != "session_windows"]


@pytest.mark.parametrize("operator", OTHERS)
def test_the_laws_of_an_operator_need_every_situation_of_every_definition(operator: str) -> None:
    changelog = next(law for law in laws_of(operator) if law.name == "changelog")
    assert {need.rpartition(" (")[2].rstrip(")") for need in changelog.needs} >= {*SHAPES[operator]} - {None}


def test_the_state_is_judged_where_the_definition_bounds_it() -> None:
    assert "state" in {law.name for law in laws_of("stream_stream_join")}
    assert "state" not in {law.name for law in laws_of("table_table_join")}
    assert not forgets_under("table_table_join", operator_named("table_table_join").declare({}))


def test_a_window_of_two_joined_windowed_tables_is_forgotten_too() -> None:
    joined = operator_named("windowed_table").declare(SHAPES["windowed_table"]["outer, shifted"])
    with_table = operator_named("windowed_table").declare(SHAPES["windowed_table"]["with table"])
    assert (forgets_under("windowed_table", joined), forgets_under("windowed_table", with_table)) == (True, False)


@pytest.mark.parametrize("operator", OTHERS)
def test_every_definition_is_asked_for_keys_and_those_without_lateness_for_the_other_variants(operator: str) -> None:
    laws = {law.name: law.needs for law in laws_of(operator)}
    assert laws["keys"] == tuple(f"changed ({shape})" for shape in SHAPES[operator])
    assert laws["duckdb"] == laws["changelog"]
    patient = {f"changed ({shape})" for shape in PATIENT.get(operator, SHAPES[operator])}
    assert min(len(laws["order"]), len(laws["cuts"]), len(laws["repeats"])) >= len(patient)


def test_long_after_a_history_the_clock_has_passed_everything() -> None:
    options = SHAPES["stream_stream_join"]["inner"]
    definition = operator_named("stream_stream_join").declare(options)
    (history,) = draw_histories(Shape(options, SCHEDULE, operator="stream_stream_join"), 1, seed=1)
    assert clock_schedule(long_after(history, definition))[-1] > SCHEDULE[-1] + 400


def test_a_finding_names_what_spark_was_held_to_where_that_is_not_the_reference() -> None:
    told = sentence("it holds", "Spark", Difference("h", "a", None, None, None), "DuckDB")
    assert told == "violated: it holds; but for key a at the end DuckDB tells nothing, and Spark nothing."


def test_the_gate_says_that_a_sound_operator_conforms(spark: SparkSession, tmp_path: Path) -> None:
    report = check("table_table_join", 90, 0, tmp_path)
    assert {result.law.name for result in report.results} >= {
        *("changelog", "table at every cut", "duckdb", "packing", "restart", "replay"),
        *("order", "cuts", "repeats", "keys"),
    }
    assert {result.verdict for result in report.results} == {Verdict.CONFORMS}


def test_the_gate_finds_a_seeded_bug_and_shrinks_it(spark: SparkSession, tmp_path: Path) -> None:
    plan = Plan(logic=MUTANTS["deletion_silent"].logic)
    report = check("table_table_join", 12, 0, tmp_path, plan=plan)
    assert report.verdict is Verdict.VIOLATED
    (finding, _) = report.found[0]
    assert (finding.law, len(finding.history.records)) == ("changelog", 2)

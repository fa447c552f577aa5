"""Pasted tests on real Spark, law by law: each fails on its mutant's counterexample, and passes without the mutant."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.checking import mutation
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.text import test_to_paste as to_paste
from streamproof.properties.generators.cohorts import Cohort
from streamproof.properties.laws.on_spark import native as native_law
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.mutants import Mutant
from streamproof.properties.registration.registration import Registration, registration_of
from streamproof.properties.testing.recheck import assert_holds
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark.witness import NativeSparkWitness
from streamproof.reference.core.history import CUT, ClockAdvance, History, Line
from streamproof.reference.core.records import Record
from streamproof.spark_impl.range_aggregate import Held, RangeLogic

LIST = {"gap_ms": 10, "grace_ms": 5, "aggregate": "list"}
LONG_GRACE = {"gap_ms": 10, "grace_ms": 1000, "aggregate": "list"}
CLOSE = {"gap_ms": 10, "aggregate": "count", "emit": "close", "late": "own"}


def history(operator: str, options: dict[str, Any], *batches: list[Line]) -> History:
    """A history under the batch clock; a whole number is a record of session windows' key a at that timestamp."""
    lines: list[Line] = []
    for number, batch in enumerate(batches):
        lines += [CUT] * bool(number) + batch
    return History(operator, options, tuple(lines), "batch")


def events(*timestamps: int, until: int) -> list[Line]:
    return [*(Record("events", "a", number, at) for number, at in enumerate(timestamps)), ClockAdvance(until)]


def rows(side: str, keys: str, value: Any = 1) -> list[Line]:
    return [Record(side, key, value, 5) for key in keys]


THREE = history("session_windows", LIST, events(0, 15, 8, until=30))
FORGOTTEN = history("session_windows", LIST, events(0, until=0), events(until=5000))
IN_ORDER = history("session_windows", LONG_GRACE, events(0, 0, 5, until=90), events(until=90))
OUT_OF_ORDER = replace(IN_ORDER, lines=(IN_ORDER.lines[2], *IN_ORDER.lines[:2], *IN_ORDER.lines[3:]))
DELETED = history(
    "table_table_join", {"join": "outer"}, [*rows("left", "a"), *rows("left", "a", None), ClockAdvance(30)]
)
CLOSED = history("session_windows", CLOSE, events(0, 11, until=30), events(until=100))
RESCUED = history("session_windows", CLOSE, [ClockAdvance(40)], events(29, 30, until=40), [ClockAdvance(100)])
ROW_LEFT = history(
    "range_aggregate",
    {"preceding_ms": 20, "aggregate": "list"},
    [*events(10, until=30)],
    [ClockAdvance(500)],
    [ClockAdvance(1000)],
)

CASES: list[tuple[str, str, History, History | None]] = [
    ("changelog", "merges_one", THREE, None),
    ("state", "state_never_expires", FORGOTTEN, None),
    ("order", "forward_only", OUT_OF_ORDER, IN_ORDER),
    ("retention", "rows_kept_for_ever", ROW_LEFT, None),
    ("columns", "deletion_silent", DELETED, None),
]


def run_pasted(law: str, mutant: str | None, found: History, original: History | None) -> None:
    """Run the test to paste of a counterexample."""
    outcome = Outcome("history", Grain.END, final={})
    counterexample = Counterexample(
        law=law,
        sentence="",
        history=found,
        left=("reference", outcome),
        right=("Spark", outcome),
        differences=[],
        seed=0,
        mutant=mutant,
        original=original,
    )
    code, names = to_paste(counterexample), dict[str, Any]()
    assert code is not None
    exec(compile(code, "test_pasted.py", "exec"), names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test()


@pytest.fixture
def more_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants of laws that no mutant of an operator breaks; local classes, for workers can't import a test's module."""

    class RowsKeptForEver(RangeLogic):
        def keep(self, state: list[Held], emitted: int, clock: int) -> list[Held]:
            return state

    more = [
        Mutant("range_aggregate", "rows_kept_for_ever", RowsKeptForEver, RangeLogic, "", ""),
    ]

    def with_more(operator: str) -> Registration:
        own = registration_of(operator)
        return replace(own, mutants={**own.mutants, **{one.name: one for one in more if one.operator == operator}})

    monkeypatch.setattr(mutation, "registration_of", with_more)


@pytest.mark.usefixtures("more_mutants")
@pytest.mark.parametrize(("law", "mutant", "found", "original"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.in_ci("changelog", "columns", "state")
def test_the_pasted_test_fails_with_the_mutant_and_passes_without(
    spark: SparkSession, law: str, mutant: str, found: History, original: History | None
) -> None:
    with pytest.raises(AssertionError, match=r"^violated: "):
        run_pasted(law, mutant, found, original)
    run_pasted(law, None, found, original)


def test_the_pasted_test_of_spark_s_own_operator_fails_where_that_means_something_else(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cohort = NativeSparkWitness.run

    def with_another_gap(witness: NativeSparkWitness, cohort: Cohort, options: RunOptions = PLAIN) -> Any:
        return run_cohort(witness, replace(cohort, options={**cohort.options, "gap_ms": 12}), options)

    monkeypatch.setattr(NativeSparkWitness, "run", with_another_gap)
    with pytest.raises(AssertionError, match=r"^violated: Spark's own session_window "):
        run_pasted("native", None, CLOSED, None)
    monkeypatch.undo()
    run_pasted("native", None, CLOSED, None)


def test_the_pasted_test_of_the_partial_merge_fails_where_the_merge_rescues_a_late_record(spark: SparkSession) -> None:
    # The profile that is asked with the merge has a grace under which nothing is late; here a record is.
    native = registration_of("session_windows").native
    merged = [one for one in native.profiles.values() if one.settings]
    assert [one.without_late_data for one in merged] == [True]
    profiles = {"merged": replace(merged[0], options=CLOSE)}
    with_merge = replace(registration_of("session_windows"), native=replace(native, profiles=profiles))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_law, "registration_of", lambda name: with_merge)
        with pytest.raises(AssertionError, match=r"^violated: Spark's own session_window "):
            run_pasted("native", None, RESCUED, None)
    run_pasted("native", None, RESCUED, None)


def test_a_failing_test_shows_both_outcomes_side_by_side(spark: SparkSession) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_holds("changelog", THREE.to_text(), mutant="merges_one")
    lines = str(failed.value).splitlines()
    assert lines[0].startswith("violated: the changelog is the reference's, as ordered lists per key and batch; but")
    assert "    " + json.dumps({"input": "events", "key": "a", "value": 2, "timestamp": 8}) in lines
    assert any(line.split() == ["reference", "Spark"] for line in lines)
    assert any(line.startswith("  ≠ ") for line in lines)

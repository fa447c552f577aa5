"""Pasted tests on real Spark, law by law: each fails on its mutant's counterexample, and passes without the mutant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.text import test_to_paste as to_paste
from streamproof.properties.generators.cohorts import Cohort
from streamproof.properties.laws.on_spark import native as native_law
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark.witness import NativeSparkWitness
from streamproof.reference.core.history import CUT, ClockAdvance, History, Line
from streamproof.reference.core.records import Record

LIST = {"gap_ms": 10, "grace_ms": 5, "aggregate": "list"}
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
DELETED = history(
    "table_table_join", {"join": "outer"}, [*rows("left", "a"), *rows("left", "a", None), ClockAdvance(30)]
)
CLOSED = history("session_windows", CLOSE, events(0, 11, until=30), events(until=100))
RESCUED = history("session_windows", CLOSE, [ClockAdvance(40)], events(29, 30, until=40), [ClockAdvance(100)])

CASES = [("changelog", "merges_one", THREE), ("columns", "deletion_silent", DELETED)]


def run_pasted(law: str, mutant: str | None, found: History) -> None:
    """Run the test to paste of a counterexample."""
    outcome = Outcome("history", Grain.END, final={})
    counterexample = Counterexample(
        law=law,
        sentence="",
        history=found,
        expected=("reference", outcome),
        actual=("Spark", outcome),
        differences=[],
        seed=0,
        mutant=mutant,
    )
    code, names = to_paste(counterexample), dict[str, Any]()
    assert code is not None
    exec(compile(code, "test_pasted.py", "exec"), names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test()


@pytest.mark.parametrize(("law", "mutant", "found"), CASES, ids=[case[0] for case in CASES])
def test_the_pasted_test_fails_with_the_mutant_and_passes_without(
    spark: SparkSession, law: str, mutant: str, found: History
) -> None:
    with pytest.raises(AssertionError, match=r"^violated: "):
        run_pasted(law, mutant, found)
    run_pasted(law, None, found)


def test_the_pasted_test_of_spark_s_own_operator_fails_where_that_means_something_else(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cohort = NativeSparkWitness.run

    def with_another_gap(witness: NativeSparkWitness, cohort: Cohort, options: RunOptions = PLAIN) -> Any:
        return run_cohort(witness, replace(cohort, options={**cohort.options, "gap_ms": 12}), options)

    monkeypatch.setattr(NativeSparkWitness, "run", with_another_gap)
    with pytest.raises(AssertionError, match=r"^violated: Spark's own session_window "):
        run_pasted("native", None, CLOSED)
    monkeypatch.undo()
    run_pasted("native", None, CLOSED)


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
            run_pasted("native", None, RESCUED)
    run_pasted("native", None, RESCUED)

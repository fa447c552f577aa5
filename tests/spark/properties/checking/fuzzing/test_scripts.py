"""A finding's script on Spark."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from streamproof.properties.checking.fuzzing.cases import PlanCase
from streamproof.properties.checking.fuzzing.divergences import FORGOTTEN_TIMES, PRUNED_TIME
from streamproof.properties.checking.fuzzing.equivalences import A, B, timed, windows
from streamproof.properties.checking.fuzzing.judging import REFERENCE, Finding
from streamproof.properties.checking.fuzzing.relations import Relation
from streamproof.properties.checking.fuzzing.scripts import script_of
from streamproof.properties.generators.plans.drawing import COLUMNS, Query, processing
from streamproof.properties.generators.plans.rows import START_US
from streamproof.properties.witnesses.plans.running import HowRun
from streamproof.reference.spark.expressions import column
from streamproof.reference.spark.plans import Deduplication, Project, Scan, Union, WithWatermark, pruned


def test_a_script_prints_both_results_and_exits_with_1(tmp_path: Path) -> None:
    once = Deduplication((WithWatermark((Scan("a", COLUMNS),), "ts", 0),), ("h", "k"))
    plan = Project((once,), (("h", column("h")), ("k", column("k"))))
    keys = {30: "a", 31: "b", 11: "late"}
    rows = [{"h": 0, "k": key, "ts": START_US + second * 1_000_000, "v": None} for second, key in keys.items()]
    case = PlanCase(Query(plan), tuple({"a": [row]} for row in rows))
    script = tmp_path / "finding.py"
    script.write_text(
        script_of(Finding(REFERENCE, case, None, case.expected(), case.expected(pruned(plan)), (PRUNED_TIME,)))
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "as it is written: [['{0, a}'], ['{0, b}'], []]" in done.stdout
    assert "as Spark runs the plan: [['{0, a}'], ['{0, b}'], ['{0, late}']]" in done.stdout


def test_a_query_of_a_script_dies_and_forgets_the_times_of_its_inputs(tmp_path: Path) -> None:
    times = ({"a": 5, "b": 25}, {"a": 40})
    rows = [
        {name: [{"h": 0, "k": "a", "ts": START_US + at * 1_000_000, "v": None}] for name, at in batch.items()}
        for batch in times
    ]
    case = PlanCase(Query(windows(Union((timed(A), timed(B))))), tuple(rows))
    dies = replace(case, how=HowRun(deaths={1: "commits"}))
    assert case.expected()[1]
    assert not case.expected(starts=dies.starts)[1]
    script = tmp_path / "finding.py"
    script.write_text(script_of(Finding(Relation("deaths", lambda one: dies), case, dies, named=(FORGOTTEN_TIMES,))))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "one way: [[], ['{0, a, 09.999999, 1}']]" in done.stdout
    assert "deaths: [[], []]" in done.stdout


def test_a_processor_of_a_script_counts_and_its_timer_fires(tmp_path: Path) -> None:
    rows = [{"h": 0, "k": "a", "ts": START_US + at * 1_000_000, "v": None} for at in (1, 2, 30)]
    case = PlanCase(Query(processing(timed(A))), ({"a": rows[:2]}, {"a": rows[2:]}))
    wrong = [bag.copy() for bag in case.expected()]
    wrong[0].clear()
    script = tmp_path / "finding.py"
    script.write_text(script_of(Finding(REFERENCE, case, None, wrong, case.expected())))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "as it is written: [[], ['{0, a, null, -1}', '{0, a, null, 1}']]" in done.stdout
    seen = "[['{0, a, null, -2}', '{0, a, null, 2}'], ['{0, a, null, -1}', '{0, a, null, 1}']]"
    assert f"as Spark runs the plan: {seen}" in done.stdout

"""A finding's script on Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from streamproof.properties.checking.fuzzing.cases import Case
from streamproof.properties.checking.fuzzing.divergences import PRUNED_TIME
from streamproof.properties.checking.fuzzing.judging import REFERENCE, Finding
from streamproof.properties.checking.fuzzing.scripts import script_of
from streamproof.properties.generators.plans.drawing import COLUMNS, Query
from streamproof.properties.generators.plans.rows import START_US
from streamproof.reference.spark.expressions import column
from streamproof.reference.spark.plans import Deduplication, Project, Source, Watermark, pruned


def test_a_script_prints_both_results_and_exits_with_1(tmp_path: Path) -> None:
    once = Deduplication((Watermark((Source("a", COLUMNS),), "ts", 0),), ("h", "k"))
    plan = Project((once,), (("h", column("h")), ("k", column("k"))))
    keys = {30: "a", 31: "b", 11: "late"}
    rows = [{"h": 0, "k": key, "ts": START_US + second * 1_000_000, "v": None} for second, key in keys.items()]
    case = Case(Query(plan), tuple({"a": [row]} for row in rows))
    script = tmp_path / "finding.py"
    script.write_text(
        script_of(Finding(REFERENCE, case, None, case.expected(), case.expected(pruned(plan)), (PRUNED_TIME,)))
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "as it is written: [['{0, a}'], ['{0, b}'], []]" in done.stdout
    assert "as Spark runs it: [['{0, a}'], ['{0, b}'], ['{0, late}']]" in done.stdout

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMES = ("cohort", "reference", "duckdb", "oracle", "operators", "flights", "memory", "check")


def benchmarks(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "benchmarks", *words], cwd=ROOT, capture_output=True, text=True)


def test_the_benchmarks_are_listed_and_an_unknown_one_exits_3_with_their_names() -> None:
    listed, unknown = benchmarks("--list"), benchmarks("reference", "cohorts", "--size", "small")
    assert listed.returncode == 0, listed.stderr
    assert [name for name in NAMES if name not in listed.stdout] == []
    assert unknown.returncode == 3
    assert unknown.stderr.strip() == f"error: unknown benchmark 'cohorts': use some of {', '.join(NAMES)}"
    assert unknown.stdout == ""


def test_medians_ratios_targets_and_growth_are_those_of_made_up_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.figures import Target, figure, growth_exponent, ratio

    many = figure("many", "histories/s", [400.0, 1000.0, 500.0], "5 histories")
    one = figure("one", "histories/s", [0.5, 0.25, 0.4, 0.5, 1.0], "1 history")
    assert (many.median, many.least, many.largest, many.runs, many.reached) == (500, 400, 1000, 3, None)
    between = ratio("many over one", many, one, Target("at least", 1000))
    assert (between.median, between.least, between.largest, between.runs) == (1000, 400, 4000, 3)
    assert between.reached
    assert ratio("many over one", many, one, Target("at most", 1000)).reached
    assert ratio("many over one", many, one, Target("under", 1000)).reached is False

    rows = (1000, 2000, 4000, 8000)
    assert growth_exponent([(count, 3e-5 * count) for count in rows]) == pytest.approx(1)
    assert growth_exponent([(count, 7e-9 * count**2) for count in rows]) == pytest.approx(2)
    assert growth_exponent([(count, 4.0) for count in rows]) == pytest.approx(0)

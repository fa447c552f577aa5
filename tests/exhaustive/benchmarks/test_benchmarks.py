from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from paths import ROOT

from benchmarks.checks import check
from benchmarks.figures import Target, figure, growth_exponent, ratio
from benchmarks.production import cases
from benchmarks.production.run import TODAYS

NAMES = (
    *("cohort", "reference", "duckdb", "judging", "oracle", "operators", "agreement", "production", "sizes"),
    *("sql_plan", "nexmark", "state", "real_foreign_keys", "flights", "cluster", "memory", "large", "specs", "queries"),
    *("spark_rules", "kafka_schedules", "jobs", "report", "shared", "check"),
)
Benchmarks = Callable[..., tuple[object, str, str]]


def test_the_benchmarks_are_listed() -> None:
    listed = subprocess.run([sys.executable, "-m", "benchmarks", "--list"], cwd=ROOT, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    assert [name for name in NAMES if name not in listed.stdout] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("reference cohorts --size small", f"unknown benchmark 'cohorts': use some of {', '.join(NAMES)}"),
        ("nexmark:q5 --size small", "nexmark:q5: unknown query 'q5': use one of q4, q7, q8, q9, q11, q18, q20"),
        ("memory:foreign_key_join", "memory:foreign_key_join: only operator"),
        ("production:joins", "unknown operator 'joins': use one of session_windows"),
        ("reference --on spark", "--on spark has no effect here: name the benchmark agreement, and no other"),
        ("agreement --histories 10", "--histories has no effect here: use it with agreement --on reference"),
        ("agreement --seed 10", "--seed has no effect here: use it with agreement --on reference"),
        ("agreement --on reference --rounds 2", "--rounds has no effect with --on"),
    ],
)
def test_words_that_mean_nothing_exit_3_with_the_remedy(words: str, message: str, benchmarks: Benchmarks) -> None:
    code, out, err = benchmarks(*words.split())
    assert (code, out) == (3, "")
    assert " ".join(err.split()).startswith(f"error: {message}")


def test_medians_ratios_targets_and_growth_are_those_of_made_up_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_goes_through_production_is_the_same_each_time_whole_and_late_by_less_than_the_grace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = 20_000
    makers = (cases.events, cases.events_in_order, cases.two_streams, cases.stream_and_table, cases.two_tables)
    for make in (*makers, cases.grouped_table, cases.referring_tables):
        inputs = make(rows)
        order = np.concatenate([columns["order"] for columns in inputs.values()])
        assert sorted(order) == list(range(rows))
        times = np.concatenate([columns["time"] for columns in inputs.values()])[np.argsort(order)]
        assert 0 <= (np.maximum.accumulate(times) - times).max() <= cases.BEHIND_MS < 60_000
        for again, columns in zip(make(rows).values(), inputs.values(), strict=True):
            assert all((again[name] == column).all() for name, column in columns.items())


def test_a_check_stands_beside_the_earlier_commits_by_all_of_its_processes_and_histories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def command(cpu: float, histories: int) -> check.Command:
        lines = [
            (1.0, "sessions, the reference: conforms — 1,000 histories, 2 s, seed 0."),
            (3.0, f"sessions, on Spark: conforms — {histories:,} histories in 7 queries, 2 s, seed 0."),
        ]
        return check.Command(8.0, {"python": cpu, "java": 2 * cpu, "workers": cpu}, 1.0, lines)

    runs = {TODAYS: [command(5, 2000)], check.EARLIER: [command(20, 1000)]}
    found = {one.name: one for one in check._beside_each_other(runs, "few")}
    over = found[f"streamproof check: CPU seconds over {check.EARLIER}'s"]
    assert (over.median, over.reached) == (0.25, True)
    rates = found[f"streamproof check: histories a CPU second over {check.EARLIER}'s"]
    assert rates.median == 6
    walls = found[f"streamproof check: wall time over {check.EARLIER}'s"]
    assert (walls.median, walls.reached) == (1, False)
    assert found[f"streamproof check, {TODAYS}: wall time over CPU seconds"].median == 0.4
    assert check._of_spark(runs[TODAYS][0]) == 3

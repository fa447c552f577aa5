"""Mutants of users' jobs: which of them a test kills."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from changed_jobs import CLICKS, TOTALS, job_of
from streamproof import BadInput, Script, as_batch, check_job, sql
from streamproof.properties.checking.jobs import mutants as module
from streamproof.properties.witnesses.job.mutations.source import JobSource
from streamproof.reference.core.errors import StreamproofError

BY_HOUR = """
    SELECT user, time_bucket(INTERVAL 1 HOUR, clicks."at") AS start, start + INTERVAL 1 HOUR AS "end",
        sum(amount) AS total FROM clicks WHERE amount > 100 GROUP BY ALL
"""


def some_mutants(monkeypatch: pytest.MonkeyPatch, chosen: Callable[[list[Any]], list[Any]]) -> None:
    """Let a job have some of its mutants alone."""
    all_of = JobSource.mutants
    monkeypatch.setattr(JobSource, "mutants", lambda *given: chosen(all_of(*given)))


def test_a_module_that_can_t_run_twice_is_refused_rather_than_all_its_mutants_killed(tmp_path: Path) -> None:
    once = "import sys\n\nassert not hasattr(sys, 'ran_once')\nsys.ran_once = True\n"
    code = f"{once}\n\ndef job(clicks):\n    return clicks"
    try:
        with pytest.raises(BadInput, match="its unchanged source, run again, gives another job: its module fails"):
            check_job(job_of(tmp_path, code, "job"), CLICKS, expect=as_batch(), mutants=True, histories=60)
    finally:
        vars(sys).pop("ran_once", None)


@pytest.mark.weekly("a minute: the fates themselves are asked of a script, and of mutants in memory")
def test_fates_are_those_of_queries_as_the_test_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(tmp_path, TOTALS, "totals")
    some_mutants(monkeypatch, lambda mutants: mutants[::3])  # they are enough to compare the ways in which they run

    def fates() -> list[tuple[str, str]]:
        report = check_job(job, CLICKS, expect=sql(BY_HOUR), out_of_order="10 minutes", mutants=True, histories=60)
        assert report.mutants is not None
        return [(one.mutant, one.fate) for one in report.mutants.judged]

    quick = fates()
    assert {fate for _, fate in quick} >= {"killed", "doesn't run"}
    monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(module, "_quick", lambda plain: plain.options.run)
    assert quick == fates()


def test_mutants_of_a_script_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        'clicks = spark.readStream.table("clicks")\n'
        'clicks.where("amount > 100").writeStream.toTable("large", checkpointLocation="/checkpoints/large")\n'
    )
    expected = sql("SELECT * FROM clicks WHERE amount > 100")
    report = check_job(Script(path, reads={"clicks": CLICKS}), expect=expected, mutants=True, histories=60).mutants
    assert report is not None
    fates = {one.mutant.removeprefix("script.py:2: "): one.fate for one in report.judged}
    (without,) = (mutant for mutant in fates if mutant.endswith("→ `pass`"))
    assert fates.pop(without) == "doesn't run"
    killed = (
        '`clicks.where("amount > 100")` → `clicks`',
        '`"amount > 100"` → `"amount >= 100"`',
        '`"amount > 100"` → `"amount > 101"`',
    )
    assert fates == dict.fromkeys(killed, "killed")


def test_a_mutant_that_cannot_be_compared_with_the_job_as_it_is_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_as(original: Any, histories: int) -> bool:
        raise StreamproofError("the query took longer than 30 s")

    judge = SimpleNamespace(declared=SimpleNamespace(columns=["total"]))
    check = SimpleNamespace(judge=judge, is_as=is_as)
    monkeypatch.setattr(module._Checking, "checked", lambda self, make: (check, "survived", ""))
    given: Any = [SimpleNamespace(judge=judge), None, 100, None, None]
    mutant: Any = SimpleNamespace(make=None, kind="null")
    why = "it couldn't be compared with the original job: the query took longer than 30 s"
    assert module._Checking(*given).fate(mutant) == ("no difference", why)

"""Seeds whose plans aren't run, and seeds of chains, without Spark."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.checking.fuzzing import seeds
from streamproof.properties.checking.fuzzing.cases import PlanCase
from streamproof.properties.checking.fuzzing.chains import CHAINS
from streamproof.properties.checking.fuzzing.seeds import Seed
from streamproof.properties.witnesses.chains.composed import ChainChanges, composed_changelog
from streamproof.properties.witnesses.spark.failures import MachineTooBusy
from streamproof.reference.core.errors import StreamproofError


def test_few_plans_run_that_emit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[PlanCase] = []
    monkeypatch.setattr(Seed, "judge", lambda self, case, asked, judged: ran.append(case))
    skipped = Counter(Seed(str(number), 3).answer().skipped for number in range(40))
    assert skipped["it emits nothing"] > 2
    assert sum(not case.emits for case in ran) < skipped["it emits nothing"]


def test_an_older_pyspark_skips_plans_and_chains_that_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seed, "judge", lambda self, case, asked, judged: None)
    monkeypatch.setattr(seeds, "spark_version", lambda: (3, 5, 1))
    assert Seed("a processor above a join #1", 1).answer().skipped == (
        "this PySpark has no row-based transformWithState"
    )
    assert Seed("chain 1", 1).answer().skipped == "this PySpark can't run our operators"


@pytest.mark.parametrize(
    ("fails", "error", "skipped"),
    [
        (None, "", ""),
        (StreamproofError("the query failed"), "the query failed", ""),
        (MachineTooBusy("busy"), "", "busy"),
    ],
    ids=["agrees", "fails", "busy"],
)
def test_a_chain_is_judged_and_its_failure_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, fails: Exception | None, error: str, skipped: str
) -> None:
    def on_spark(*given: Any) -> ChainChanges:
        if fails is not None:
            raise fails
        return composed_changelog(*given)

    runner = SimpleNamespace(runner=SimpleNamespace(chain=on_spark))
    monkeypatch.setattr(seeds, "judge_of_process", lambda: runner)
    judged = Seed("chain 1", 3).answer()
    assert [one.error for one in judged.differences] == [error] * bool(error)
    assert judged.skipped == skipped
    if not skipped:
        assert (judged.pairs, judged.runs[CHAINS]) == (3, 1)
        assert judged.pairs_of_operators

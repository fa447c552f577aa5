"""A new law is one class and one line: then it judges operators and jobs, and kills what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from memory_jobs import RUN, MemoryRunner, copy, options
from shared_player import play_in_memory
from streamproof import Violated
from streamproof.properties.checking.check import Check
from streamproof.properties.checking.jobs.invariants import Invariants
from streamproof.properties.checking.mutation import witness_of
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.samples import random_sample
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.laws import all as laws
from streamproof.properties.laws.metamorphic.restart import Restart
from streamproof.properties.laws.variation import Variation
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.run_options import RunOptions


class Moved(Restart):
    name, of_jobs = "moved", "a move"
    usual = (RunOptions(stop_after=(1, 2), partitions=3),)

    def variation(self, run: RunOptions, given: Any) -> Variation:
        moved = replace(run, stop_after=tuple(given), partitions=3)
        return Variation(moved, self.of_jobs, [*given], "moved", "where it was")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "METAMORPHIC", (*laws.METAMORPHIC, Moved()))


@pytest.mark.parametrize(("mutant", "verdict"), [(None, "conforms"), ("forgets_at_second_restart", "violated")])
def test_it_judges_an_operator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mutant: Any, verdict: str) -> None:
    play_in_memory(monkeypatch)
    join, report = registration_of("table_table_join"), Report("table_table_join", [], 0)
    sample, witness = random_sample(join, next(iter(join.profiles)), 60, 0), witness_of(join.name, mutant)
    Check(join, report, laws.METAMORPHIC[-1:], "spark", FolderStore(tmp_path), print, witness).run([sample])
    assert report.result("moved").verdict == verdict


@dataclass(frozen=True)
class ForgetsWhenMoved(MemoryRunner):
    def run(self, batches: Any, clock: Any = (), run: RunOptions = RUN) -> Any:
        output = super().run(batches, clock, run)
        return replace(output, batches=[[] for _ in batches]) if run.stop_after and run.partitions else output


def test_it_judges_a_job() -> None:
    assert Invariants(options(copy)).report(20, ()).laws["a move"] == 20
    with pytest.raises(Violated, match=r"moved, copy .* emits no such row"):
        Invariants(options(copy, ForgetsWhenMoved)).report(20, ())

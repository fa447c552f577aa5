"""The way of a history: those of operators and of jobs pass the same stages in the same order (`ARCHITECTURE.md`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import streamproof.properties
from memory_jobs import RUN, Batches, copy, options
from shared_player import play_in_memory
from streamproof import Violated
from streamproof.properties.checking import check as check_module
from streamproof.properties.checking.check import check_operators
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.checking.mutation import LAWS, witness_of
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.laws.expected.oracles import BatchOracle
from streamproof.properties.laws.variation import Variation
from streamproof.properties.report.making import content

from benchmarks.structure import code_called

HOME = Path(streamproof.properties.__file__).parent
STAGES = {
    "draw": {"generators/draws.py draw_histories", "generators/columns/histories/drawing.py draw_histories"},
    "run": {"witnesses/spark/shared.py run_shared", "witnesses/job/witness.py evaluate"},
    "judge": {"laws/on_spark/judging.py judge", "laws/expected/judging.py difference"},
    "save": {"counterexamples/store.py put"},
    "shrink": {"generators/shrinking.py shrink"},
    "report": {"report/making.py content"},
}
BY_DOOR = {(str(HOME / file), name): stage for stage, doors in STAGES.items() for file, name in map(str.split, doors)}


def stages_entered(work: Callable[[], object]) -> list[str]:
    """Return the stages in the order in which they are first entered, in whatever thread."""
    doors = [BY_DOOR.get((code.co_filename, code.co_name)) for code in code_called(work)]
    return [*dict.fromkeys(stage for stage in doors if stage)]


def without_the_last(batches: Batches) -> Batches:
    return [rows[:-1] for rows in batches]


def test_an_operators_history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    play_in_memory(monkeypatch)
    monkeypatch.setattr(check_module, "ON_SPARK", LAWS)
    monkeypatch.setattr(check_module, "plan_of_their_own", lambda *arguments: [])

    def work() -> None:
        mutant = witness_of("table_table_join", "sides_swapped")
        (report,) = check_operators(["table_table_join"], FolderStore(tmp_path / "found"), 10, witness=mutant).values()
        assert report.found
        content([report])

    assert stages_entered(work) == [*STAGES]


def test_a_jobs_history(tmp_path: Path) -> None:
    def work() -> None:
        with pytest.raises(Violated) as raised:
            JobCheck(options(without_the_last, folder=tmp_path), BatchOracle(copy), Variation(RUN)).check(20)
        content([raised.value])

    assert stages_entered(work) == [*STAGES]

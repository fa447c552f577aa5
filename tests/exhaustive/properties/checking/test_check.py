"""The gate, played in memory: a counterexample is reported, shrunk, saved and replayed. On Spark it is `make check`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shared_player import play_in_memory
from streamproof.properties.checking import check as check_module
from streamproof.properties.checking.check import check_operators
from streamproof.properties.checking.mutation import LAWS, witness_of
from streamproof.properties.checking.report import Report
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.laws.all import ON_SPARK, asked_of
from streamproof.properties.laws.base import Verdict
from streamproof.properties.registration.registration import registration_of

SESSIONS = registration_of("session_windows")


def test_what_the_operator_is_not_asked_is_named() -> None:
    _, not_checked = asked_of(SESSIONS, ON_SPARK)
    assert set(not_checked) == {"retention", "schedules"}
    assert not_checked["schedules"] == "its registration has no message protocol, because it sends no messages"


@pytest.fixture(scope="module")
def in_memory() -> Iterator[None]:
    """Plays shared queries in memory, without the laws and the samples that have queries of their own."""
    with pytest.MonkeyPatch.context() as patch:
        play_in_memory(patch)
        patch.setattr(check_module, "ON_SPARK", LAWS)
        patch.setattr(check_module, "plan_of_their_own", lambda *arguments: [])
        yield


@pytest.fixture(scope="module")
def mutated(in_memory: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    folder = tmp_path_factory.mktemp("counterexamples")
    mutant = witness_of("session_windows", "merges_one")
    return check_operators([SESSIONS.name], FolderStore(folder), 100, seed=1, witness=mutant)[SESSIONS.name], folder


def test_a_mutant_makes_the_verdict_violated(mutated: tuple[Report, Path]) -> None:
    assert mutated[0].verdict is Verdict.VIOLATED


def test_the_counterexample_is_shrunk_to_the_merge_of_three(mutated: tuple[Report, Path]) -> None:
    counterexample, _ = mutated[0].found[0]
    assert (counterexample.law, counterexample.confirmed, len(counterexample.history.records)) == ("changelog", True, 3)


def test_the_counterexample_is_on_disk_with_its_text_and_a_test(mutated: tuple[Report, Path]) -> None:
    counterexample, folder = mutated[0].found[0]
    assert folder == mutated[1] / "session_windows" / counterexample.name
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "the larger one is gone"
    assert sorted(path.name for path in folder.iterdir()) == [
        "counterexample.json",
        "counterexample.txt",
        "history.jsonl",
        f"test_{counterexample.name.replace('-', '_')}.py",
    ]


def test_a_saved_counterexample_is_replayed_first_and_is_enough_to_violate(mutated: tuple[Report, Path]) -> None:
    steps: list[str] = []
    mutant = witness_of("session_windows", "merges_one")

    def stop_at_the_second(step: str) -> None:
        steps.append(step)
        if len(steps) > 1:
            raise KeyboardInterrupt

    interrupted = Report("session_windows", [], 2)
    with pytest.raises(KeyboardInterrupt):
        check_operators(
            [SESSIONS.name],
            FolderStore(mutated[1]),
            10,
            2,
            progress=stop_at_the_second,
            witness=mutant,
            reports={SESSIONS.name: interrupted},
        )
    assert steps[0] == "replaying 1 saved counterexample of 'changelog'"
    assert interrupted.verdict is Verdict.VIOLATED


def test_laws_whose_coverage_goals_are_not_met_are_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "spark_session", lambda: None)
    interrupted = Report("session_windows", [], 0)

    def stop(step: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_operators(
            [SESSIONS.name], FolderStore(Path("nowhere")), 10, progress=stop, reports={SESSIONS.name: interrupted}
        )
    assert {result.verdict for result in interrupted.results} == {Verdict.INCONCLUSIVE}

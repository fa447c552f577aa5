"""A bug that Spark and the reference have alike: *changelog* sees nothing, and a law of the reference is violated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shared_player import play_in_memory
from streamproof.properties.checking import check, findings, mutation
from streamproof.properties.checking.check import check_operators, check_reference
from streamproof.properties.checking.mutation import witness_of
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.laws.all import AS_OF_REFERENCE, OF_REFERENCE
from streamproof.properties.laws.base import Verdict, worst
from streamproof.properties.witnesses.spark.witness import SparkWitness
from streamproof.spark_impl.runtime.logic import Arrived, LogicOutput
from streamproof.spark_impl.session_windows import Session, SessionLogic
from wrong_sessions import WRONG, plant

SESSIONS = "session_windows"
SEEN_BY = {
    "gap_exclusive": {"fold is meaning", "duckdb"},
    "forward_only": {"order"},
    "forgets_between_batches": {"cuts"},
    "repeats_dropped": {"repeats"},
    "shared_across_keys": {"keys"},
}
"""For each bug, the laws that are checked only on the reference and must see it."""
IN_NO_ORDER = {"shared_across_keys"}
"""The keys of a batch come in no order on Spark: what they take from each other isn't what they do in the reference."""


class RepeatsDropped(SessionLogic):
    """As the mutant of this name, but for sessions that are closed and still stored: Spark forgets them sooner."""

    def take(self, key: tuple[Any, ...], sessions: list[Session], row: Arrived, clock: int) -> list[LogicOutput]:
        near = self.near(sessions, row.timestamp or 0, self.windows.close_edge(clock))
        if any(row.timestamp in (session.start, session.end) for session in near):
            return []
        return super().take(key, sessions, row, clock)


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)
    monkeypatch.setattr(check, "ON_SPARK", mutation.LAWS)
    monkeypatch.setattr(check, "plan_of_their_own", lambda *arguments: [])
    # Shrinking asks the same question hundreds of times more, and Kafka isn't concerned.
    monkeypatch.setattr(findings, "confirmed", lambda law, violation, witness, asked: (violation, ""))
    monkeypatch.setattr(check, "OF_REFERENCE", [law for law in OF_REFERENCE if "kafka" not in law.between])


@pytest.mark.parametrize("bug", WRONG)
def test_a_bug_that_spark_and_the_reference_have_alike_violates_a_law_of_the_reference(
    bug: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, bug)
    store, witness = FolderStore(tmp_path), witness_of(SESSIONS, bug)
    if bug == "repeats_dropped":
        witness = SparkWitness(RepeatsDropped, bug)
    on_spark = check_operators([SESSIONS], store, 200, witness=witness)[SESSIONS]
    # It emits the reference's output, and so that no law on Spark can see it.
    assert bool(on_spark.result("changelog").violations) == (bug in IN_NO_ORDER)
    of_reference = check_reference(SESSIONS, store, 400)
    violated = {result.law.name for result in of_reference.results if result.verdict is Verdict.VIOLATED}
    assert SEEN_BY[bug] <= violated
    assert worst([of_reference.verdict, on_spark.verdict]) is Verdict.VIOLATED


def test_each_law_that_is_asked_of_the_reference_alone_sees_such_a_bug() -> None:
    assert set().union(*SEEN_BY.values()) == {*AS_OF_REFERENCE.values()}


def test_without_such_a_bug_the_reference_conforms(tmp_path: Path) -> None:
    assert check_reference(SESSIONS, FolderStore(tmp_path), 1000).verdict is Verdict.CONFORMS

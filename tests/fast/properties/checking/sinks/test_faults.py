"""The faults that are played by hand, on queries in memory: what each is, and what it leaves of a sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memory_spark import memory_session
from streamproof.properties.checking.sinks.cohorts import SinkCohort, payments
from streamproof.properties.checking.sinks.faults import FAULTS
from streamproof.properties.checking.sinks.judging import judged
from streamproof.properties.checking.sinks.places import Places
from streamproof.properties.checking.sinks.playing import FaultedQuery
from streamproof.properties.checking.sinks.sinks import SINKS
from streamproof.properties.witnesses.job.dying.faults import ATTEMPTS, Seen

COHORT = SinkCohort(payments(24, 0))
FAULT = {fault.name: fault for fault in FAULTS}


@pytest.fixture
def seen_of(tmp_path: Path) -> Callable[[str, str], Seen]:
    def play(sink: str, fault: str) -> Seen:
        function = FAULT[fault].play
        assert function is not None
        with memory_session(tmp_path / "spark") as session:
            return function(FaultedQuery(session, tmp_path, SINKS[sink], COHORT))

    return play


@pytest.mark.parametrize(
    ("sink", "fault", "verdicts"),
    [
        ("sqlite-append", "death-before-write", []),
        ("sqlite-append", "death-within-write", []),
        ("sqlite-append", "death-before-commit", ["doubled"]),
        ("sqlite-append", "repeated-batch", ["doubled"]),
        ("sqlite-append", "lost-connection", ["doubled"]),
        ("sqlite-append", "zombie", ["doubled"]),
        ("sqlite-append", "two-queries", []),
        ("sqlite-append", "full-disk", []),
        ("sqlite-append", "deleted-checkpoint", ["doubled"]),
        ("sqlite-append", "deleted-checkpoint-latest", []),
        ("sqlite-append", "old-checkpoint", ["doubled"]),
        ("sqlite-by-row", "death-within-write", ["doubled", "torn"]),
        ("guard-after", "death-between-writes", ["doubled"]),
        ("guard-after", "repeated-batch", []),
        ("guard-before", "death-between-writes", ["lost"]),
        ("guard-before", "two-queries", ["lost"]),
        ("transaction", "death-within-write", []),
        ("transaction", "zombie", []),
        ("transaction", "two-queries", ["lost"]),
        ("transaction", "deleted-checkpoint-latest", ["lost"]),
        ("delta-txn", "death-before-commit", []),
    ],
)
def test_a_fault_leaves_of_a_sink_what_its_commits_let_it_keep(
    sink: str, fault: str, verdicts: list[str], seen_of: Callable[[str, str], Seen]
) -> None:
    seen = seen_of(sink, fault)
    assert (seen.unmet, seen.stuck) == ("", "")
    assert [*judged(COHORT, seen).counts] == verdicts


def test_a_zombie_that_is_refused_is_named(seen_of: Callable[[str, str], Seen]) -> None:
    (refusal,) = seen_of("transaction", "zombie").refusals
    assert refusal == "the old query: UNIQUE constraint failed: done.batch"


def test_a_database_in_one_file_has_no_old_files(seen_of: Callable[[str, str], Seen]) -> None:
    assert seen_of("sqlite-append", "retention").unmet == "each of its files is also written by later batches"


def test_a_target_that_cannot_be_read_again_is_stuck(
    seen_of: Callable[[str, str], Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(target: str) -> list[dict[str, object]]:
        raise ValueError("its log is gone")

    monkeypatch.setattr(
        "streamproof.properties.witnesses.job.sinks.databases.SQLiteTable.rows", lambda *_: unreadable("")
    )
    assert seen_of("sqlite-append", "repeated-batch").stuck == "its readers fail: its log is gone"


@pytest.mark.parametrize(("failures", "stuck"), [(1, ""), (ATTEMPTS, "ConnectionError: refused")])
def test_a_query_that_fails_each_time_it_is_started_again_is_stuck(failures: int, stuck: str, tmp_path: Path) -> None:
    left = [*range(failures)]

    def write(rows: Any, batch: int, target: str, at: Places) -> None:
        if batch == 3 and left:
            left.pop()
            raise ConnectionError("refused")
        given = SINKS["sqlite-append"].write
        assert given is not None
        given(rows, batch, target, at)

    sink, function = replace(SINKS["sqlite-append"], write=write), FAULT["repeated-batch"].play
    assert function is not None
    with memory_session(tmp_path / "spark") as session:
        seen = function(FaultedQuery(session, tmp_path, sink, COHORT))
    assert seen.stuck.startswith(stuck)
    assert bool(seen.stuck) == bool(stuck)
    assert [*judged(COHORT, seen).counts] == (["stuck"] if stuck else ["doubled"])


def test_documents_promise_something_for_the_faults_of_a_process_alone() -> None:
    deaths = {f"death-{place}" for place in ("before-write", "within-write", "between-writes", "before-commit")}
    played = deaths | {"death-before-upload", "repeated-batch"}
    assert {fault.name for fault in FAULTS if fault.in_invariants} == played
    of_process = played | {"death-in-commit", "lost-connection", "full-disk"}
    assert {fault.name for fault in FAULTS if fault.is_of_process} == of_process


def test_a_sink_for_which_no_document_promises_anything_can_break_no_promise() -> None:
    assert {name for name, sink in SINKS.items() if sink.promises == "nothing"} == {
        "memory",
        "guard-after",
        "guard-before",
    }
    exactly = {"file-parquet", "file-json", "overwrite", "sqlite-upsert", "duckdb-upsert", "transaction"}
    assert exactly <= {name for name, sink in SINKS.items() if sink.promises == "exactly once"}

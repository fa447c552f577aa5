"""A machine that fails a query, by a Python worker that starts too late or is lost: the query is run once more."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.witnesses.job import running
from streamproof.properties.witnesses.job.running import Output, Runner
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark import failures
from streamproof.properties.witnesses.spark.failures import MachineTooBusy, WorkerLost, in_own_folder
from streamproof.properties.witnesses.spark.typed import run_batch
from streamproof.properties.witnesses.spark.witness import SPARK
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import play

HISTORY = parse_history(
    """\
{"operator": "table_table_join", "options": {"join": "inner"}, "clock": "batch"}
{"input": "left", "key": "a", "value": 1, "timestamp": 0}
{"input": "right", "key": "a", "value": 2, "timestamp": 1}
""",
    "h",
)


def too_late() -> NoReturn:
    with failures.reported_failures():
        raise StreamingQueryException("[STREAM_FAILED] … java.io.IOException: Python worker failed to connect back.")


def test_a_worker_that_starts_too_late_is_a_machine_too_busy() -> None:
    with pytest.raises(
        MachineTooBusy, match=r"machine is too busy: .* 10 s to start.*; run again with .*\(the log is "
    ):
        too_late()


def test_what_failed_on_a_busy_machine_is_run_once_more() -> None:
    calls: list[None] = []

    def run(folder: Path) -> str:
        calls.append(None)
        return too_late() if len(calls) == 1 else "done"

    assert in_own_folder(run) == "done"


def test_what_fails_twice_on_a_busy_machine_fails() -> None:
    calls: list[None] = []

    def run(folder: Path) -> NoReturn:
        calls.append(None)
        too_late()

    with pytest.raises(MachineTooBusy):
        in_own_folder(run)
    assert len(calls) == 2


def test_another_failure_is_not_run_once_more() -> None:
    calls: list[None] = []

    def run(folder: Path) -> NoReturn:
        calls.append(None)
        with failures.reported_failures():
            raise StreamingQueryException("[STREAM_FAILED] … ZeroDivisionError: division by zero")

    with pytest.raises(failures.StreamproofError, match="division by zero"):
        in_own_folder(run)
    assert len(calls) == 1


def test_a_job_s_query_on_a_busy_machine_is_run_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []

    class LateOnce:
        def __init__(self, runner: Runner, spark: None, folder: Path, *of: object) -> None:
            folders.append(folder)

        def output(self) -> Output:
            return too_late() if len(folders) == 1 else Output([])

    monkeypatch.setattr(running, "JobQuery", LateOnce)
    monkeypatch.setattr(running, "session_for_query", lambda settings, any_provider: nullcontext())
    assert Runner(lambda rows: rows, []).run([], run=RunOptions(partitions=1)) == Output([])
    assert len(set(folders)) == 2


def add_up(spark: SparkSession, marker: Path, endings: int) -> int:
    """Add three numbers up on Spark, in a Python worker that ends without a word the first times."""
    # A path, for a worker has its own copy of all else.
    marks = str(marker)

    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        with open(marks, "a") as file:
            file.write(".")
        if os.path.getsize(marks) <= endings:
            os._exit(7)
        yield from batches

    numbers = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
    ((_, rows),) = run_batch(spark, numbers, lambda frame: frame.mapInArrow(pass_on, "n bigint")).batches
    return sum(rows["n"].to_pylist())


def test_a_query_whose_worker_is_lost_once_is_run_once_more(spark: SparkSession, tmp_path: Path) -> None:
    assert add_up(spark, tmp_path / "marks", endings=1) == 6
    assert (tmp_path / "marks").read_text() == ".."


def test_a_query_whose_worker_is_lost_twice_fails_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(WorkerLost, match=r"^the Spark query failed: a Python worker ended without an exception, twice"):
        add_up(spark, tmp_path / "marks", endings=9)
    assert (tmp_path / "marks").read_text() == ".."


@pytest.mark.exhaustive
def test_a_query_whose_worker_starts_too_late_once_still_gives_its_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, slow = tmp_path / "started", tmp_path / "python"
    python = f'exec {shlex.quote(sys.executable)} "$@"'
    first = f"[ -e {started} ] || {{ touch {started}; sleep 12; }}"
    late = f'case "$*" in *transform_with_state_driver_worker*) {first};; esac'
    slow.write_text(f"#!/bin/sh\n{late}\n{python}\n")
    slow.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slow))
    (outcome,) = SPARK.evaluate([HISTORY])
    assert not differences(Outcome.of_play("h", play(HISTORY)), outcome)
    assert started.exists()

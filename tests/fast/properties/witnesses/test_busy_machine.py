"""A machine that fails a query, by a Python worker that starts too late or is lost: the query is run once more."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.errors import StreamingQueryException
from streamproof.properties.witnesses.job import running
from streamproof.properties.witnesses.job.running import Output, Runner
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark import failures
from streamproof.properties.witnesses.spark.failures import MachineTooBusy, in_own_folder


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

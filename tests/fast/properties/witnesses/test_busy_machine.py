"""A machine that fails a query, by a Python worker that starts too late or is lost: the query is run once more."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from pyspark.errors import StreamingQueryException
from streamproof.properties.witnesses.job import running
from streamproof.properties.witnesses.job.running import QueryOutput, Runner
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark import failures
from streamproof.properties.witnesses.spark.failures import MachineTooBusy, in_own_folder

LATE = "java.io.IOException: Python worker failed to connect back."


def fail(why: str) -> NoReturn:
    with failures.reported_failures():
        raise StreamingQueryException(f"[STREAM_FAILED] … {why}")


def test_a_worker_that_starts_too_late_is_a_machine_too_busy() -> None:
    with pytest.raises(
        MachineTooBusy, match=r"machine is too busy: .* 10 s to start.*; run again with .*\(the log is "
    ):
        fail(LATE)


@pytest.mark.parametrize(
    ("whys", "message"),
    [
        ([LATE], None),
        ([LATE, LATE], "machine is too busy"),
        (["ZeroDivisionError: division by zero"], "division by zero"),
    ],
    ids=["late once", "late twice", "of another failure"],
)
def test_what_failed_on_a_busy_machine_is_run_once_more_and_nothing_else(whys: list[str], message: str | None) -> None:
    left = [*whys]

    def run(folder: Path) -> str:
        return fail(left.pop(0)) if left else "done"

    with nullcontext() if message is None else pytest.raises(failures.StreamproofError, match=message):
        assert in_own_folder(run) == "done"
    assert left == []


def test_a_job_s_query_on_a_busy_machine_is_run_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []

    def query_in(runner: Runner, spark: None, folder: Path, *of: object) -> SimpleNamespace:
        folders.append(folder)
        return SimpleNamespace(declaration=SimpleNamespace(), run_all=None)

    monkeypatch.setattr(running, "query_over", query_in)
    monkeypatch.setattr(running, "output_of", lambda *of: fail(LATE) if len(folders) == 1 else QueryOutput([]))
    monkeypatch.setattr(running, "session_for_query", lambda settings, any_provider: nullcontext())
    assert Runner(lambda rows: rows, []).run([], run=RunOptions(partitions=1)) == QueryOutput([])
    assert len(set(folders)) == 2

"""What a check says when the system ends a process that it depends on: Spark's JVM, or a Python worker."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults import MARK, TIMEOUT_S, end_processes, processes_left, processes_of, streamproof

DIED = (
    r"error: Spark's JVM died: it was killed \(SIGKILL\), as the system does when memory runs out: .+; the log is (\S+)"
)


@contextmanager
def killed(folder: Path, step: str, find: Callable[[str], list[int]], *more: str) -> Iterator[tuple[int, str, str]]:
    """Start a check, wait for a step, kill the processes that are found then, and return exit, stdout and stderr."""
    mark = uuid.uuid4().hex
    command = streamproof("check", "table_table_join", "--only", "spark", "--histories", "60", *more)
    out, err = folder / "out", folder / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, MARK: mark}, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        try:
            found: list[int] = []
            until = time.monotonic() + TIMEOUT_S
            while not (step in err.read_text() and (found := find(mark))):
                assert process.poll() is None, err.read_text()
                assert time.monotonic() < until, err.read_text()
                time.sleep(0.05)
            for one in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            code = process.wait(TIMEOUT_S)
            yield code, out.read_text(), err.read_text()
            assert not processes_left(mark)
        finally:
            process.kill()
            process.wait()
            end_processes(mark)


def jvm(mark: str) -> list[int]:
    """Spark's JVM, by the mark of its command, once a query has Python workers."""
    return called(mark, b"SparkSubmit") if workers(mark) else []


def workers(mark: str) -> list[int]:
    """The Python workers, by the mark of their command."""
    return called(mark, b"pyspark.daemon")


def called(mark: str, word: bytes) -> list[int]:
    """The processes of a mark with a word on their command line."""
    found = []
    for process in processes_of(mark):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if word in (Path("/proc") / str(process) / "cmdline").read_bytes():
                found.append(process)
    return found


def error_of(said: str) -> str:
    """The first line of an error."""
    return next(line for line in said.splitlines() if line.startswith("error: "))


def test_a_killed_jvm_is_no_verdict_and_what_was_done_is_reported(tmp_path: Path) -> None:
    with killed(tmp_path, "definitions in one query", jvm) as (code, out, said):
        assert code == 3, said
        assert "Traceback" not in said
        died = re.fullmatch(DIED, error_of(said))
        assert died is not None, said
        assert Path(died[1]).is_file()
        assert re.search(r"changelog +│ inconclusive", out), out
        assert "table_table_join, on Spark: inconclusive" in out


@pytest.mark.weekly("a minute: CI kills a worker of an operator, and the JVM")
def test_a_killed_worker_is_never_a_violation(tmp_path: Path) -> None:
    with killed(tmp_path, "definitions in one query", workers) as (code, out, said):
        assert code in (0, 2, 3), out + said
        assert "Traceback" not in said
        assert code != 3 or error_of(said).startswith("error: the Spark query failed: ")

"""What `streamproof spec` makes of hostile modules, of a TLC that dies, and of files that are the user's.

A script plays Java, so that it ends as no model makes the real one end, and costs nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from faults import MARK, Fault, assert_ends_as_it_must, end_processes, heed_signals, processes_left, streamproof

MODULE = "---- MODULE M ----\nVARIABLE x\nInit == x = 0\nNext == x' = x\nLow == x < 1\n====\n"
CONFIGURATION = "INIT Init\nNEXT Next\nINVARIANT Low\n"
VERSION = """#!/bin/sh
case "$*" in *-version*) echo 'openjdk version "17.0.1"' >&2; exit 0;; esac
"""
GOOD: Mapping[str, str | bytes] = {"M.tla": MODULE, "M.cfg": CONFIGURATION}
CHECK = ("spec", "check", "M.tla")
SUCCESS = """@!@!@STARTMSG 2193:0 @!@!@
Model checking completed. No error has been found.
@!@!@ENDMSG 2193 @!@!@
@!@!@STARTMSG 2199:0 @!@!@
2 states generated, 2 distinct states found, 0 states left on queue.
@!@!@ENDMSG 2199 @!@!@
"""


def prints(text: str, code: int = 0) -> str:
    return f"cat <<'END'\n{text}\nEND\nexit {code}"


def runnable(folder: Path) -> None:
    (folder / "jdk" / "bin" / "java").chmod(0o755)


def fault(
    name: str,
    says: str,
    *,
    command: tuple[str, ...] = CHECK,
    given: Mapping[str, str | bytes] = {},
    java: str = "exit 9",
    exit: int = 3,
    **more: object,
) -> Fault:
    """A case with a script in Java's place."""
    files = {**GOOD, **given, "jdk/bin/java": VERSION + java + "\n"}
    prepare: Callable[[Path], None] = runnable
    return Fault(name, command, says, exit, files, prepare, {"JAVA_HOME": "jdk"}, **more)  # type: ignore[arg-type]


FAULTS = [
    # What is no module, and no configuration.
    fault("an empty module", r"error: M\.tla:1: it isn't a TLA\+ module: it has no line .+", given={"M.tla": ""}),
    fault("too long a name", r"error: n+\.tla: no such file: .+", command=("spec", "check", "n" * 300 + ".tla")),
    fault("a name that steers", r"error: \\x1b\[2J\.tla: no such file: .+", command=("spec", "check", "\x1b[2J.tla")),
    # How TLC ends.
    fault(
        "TLC is killed",
        r"error: M\.cfg: Java was killed from outside \(SIGKILL\), as a system does .+",
        java="kill -9 $$",
    ),
    fault(
        "a check out of time",
        "",
        command=(*CHECK, "--timeout", "1"),
        java="exec sleep 60",
        exit=2,
        reports="^inconclusive +M +M.cfg: stopped after 1 seconds",
    ),
    # Where it writes.
    fault(
        "a report on a full device",
        r"error: /dev/full: can't be written \(No space left on device\)",
        command=(*CHECK, "--json", "/dev/full"),
        java=prints(SUCCESS),
    ),
]


@pytest.mark.parametrize("case", [pytest.param(one, id=one.name) for one in FAULTS])
def test_a_fault_of_specifications_ends_as_it_must(case: Fault, tmp_path: Path) -> None:
    assert_ends_as_it_must(case, tmp_path)
    assert [path.name for path in (tmp_path / "tmp").glob("pytla-*")] == []


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.in_ci("15")
def test_a_command_that_is_stopped_at_any_moment_leaves_neither_process_nor_folder(
    tmp_path: Path, by: signal.Signals
) -> None:
    (tmp_path / "tmp").mkdir()
    for name, text in {**GOOD, "jdk/bin/java": VERSION + "exec sleep 600\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(str(text))
    runnable(tmp_path)
    mark = uuid.uuid4().hex
    own = {"TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path), "JAVA_HOME": "jdk", MARK: mark}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    quiet |= {"preexec_fn": heed_signals}
    try:
        for moment in range(10):
            running = subprocess.Popen(streamproof(*CHECK), cwd=tmp_path, env={**os.environ, **own}, **quiet)  # type: ignore[call-overload]
            try:
                running.wait(0.1 + moment * 0.2)
            except subprocess.TimeoutExpired:
                running.send_signal(by)
            _, said = running.communicate(timeout=600)
            if moment >= 5:  # before, Python itself may be interrupted while it imports
                assert b"Traceback" not in said, said.decode()
        assert processes_left(mark) == []
    finally:
        end_processes(mark)
    # What a process that was killed before TLC started has left is removed by the next one.
    (tmp_path / "jdk" / "bin" / "java").write_text(VERSION + prints(SUCCESS))
    done = subprocess.run(streamproof(*CHECK), cwd=tmp_path, env={**os.environ, **own}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert [path.name for path in (tmp_path / "tmp").glob("pytla-*")] == []

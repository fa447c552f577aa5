"""Faults and hostile input as a table: what is given, the command, how it must end, what it says first, what is left.

Each command runs as a user runs it, in a process of its own, with a folder, a home and a temporary directory of its
own. Whatever the fault, there is no traceback and no control character, and no process of the command is left.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MARK = "STREAMPROOF_TEST_RUN"
"""An environment variable that all processes of a command inherit: by its value they are found."""
TIMEOUT_S = 120


@dataclass(frozen=True)
class Fault:
    """One case.

    Attributes:
        name: The case in a few words; the test's id.
        command: What follows `streamproof`; `{folder}` stands for the case's folder, which is the working directory.
        says: A regular expression that the first line of stderr matches in full; with `after_steps` the first line
            that begins with `error: `.
        exit: How the command must end.
        given: Files put into the folder beforehand, by name; `bytes` as they are.
        prepare: Called with the folder beforehand, for what is no plain file.
        environment: Variables that are set; one that is None is removed.
        shell: A shell command in which `"$@"` is the command, for redirections and limits: `ulimit -n 20; exec "$@"`.
        left: What is in the folder afterwards besides what was given: names, sorted; folders end in `/`.
        marks: pytest's marks, such as `spark`.
        after_steps: Whether lines of progress may come first.
        reports: A regular expression that is found in stdout.
    """

    name: str
    command: Sequence[str]
    says: str
    exit: int = 3
    given: Mapping[str, str | bytes] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda folder: None
    environment: Mapping[str, str | None] = field(default_factory=dict)
    shell: str = 'exec "$@"'
    left: Sequence[str] = ()
    marks: Sequence[str] = ()
    after_steps: bool = False
    reports: str = ""


def assert_ends_as_it_must(fault: Fault, folder: Path) -> None:
    """Run a case in an empty folder, and check what it must do."""
    work, home, temporary = (folder / name for name in ("work", "home", "tmp"))
    for made in (work, home, temporary):
        made.mkdir()
    for name, content in fault.given.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    fault.prepare(work)
    before = listing(work)
    words = [word.replace("{folder}", str(work)) for word in fault.command]
    mark = uuid.uuid4().hex
    own = {"TMPDIR": str(temporary), "HOME": str(home), MARK: mark, **fault.environment}
    environment = {name: value for name, value in {**os.environ, **own}.items() if value is not None}
    try:
        ended = subprocess.run(
            ["bash", "-c", fault.shell, "bash", *streamproof(*words)],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        said, out = (stream.decode(errors="replace") for stream in (ended.stderr, ended.stdout))
        printed = f"exit {ended.returncode}\nstdout:\n{out}\nstderr:\n{said}"
        assert ended.returncode == fault.exit, printed
        assert "Traceback" not in out + said, printed
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out + said), printed
        lines = said.splitlines()
        if fault.after_steps:
            lines = [line for line in lines if line.startswith("error: ")]
        assert re.fullmatch(fault.says, lines[0] if lines else ""), printed
        assert re.search(fault.reports, out), printed
        new = [name for name in listing(work) if name not in before]
        assert new == sorted(fault.left), f"left in the folder: {new}\n{printed}"
        assert not processes_left(mark), printed
    finally:
        end_processes(mark)


def streamproof(*words: str) -> list[str]:
    """The command line of `streamproof` with this Python."""
    return [sys.executable, "-m", "streamproof.properties.cli.entry", *words]


def heed_signals() -> None:
    """Let a process that is being started heed signals: what runs the tests in the background may have ignored them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def listing(folder: Path) -> list[str]:
    """Everything below a folder, sorted; folders end in `/`."""
    return sorted(f"{path.relative_to(folder)}{'/' * path.is_dir()}" for path in folder.rglob("*"))


def processes_of(mark: str) -> list[int]:
    """The processes that inherited a mark and still run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            inherited = f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0")
            running = (process / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:  # it ended meanwhile, or is somebody else's
            continue
        if inherited and running:
            found.append(int(process.name))
    return found


def processes_left(mark: str, seconds: float = 20) -> list[int]:
    """The processes of a mark that are left: a JVM takes a moment to notice that its parent is gone."""
    deadline = time.monotonic() + seconds
    while (found := processes_of(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def end_processes(mark: str) -> None:
    """Kill what a failed test left."""
    for process in processes_of(mark):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue

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
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MARK = "STREAMPROOF_TEST_RUN"
"""An environment variable that all processes of a command inherit: by its value they are found."""
TIMEOUT_S = 600
"""How long a moment of a command, and its end, are waited for."""
OLDER = {
    "history.jsonl": '{"operator": "range_aggregate", "options": {"preceding_ms": 10, "aggregate": "count"}}\n'
    '{"input": "events", "key": "a", "value": 1, "timestamp": 0}\n',
    "counterexample.txt": "violated",
}
"""A counterexample of an operator that was saved earlier."""


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
    """Everything below a folder but what Python compiles, sorted; folders end in `/`."""
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return sorted(f"{path.relative_to(folder)}{'/' * path.is_dir()}" for path in found)


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


class Running:
    """A command that runs: what it has said so far, and where it works.

    Args:
        command: What follows the program.
        folder: An empty folder, in which it has one to work in, a home and a temporary directory.
        prepare: Called with the temporary directory beforehand.
        program: Returns the command line of the program and what follows it.
        given: Files put into the folder where it works, by name.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        prepare: Callable[[Path], None] = lambda temporary: None,
        program: Callable[..., list[str]] = streamproof,
        given: Mapping[str, str] = {},
    ) -> None:
        self.work, self.temporary, home = (folder / name for name in ("work", "tmp", "home"))
        for made in (self.work, self.temporary, home):
            made.mkdir()
        prepare(self.temporary)
        self.older = self.work / ".streamproof" / "counterexamples" / "range_aggregate" / "older"
        self.older.mkdir(parents=True)
        for name, text in OLDER.items():
            (self.older / name).write_text(text)
        for name, text in given.items():
            (self.work / name).write_text(text)
        self.mark = uuid.uuid4().hex
        own = {"TMPDIR": str(self.temporary), "HOME": str(home), MARK: self.mark, "PYTHONUNBUFFERED": "1"}
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # Kafka's jars
        self.process = subprocess.Popen(
            program(*command),
            cwd=self.work,
            env={**os.environ, "XDG_CACHE_HOME": cache, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test run in the background of a shell has Ctrl-C ignored, and its children with it.
            preexec_fn=heed_signals,
        )
        self.out: list[str] = []
        self.err: list[str] = []
        self.readers = [
            threading.Thread(target=into.extend, args=(stream,), daemon=True)
            for into, stream in ((self.out, self.process.stdout), (self.err, self.process.stderr))
        ]
        for reader in self.readers:
            reader.start()

    def wait_until(self, true: Callable[[Running], object]) -> None:
        end = time.monotonic() + TIMEOUT_S
        while not true(self):
            assert self.process.poll() is None, f"it ended before:\n{self.printed()}"
            assert time.monotonic() < end, f"it never came:\n{self.printed()}"
            time.sleep(0.01)

    def ended(self) -> int:
        self.process.wait(TIMEOUT_S)
        for reader in self.readers:
            reader.join(TIMEOUT_S)
        return self.process.returncode

    def printed(self) -> str:
        return f"exit {self.process.returncode}\nstdout:\n{''.join(self.out)}\nstderr:\n{''.join(self.err)}"

"""Reads the kind, peak memory and CPU seconds of each process of a tree from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from streamproof.reference.core.errors import MissingTool

PROC = Path("/proc")
EVERY_SECONDS = 0.25
PYTHON, JAVA, WORKERS = "python", "java", "workers"
KINDS = (PYTHON, JAVA, WORKERS)


THREADS: Mapping[str, tuple[str, ...]] = {
    "tasks": ("Executor task", "stdout writer", "Writer for", "Worker"),
    "state": ("stateConnection", "rocksdb", "state-store"),
    "compiler": ("C1 Compiler", "C2 Compiler"),
    "garbage collector": ("GC Thread", "VM Thread"),
    "planning": ("stream executio", "Thread-"),
}
"""The prefixes of a JVM's thread names (the system keeps 15 letters), by their tasks in Spark."""
OTHERS = "others"


class Process(NamedTuple):
    """A process, or a thread of a process.

    Attributes:
        name: Its own name.
        parent: The number of the parent process.
        started: The start time of the process, which distinguishes it from a later process with the same number.
        alone: Its CPU seconds.
        waited: The CPU seconds of the children that the process has waited for.
    """

    name: str
    parent: int
    started: int
    alone: float
    waited: float


def require_proc() -> None:
    """Raise `MissingTool` if there is no /proc to read."""
    if not (PROC / "self" / "stat").exists():
        raise MissingTool("this benchmark reads /proc, which this system lacks: run it on Linux")


def processes(folder: Path = PROC) -> dict[int, Process]:
    """Return every process or thread in a folder of /proc, by its number."""
    found: dict[int, Process] = {}
    with contextlib.suppress(OSError):  # the process has ended, or there is no /proc
        for number in filter(str.isdigit, os.listdir(folder)):
            with contextlib.suppress(OSError):
                found[int(number)] = process_of((folder / number / "stat").read_text())
    return found


def process_of(text: str) -> Process:
    """Parse the system's text on a process; its name is in brackets, and may contain any character."""
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    used = [int(count) / os.sysconf("SC_CLK_TCK") for count in rest[11:15]]
    return Process(name, int(rest[1]), int(rest[19]), used[0] + used[1], used[2] + used[3])


def doing(name: str) -> str:
    """Return the task of a JVM's thread with this name."""
    return next((what for what, starts in THREADS.items() if name.startswith(starts)), OTHERS)


def tree_of(root: int, among: dict[int, Process]) -> dict[int, str]:
    """Return the kind of a process, of its JVM, and of all its other descendants, by process number."""
    found: dict[int, str] = {}
    for number, process in among.items():
        line = number
        while line in among and line != root:
            line = among[line].parent
        if line == root:
            found[number] = PYTHON if number == root else JAVA if process.name == "java" else WORKERS
    return found


def peak_of(number: int) -> int:
    """Return the largest resident memory (bytes) of a process so far, or 0 if the process has ended."""
    with contextlib.suppress(OSError):
        for line in (PROC / str(number) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def ignores_children(number: int) -> bool:
    """Return whether a process has told the system to forget its ended children and their CPU seconds."""
    with contextlib.suppress(OSError):
        for line in (PROC / str(number) / "status").read_text().splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    return False


class CpuClock:
    """Counts the CPU seconds of a process tree by kind, including ended processes.

    The system adds the CPU seconds of an ended process to its parent, once the parent has waited for the process. The
    daemon of Spark's Python workers doesn't wait for them, so this class samples the workers' seconds periodically, and
    keeps the last sample.
    """

    def __init__(self, root: int) -> None:
        require_proc()
        self._root = root
        self._seen: dict[int, tuple[Process, str]] = {}
        self._ended = dict.fromkeys(KINDS, 0.0)
        self._threads: dict[tuple[int, int], Process] = {}
        self._own = 0.0
        self._lock = threading.Lock()

    def read(self) -> dict[str, float]:
        """Return the CPU seconds so far, by kind."""
        with self._lock:
            self._look()
            used = dict(self._ended)
            for process, kind in self._seen.values():
                used[kind] += process.alone + process.waited
            used[PYTHON] -= self._own
            return used

    def threads(self) -> dict[str, float]:
        """Return the CPU seconds of the JVM so far, by its threads' tasks; for an ended thread, its last sample."""
        with self._lock:
            self._look()
            used = dict.fromkeys([*THREADS, OTHERS], 0.0)
            for thread in self._threads.values():
                used[doing(thread.name)] += thread.alone
            return used

    @contextlib.contextmanager
    def running(self) -> Iterator[CpuClock]:
        """Sample the processes periodically, in a thread whose own CPU seconds don't count."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(EVERY_SECONDS):
                with self._lock:
                    self._look()
                    if self._root == os.getpid():
                        self._own = time.thread_time()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield self
        finally:
            done.set()
            watcher.join()

    def _look(self) -> None:
        there = processes()
        now = {number: (there[number], kind) for number, kind in tree_of(self._root, there).items()}
        for number, (process, kind) in self._seen.items():
            again = now.get(number)
            ended = again is None or again[0].started != process.started
            if ended and (process.parent not in there or ignores_children(process.parent)):
                self._ended[kind] += process.alone + process.waited
            if kind == JAVA:
                threads = processes(PROC / str(number) / "task")
                self._threads |= {(one, thread.started): thread for one, thread in threads.items()}
        self._seen = now

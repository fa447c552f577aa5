"""Runs queries in a process that is really killed, and continues the queries in this process's Spark session."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....reference.core.errors import StreamproofError
from ...system.resources import Spent
from ...witnesses.job.dying.faults import AT, Seen
from ...witnesses.job.sinks.files import LOG
from ...witnesses.spark.platform.jvm import ending_with_parent
from . import dying, tracing
from .contracts import SinkContract
from .faults import Fault
from .places import AFTER, BEFORE, DyingPlace
from .playing import FaultedQuery, zombies_place

WAIT_S = 120.0
"""The time limit (s) for queries to reach the point where they are killed."""
TRACED = 4
"""The largest number of file operations of a commit at each of which a process is killed."""
_LOOKS_S = 0.002


@dataclass
class Dying:
    """A query that runs in a process to be killed.

    Attributes:
        play: The same query in this process, which continues after the other process was killed.
        fault: The fault.
        marker: The file that the query creates when it has reached the point where it waits to be killed.
    """

    play: FaultedQuery
    fault: Fault
    marker: Path

    @property
    def place(self) -> DyingPlace:
        """The point of a write at which the query waits for its death."""
        if self.fault.waits:
            return zombies_place(self.play.sink)
        assert self.fault.place is not None
        return self.fault.place

    @property
    def is_watched(self) -> bool:
        """Whether this process stops the query as soon as the sink's log file of the batch exists."""
        return is_watched(self.play.sink, self.fault)

    @property
    def ended(self) -> str | None:
        """The error that ended the query; None: the query hasn't ended."""
        path = Path(f"{self.marker}.ended")
        return path.read_text() if path.exists() else None

    def told(self) -> dict[str, Any]:
        """Return the query's description for `dying.py`, the script that runs in the process to be killed."""
        return {
            "sink": self.play.sink.name,
            "folder": str(self.play.folder),
            "target": self.play.target,
            "place": None if self.is_watched else self.place,
            "batch": self.fault.batch,
            "marker": str(self.marker),
        }


def is_watched(sink: SinkContract, fault: Fault) -> bool:
    """Return whether to stop a query by watching its sink's log files, because Spark's own sink calls no function of
    streamproof.
    """
    return fault.place == AFTER and not fault.waits and sink.name.startswith("file-")


def dying_of(play: FaultedQuery, fault: Fault) -> Dying:
    """Write the input of a query's first batches, and return the query, which a fault will kill."""
    play.make_available(fault.batch + 1)
    return Dying(play, fault, play.folder / f"waits: {play.sink.name}")


def kill_together(queries: Sequence[Dying], folder: Path) -> float:
    """Run queries in one process until each waits at its planned point, kill the process, and record queries that never
    reached their point.

    Returns:
        The CPU time of the killed process and its JVM (s).
    """
    with _process(queries, folder) as process:
        _await(queries, process.pids)
    for query in queries:
        if not query.marker.exists():
            query.play.seen.unmet = f"its query doesn't reach the point where it is killed: {query.ended or 'in time'}"
    return process.cpu_seconds


def seen_after_death(query: Dying) -> Seen:
    """Read the target after the query's process was killed, and continue the query in this process."""
    if not query.play.seen.unmet:
        query.play.observe()
        query.play.finish()
    return query.play.seen


def zombies(queries: Sequence[Dying], folder: Path) -> float:
    """Let old queries wait in another process while their successors write here; then let the old queries continue to
    write.

    Returns:
        The CPU time of the other process and its JVM (s).
    """
    with _process(queries, folder) as process:
        _await(queries, process.pids)
        successors = [query for query in queries if query.marker.exists()]
        for query in successors:
            if why := query.play.run_until(AT + 2):
                query.play.seen.refusals.append(f"the old query's successor: {why}")
            query.play.observe()
            Path(f"{query.marker}.go").touch()
        end = time.monotonic() + WAIT_S
        while any(query.ended is None for query in successors) and time.monotonic() < end:
            time.sleep(0.05)
    for query in queries:
        if query not in successors:
            query.play.seen.unmet = f"its query doesn't reach the point where it waits: {query.ended or 'in time'}"
            continue
        if query.ended:
            query.play.seen.refusals.append(f"the old query: {query.ended}")
        query.play.observe()
        query.play.finish()
    return process.cpu_seconds


@dataclass
class _Started:
    """A process that runs queries, and its JVM.

    Attributes:
        pids: The process ids, the JVM's first.
        cpu_seconds: The CPU time of the process and its JVM until they were killed (s).
    """

    pids: list[int] = field(default_factory=list)
    cpu_seconds: float = 0.0


@contextlib.contextmanager
def _process(queries: Sequence[Dying], folder: Path) -> Iterator[_Started]:
    """Start queries in another process, and kill this process and its JVM at the end."""
    told = folder / "queries.json"
    told.write_text(json.dumps([query.told() for query in queries]))
    started = _Started()
    with (folder / "process.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", dying.__name__, str(told)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=ending_with_parent(),
        )
        try:
            end = time.monotonic() + WAIT_S
            while not (said := told.with_suffix(".pids")).exists() or len(said.read_text().split()) < 2:
                if process.poll() is not None or time.monotonic() > end:
                    tail = (folder / "process.log").read_text(errors="replace").strip().splitlines()[-1:]
                    raise StreamproofError(f"the process to kill didn't start: {''.join(tail)}")
                time.sleep(0.05)
            started.pids += [int(one) for one in reversed(said.read_text().split())]
            yield started
        finally:
            before = Spent.now()
            for pid in started.pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.kill()
            process.wait()
            for pid in started.pids:
                _await_end(pid)
            started.cpu_seconds = max(0.0, -Spent.now().since(before).cpu_seconds)


def _await_end(pid: int) -> None:
    """Wait until a killed process has ended and released its files and locks."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return
        except OSError:
            return
        time.sleep(_LOOKS_S)


def _await(queries: Sequence[Dying], pids: Sequence[int]) -> None:
    """Wait until each query has stopped at its planned point or has ended; stop the JVM when a watched query's log file
    exists.
    """
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        waiting = [query for query in queries if not query.marker.exists() and query.ended is None]
        if not waiting:
            return
        for query in waiting:
            if query.is_watched and (Path(query.play.target) / LOG / str(query.fault.batch)).exists():
                os.kill(pids[0], signal.SIGSTOP)
                if not (query.play.checkpoint / "commits" / str(query.fault.batch)).exists():
                    query.marker.touch()
                return
        time.sleep(_LOOKS_S)


def killed_in_commit(play: FaultedQuery) -> Iterator[tuple[str, FaultedQuery]]:
    """Kill a writing process at several operations on the target's files; for each kill, yield the operation and the
    query to continue.

    Raises:
        StreamproofError: This system can't trace processes.
    """
    play.kept = play.folder / "kept"
    play.stops(BEFORE, AT)
    if not play.dies(AT + 1):
        return
    before, rows = play.save(Path(play.target).parent, "target before"), play.kept / f"{AT}.parquet"
    play.kept, checkpoint = None, play.save(play.checkpoint, "checkpoint before")
    count = _traced(0, play, rows)["operations"]
    for number in [count * (2 * part + 1) // (2 * TRACED) + 1 for part in range(min(TRACED, count))]:
        play.restore(before, Path(play.target).parent)
        play.restore(checkpoint, play.checkpoint)
        play.seen = Seen(play.seen.batches)
        said = _traced(number, play, rows)
        yield f"operation {number} of {count}, {said.get('killed at', 'after its end')}", play


def _traced(number: int, play: FaultedQuery, rows: Path) -> dict[str, Any]:
    target = str(Path(play.target).parent)
    write = [sys.executable, "-m", dying.__name__, play.sink.name, play.target, str(AT), str(rows)]
    command = [sys.executable, tracing.__file__, str(number), target, *write]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_S)
    try:
        found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        why = (ended.stderr.strip().splitlines() or ["the process prints no result"])[-1]
        raise StreamproofError(f"no process can be killed in its commit here: {why}") from None
    return found

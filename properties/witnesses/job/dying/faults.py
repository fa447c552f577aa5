"""Faults that a sink's query undergoes in one process; each fault is a sequence of runs of the query.

The command `streamproof sinks` causes these faults in the queries of the sinks that it lists, and `invariants` in the
query of a user's sink.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

AT = 1
"""The index of the batch in which a fault happens; other batches come before and after."""
ATTEMPTS = 3
"""The number of restarts after which a query counts as stuck."""
JOINED_S = 30
"""The time limit (s) for an old query to reach its pause, and to end after the pause."""
_LOOKS_S = 0.05


@dataclass
class Seen:
    """The observations of a sink under a fault.

    Attributes:
        readings: The results of the readers during the run.
        end: The results of the readers at the end.
        batches: The batches whose rows the target should contain at the end.
        second: Whether the target should also contain a second query's rows.
        refusals: The errors with which the sink or Spark refused an action.
        stuck: The error that permanently stops the query or a reader; empty: no such error.
        unmet: The reason why the fault didn't happen; empty if the fault happened.
    """

    batches: Sequence[int]
    readings: list[Any] = field(default_factory=list)
    end: Any = field(default_factory=dict)
    second: bool = False
    refusals: list[str] = field(default_factory=list)
    stuck: str = ""
    unmet: str = ""


class FaultOutcome(NamedTuple):
    """The outcome of a fault, besides the rows at the end.

    Attributes:
        unmet: The reason why the fault didn't happen; empty if the fault happened.
        stuck: The error that permanently stops the query or a reader; empty: no such error.
        refusals: The errors with which the sink or Spark refused an action.
        torn: The number of histories of which a reader has found only a part of a batch.
        lines: The batches in which the fault happened, each with the number of the function's line at which it
            happened.
    """

    unmet: str = ""
    stuck: str = ""
    refusals: Sequence[str] = ()
    torn: int = 0
    lines: Sequence[tuple[int, int]] = ()


NO_FAULT = FaultOutcome()


class LateWrite(NamedTuple):
    """A write of a query that continues while the query's successor runs.

    Attributes:
        write: Writes the batch, and waits before a line of the user's function.
        marker: The file that the write creates when it waits; the write continues when a file with the same name and
            the ending `.go` exists.
        until: The number of batches that the successor writes while the old query waits.
    """

    write: Callable[[], None]
    marker: Path
    until: int = AT + 2

    @property
    def waits(self) -> bool:
        """Return whether the write waits, or has waited."""
        return self.marker.exists()


class QueryUnderFault(ABC):
    """A sink's query that a fault stops, restarts and continues.

    Attributes:
        folder: The query's own folder.
        checkpoint: The folder of the query's checkpoint.
        folders: The folder of each input's files.
        batches: The rows of each batch.
        seen: The observations.
        files_per_batch: The number of files of each input that a micro-batch reads.
    """

    folder: Path
    checkpoint: Path
    folders: dict[str, Path]
    batches: list[Any]
    seen: Seen
    files_per_batch: int
    steps: int

    @abstractmethod
    def run_until(self, batches: int) -> str:
        """Start the query, and wait until it has written the first batches; return the reason of a failure, or an empty
        text.
        """

    @abstractmethod
    def make_available(self, count: int) -> None:
        """Write the files of the first batches."""

    @abstractmethod
    def observe(self) -> None:
        """Record the readers' results during the run; a reader may fail at this time."""

    @abstractmethod
    def read_end(self) -> None:
        """Record the readers' results at the end."""

    @abstractmethod
    def errors(self) -> Iterator[int]:
        """Plan errors, one at a time; yield the number of batches to run until each error."""

    @abstractmethod
    def dies(self, batches: int) -> bool:
        """Run until the query fails as planned; if the query doesn't fail, record that the fault didn't happen."""

    @abstractmethod
    def late_writes(self) -> Iterator[LateWrite]:
        """Let the query die before it writes the batch of the fault; yield the dead query's writes, which continue."""

    @abstractmethod
    def second_query(self) -> QueryUnderFault | None:
        """Return a second query with its own checkpoint and rows, or None after recording why no second query is
        possible.
        """

    @abstractmethod
    def target_files(self) -> list[Path]:
        """Return the files of the target."""

    @abstractmethod
    def fill_disk(self) -> Iterator[Mapping[int, int]]:
        """Prepare a batch whose write fails; yield the maximum size of a file (bytes) by the id of a process."""

    def remove_files(self, files: Sequence[Path]) -> None:
        """Remove files of the target; the rows of the batches before the fault are no longer expected."""
        for path in files:
            path.unlink()
        self.seen.batches = range(AT, len(self.batches))

    def finish(self) -> Seen:
        """Run the query until all batches are written, and read the target."""
        why = ""
        for _ in range(ATTEMPTS):
            if not (why := self.run_until(len(self.batches))):
                self.read_end()
                return self.seen
        self.seen.stuck = why
        return self.seen

    def save(self, folder: Path, name: str) -> Path:
        """Save a folder, and return the copy's path."""
        saved = self.folder / name
        if folder.is_dir():
            shutil.copytree(folder, saved)
        return saved

    def restore(self, saved: Path, to: Path) -> None:
        """Restore a folder from its saved copy."""
        shutil.rmtree(to, ignore_errors=True)
        if saved.exists():
            shutil.copytree(saved, to)

    def delete_checkpoint(self) -> None:
        """Delete the checkpoint, so that the next start reads all files in one micro-batch."""
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        self.files_per_batch = len(self.batches) * self.steps


def lost_connection(query: QueryUnderFault) -> Seen:
    """Raise an error at some lines of a write, once at each line, and restart the query in the same process."""
    for batches in query.errors():
        if not query.dies(batches):
            return query.seen
        query.observe()
    return query.seen if query.seen.unmet else query.finish()


def zombie(query: QueryUnderFault) -> Seen:
    """Let the waiting write of an old query continue after the query's successor has repeated and committed the
    batch.
    """
    errors: list[str] = []
    for late in query.late_writes():

        def write(late: LateWrite = late) -> None:
            try:
                late.write()
            except Exception as error:
                errors.append(str(error))

        old = threading.Thread(target=write, daemon=True)
        old.start()
        end = time.monotonic() + JOINED_S
        while not late.waits and old.is_alive() and time.monotonic() < end:
            old.join(_LOOKS_S)
        why = query.run_until(late.until)
        query.observe()
        Path(f"{late.marker}.go").touch()
        old.join(JOINED_S)
        if old.is_alive():
            errors.append(f"it doesn't end within {JOINED_S} s")
        query.seen.refusals += [f"the old query: {one}" for one in errors]
        query.seen.refusals += [f"the old query's successor: {why}"] * bool(why)
        errors.clear()
        query.observe()
    return query.seen if query.seen.unmet else query.finish()


def two_queries(query: QueryUnderFault) -> Seen:
    """Run a second query with its own checkpoint and rows against the same target."""
    other = query.second_query()
    if other is None:
        return query.seen
    for batches in (min(2, len(query.batches)), len(query.batches)):
        for one, name in ((query, "first"), (other, "second")):
            if why := one.run_until(batches):
                query.seen.refusals.append(f"the {name} query: {why}")
    query.seen.second = True
    return query.finish()


def full_disk(query: QueryUnderFault) -> Seen:
    """Limit the size of files while the query writes the batch, then remove the limit."""
    if sys.platform != "linux":
        query.seen.unmet = "only Linux limits the files of another process"
        return query.seen
    for limits in query.fill_disk():
        with _small_files(limits):
            why = query.run_until(AT + 1)
        query.observe()
        if why:
            return query.finish()
    query.seen.unmet = query.seen.unmet or "the limit didn't stop the batch's write"
    return query.seen


@contextlib.contextmanager
def _small_files(limits: Mapping[int, int]) -> Iterator[None]:
    """Limit the size of the files (bytes) that processes write, by the ids of the processes."""
    import resource

    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in limits}
    for pid, size in limits.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, before[pid][1]))
    try:
        yield
    finally:
        for pid, limit in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)


def retention(query: QueryUnderFault) -> Seen:
    """Remove the files of the first batch from the target, as a storage bucket's lifecycle rule does."""
    query.run_until(AT)
    old = {path: path.stat().st_mtime_ns for path in query.target_files()}
    query.run_until(AT + 1)
    gone = [path for path, time in old.items() if path.exists() and path.stat().st_mtime_ns == time]
    if not gone:
        query.seen.unmet = (
            "each of its files is also written by later batches" if old else "its target isn't a folder of files"
        )
        return query.seen
    query.remove_files(gone)
    return query.finish()


def old_checkpoint(query: QueryUnderFault) -> Seen:
    """Restore the first batch's checkpoint after three batches, so that one micro-batch repeats the later rows."""
    query.run_until(AT)
    saved = query.save(query.checkpoint, "yesterday")
    query.run_until(AT + 2)
    query.restore(saved, query.checkpoint)
    query.files_per_batch = len(query.batches) * query.steps
    return query.finish()


def deleted_checkpoint(query: QueryUnderFault) -> Seen:
    """Delete the checkpoint after three batches, so that one micro-batch reads the source from its start."""
    query.run_until(AT + 2)
    query.delete_checkpoint()
    return query.finish()


def deleted_checkpoint_latest(query: QueryUnderFault) -> Seen:
    """Delete the checkpoint after three batches, and let the query read only new rows."""
    query.run_until(AT + 2)
    query.delete_checkpoint()
    query.files_per_batch = 1
    for folder in query.folders.values():
        for path in folder.glob("*.parquet"):
            path.unlink()
    return query.finish()


class SinkFault(NamedTuple):
    """A fault that the check can cause in the query of any sink.

    Attributes:
        says: The description of the fault, in one sentence.
        play: Causes the fault in a query.
    """

    says: str
    play: Callable[[QueryUnderFault], Seen]


FAULTS: Mapping[str, SinkFault] = {
    "lost-connection": SinkFault(
        "an error once within the write, and once after it; the process continues", lost_connection
    ),
    "full-disk": SinkFault("files can't grow while the batch is written", full_disk),
    "zombie": SinkFault("an old query continues after its successor has started, and writes last", zombie),
    "two-queries": SinkFault("two queries, each with its own checkpoint, write to one target", two_queries),
    "retention": SinkFault("the target's old files are removed because of their age", retention),
    "old-checkpoint": SinkFault("an old checkpoint is restored", old_checkpoint),
    "deleted-checkpoint": SinkFault(
        "the checkpoint is deleted; the query reads the source from its start", deleted_checkpoint
    ),
    "deleted-checkpoint-latest": SinkFault(
        "the checkpoint is deleted; the query reads only new rows", deleted_checkpoint_latest
    ),
}
"""The faults that can happen to any sink, by name."""


AT_LINES = ("lost-connection", "zombie")
"""The faults that happen at a line of a user's function."""
REREADS = ("old-checkpoint", "deleted-checkpoint")
"""The faults after which one micro-batch reads several batches."""


def lost_or_doubled(expected: Counter[str], found: Counter[str]) -> list[str]:
    """Return the verdicts on the rows at the end: `lost` if rows are missing, `doubled` if other or additional rows
    exist.
    """
    return ["lost"] * bool(expected - found) + ["doubled"] * bool(found - expected)


def is_torn(before: Counter[str], after: Counter[str], found: Counter[str]) -> bool:
    """Return whether a reader has found some of a batch's rows, or new values of some of the batch's keys, but not
    all.
    """
    return len({found[row] >= after[row] for row in after - before}) > 1


def counted(rows: Iterable[Any]) -> Counter[str]:
    """Count equal rows."""
    return Counter(map(repr, rows))

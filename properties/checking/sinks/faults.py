"""The faults of the table of sinks: how each fault is simulated, and when its process is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...witnesses.job.dying.checkpoints import remove, undo_commit
from ...witnesses.job.sinks.files import LOG
from .contracts import SinkContract
from .judging import Seen
from .places import AFTER, BEFORE, BETWEEN, CHECKED, NOWHERE, WITHIN, DyingPlace
from .playing import ROWS, FaultedQuery

AT = 1
"""The number of the batch in which a fault happens; other batches come before and after."""
_FULL = {"spark": 2_600, "python": 600}
"""The file size limit on the full disk (bytes): above the size of a checkpoint's files, below a sink's files."""
_JOINED_S = 30


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        name: The fault's name on the command line.
        says: What happens in the fault, in one sentence.
        play: The function that simulates the fault in this process's session; None: this fault isn't simulated.
        place: The point of a write at which the query's process is really killed; None: no process is killed.
        batch: The number of the batch in which the process is killed.
        is_of_process: Whether the documented guarantees cover the fault: a process dies and restarts from its own
            checkpoint.
        unfit: Returns the reason why the fault can't happen to a sink; empty if it can.
        traced: Whether the query's process is killed at its file operations.
        waits: Whether the process isn't killed, but continues after its successor has started.
        in_invariants: Whether `invariants` simulates the fault on a user's sink.
    """

    name: str
    says: str
    play: Callable[[FaultedQuery], Seen] | None
    place: DyingPlace | None = None
    batch: int = AT
    is_of_process: bool = False
    unfit: Callable[[SinkContract], str] = lambda sink: ""
    traced: bool = False
    waits: bool = False
    in_invariants: bool = False


def death_at(place: DyingPlace, batch: int = AT) -> Callable[[FaultedQuery], Seen]:
    """Return a simulation of a query's death at a point of a write: raise an exception, or restore old files."""

    def play(query: FaultedQuery) -> Seen:
        if query.sink.own is not None and place != WITHIN and not query.sink.memory:
            return _put_back(query, place, batch)
        query.stops(place, batch)
        if not query.dies(batch + 1):
            return query.seen
        query.observe()
        return query.finish()

    return play


def _put_back(query: FaultedQuery, place: DyingPlace, batch: int) -> Seen:
    """Restore a target and a checkpoint to an earlier point of a write, because a sink of Spark's own calls no
    function.
    """
    query.run_until(batch)
    target = Path(query.target)
    before = query.save(target, "target before")
    query.run_until(batch + 1)
    if place == BEFORE:
        query.restore(before, target)
    undo_commit(query.checkpoint)
    query.observe()
    return query.finish()


def in_commit(query: FaultedQuery) -> Seen:
    """Remove a batch from the log of Spark's file sink: the batch's files exist, but no log names them."""
    if not query.sink.name.startswith("file-"):
        query.seen.unmet = "only the log of Spark's file sink can be restored to before a commit"
        return query.seen
    query.run_until(AT + 1)
    logged = [*Path(query.target).rglob(f"{LOG}/{AT}*")]
    remove(*logged)
    undo_commit(query.checkpoint)
    query.observe()
    return query.finish()


def repeated(query: FaultedQuery) -> Seen:
    """Remove the batch's entry from the commit log, and restart the query, twice."""
    for _ in range(2):
        query.run_until(AT + 1)
        undo_commit(query.checkpoint)
    query.observe()
    return query.finish()


def lost_connection(query: FaultedQuery) -> Seen:
    """Raise an error once within a write and once after a write; restart the query in the same process."""
    for place in (WITHIN, AFTER):
        if place in query.sink.places and (place == WITHIN or query.sink.own is None):
            query.stops(place, AT)
            if not query.dies(AT + 1):
                return query.seen
            query.observe()
    return query.finish()


def zombie(query: FaultedQuery) -> Seen:
    """Let an old query's waiting write continue after its successor has repeated the batch and committed the next."""
    if query.sink.write is None:
        query.seen.unmet = "a sink of Spark's own calls no function"
        return query.seen
    query.kept = query.folder / "kept"
    query.stops(BEFORE, AT)
    if not query.dies(AT + 1):
        return query.seen
    table, errors = query.kept / f"{AT}.parquet", []
    at = query.stops(zombies_place(query.sink), AT, waits=True)
    query.at, query.kept = NOWHERE, None

    def write() -> None:
        try:
            rows = query.spark.read.parquet(str(table))
            columns = (
                ["history", "key", "total"] if query.sink.result == "totals" else ["history", "key", "amount", "id"]
            )
            query.write(rows.select(*columns), AT, at)
        except Exception as error:
            errors.append(str(error))

    old = threading.Thread(target=write, daemon=True)
    old.start()
    while not at.is_met and old.is_alive():
        old.join(0.05)
    why = query.run_until(AT + 2)
    query.observe()
    Path(f"{at.marker}.go").touch()
    old.join(_JOINED_S)
    query.seen.refusals += [f"the old query: {one}" for one in errors] + [f"the old query's successor: {why}"] * bool(
        why
    )
    query.observe()
    return query.finish()


def zombies_place(sink: SinkContract) -> DyingPlace:
    """Return the point at which an old query waits: after it has read the state that decides what it writes."""
    if CHECKED in sink.places:
        return CHECKED
    return BEFORE if sink.own is None or WITHIN not in sink.places else WITHIN


def two_queries(query: FaultedQuery) -> Seen:
    """Run a second query with its own checkpoint and rows against the same target."""
    folder = query.folder / "second"
    folder.mkdir()
    other = FaultedQuery(query.spark, folder, query.sink, query.cohort, query.target, second=True)
    for batches in (2, 4):
        for one, name in ((query, "first"), (other, "second")):
            if why := one.run_until(batches):
                query.seen.refusals.append(f"the {name} query: {why}")
    query.seen.second = True
    return query.finish()


def full_disk(query: FaultedQuery) -> Seen:
    """Limit the size of files while the batch is written, then remove the limit."""
    if sys.platform != "linux":
        query.seen.unmet = "only Linux limits the files of another process"
        return query.seen
    query.filling = True
    query.run_until(AT)
    query.make_available(AT + 1)
    with _small_files(query):
        why = query.run_until(AT + 1)
    if not why:
        query.seen.unmet = "the limit didn't stop the batch's write"
        return query.seen
    query.observe()
    return query.finish()


@contextlib.contextmanager
def _small_files(query: FaultedQuery) -> Iterator[None]:
    """Limit the size of files in the process that writes the sink's files."""
    import resource

    pid = os.getpid()
    if query.sink.writer == "spark":
        pid = int(query.spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (_FULL[query.sink.writer], before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def retention(query: FaultedQuery) -> Seen:
    """Remove the target's files of the first batch, as a storage bucket's lifecycle rule does."""
    query.run_until(AT)
    target = Path(query.target)
    old = {path: path.stat().st_mtime_ns for path in target.rglob("*") if path.is_file()}
    query.run_until(AT + 1)
    gone = [path for path, time in old.items() if path.exists() and path.stat().st_mtime_ns == time]
    if not gone:
        query.seen.unmet = "each of its files is also written by later batches"
        return query.seen
    for path in gone:
        path.unlink()
    query.seen.batches = range(AT, len(query.batches))
    return query.finish()


def old_checkpoint(query: FaultedQuery) -> Seen:
    """Restore the checkpoint of the first batch after three batches; one micro-batch then repeats the later rows."""
    query.run_until(AT)
    saved = query.save(query.checkpoint, "yesterday")
    query.run_until(AT + 2)
    query.restore(saved, query.checkpoint)
    query.files_per_batch = len(query.batches)
    return query.finish()


def deleted_checkpoint(query: FaultedQuery) -> Seen:
    """Delete the checkpoint after three batches; one micro-batch then reads the source from its start."""
    query.run_until(AT + 2)
    shutil.rmtree(query.checkpoint)
    query.files_per_batch = len(query.batches)
    return query.finish()


def deleted_checkpoint_latest(query: FaultedQuery) -> Seen:
    """Delete the checkpoint after three batches; the query then reads only new rows."""
    query.run_until(AT + 2)
    shutil.rmtree(query.checkpoint)
    for path in query.folders[ROWS].glob("*.parquet"):
        path.unlink()
    return query.finish()


def _lacks(place: DyingPlace) -> Callable[[SinkContract], str]:
    why = {
        WITHIN: "it writes by one call of a library",
        BETWEEN: "it writes once",
    }
    return lambda sink: "" if place in sink.places else why.get(place, f"it can't be stopped {place}")


def _needs_state(sink: SinkContract) -> str:
    return "" if sink.result == "totals" else "its query keeps no state"


def _has_files(sink: SinkContract) -> str:
    return {
        "memory": "its target is in memory",
        "jdbc": "its files belong to a database in Spark's JVM",
        "foreach": "Spark's Python workers write its files, and each batch appends to all of them",
    }.get(sink.name, "")


def _is_kept(sink: SinkContract) -> str:
    return "its table is lost when its process dies" if sink.memory else ""


def _commits(sink: SinkContract) -> str:
    if (sink.own is None and sink.writer == "python") or sink.name.startswith("file-"):
        return ""
    return "its tasks commit in Spark's JVM" if not sink.memory else "it has no commit"


def _death(name: str, says: str, place: DyingPlace) -> Fault:
    """Return a fault that kills a query's process at a point of a write; `invariants` simulates this fault too."""
    return Fault(name, says, death_at(place), place, is_of_process=True, in_invariants=True, unfit=_lacks(place))


FAULTS = [
    _death("death-before-write", "SIGKILL before the sink's first write", BEFORE),
    _death("death-within-write", "SIGKILL within a write, with some of the batch's rows written", WITHIN),
    _death("death-between-writes", "SIGKILL between two writes", BETWEEN),
    Fault(
        "death-in-commit",
        "SIGKILL at the n-th operation on the target's files",
        in_commit,
        is_of_process=True,
        unfit=_commits,
        traced=True,
    ),
    _death("death-before-commit", "SIGKILL after the sink's commit, before Spark's commit", AFTER),
    Fault(
        "death-before-upload",
        "SIGKILL after Spark's commit, before a snapshot of the state is written",
        death_at(BEFORE, AT + 1),
        BEFORE,
        AT + 1,
        is_of_process=True,
        in_invariants=True,
        unfit=_needs_state,
    ),
    Fault(
        "repeated-batch",
        "the batch's entry is removed from the commit log, twice",
        repeated,
        is_of_process=True,
        in_invariants=True,
        unfit=_is_kept,
    ),
    Fault(
        "lost-connection",
        "an error once within the write, and once after it; the process continues",
        lost_connection,
        is_of_process=True,
    ),
    Fault(
        "full-disk",
        "files can't grow while the batch is written",
        full_disk,
        is_of_process=True,
        unfit=_has_files,
    ),
    Fault(
        "zombie",
        "an old query continues after its successor has started, and writes last",
        zombie,
        AFTER,
        waits=True,
        unfit=lambda sink: "each process has its own table in memory" if sink.memory else "",
    ),
    Fault(
        "two-queries",
        "two queries, each with its own checkpoint, write to one target",
        two_queries,
        unfit=lambda sink: "each query has its own table in memory" if sink.memory else "",
    ),
    Fault("retention", "the target's old files are removed because of their age", retention, unfit=_has_files),
    Fault("old-checkpoint", "an old checkpoint is restored", old_checkpoint),
    Fault(
        "deleted-checkpoint", "the checkpoint is deleted; the query reads the source from its start", deleted_checkpoint
    ),
    Fault(
        "deleted-checkpoint-latest",
        "the checkpoint is deleted; the query reads only new rows",
        deleted_checkpoint_latest,
    ),
]

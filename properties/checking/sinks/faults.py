"""The faults in the table of sinks, each with the function that simulates it and the point at which a process is
killed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...witnesses.job.dying.checkpoints import remove, undo_commit
from ...witnesses.job.dying.faults import AT, Seen
from ...witnesses.job.dying.faults import FAULTS as FAULTS_OF_ANY_SINK
from ...witnesses.job.sinks.files import LOG
from .contracts import SinkContract
from .places import AFTER, BEFORE, BETWEEN, WITHIN, DyingPlace
from .playing import FaultedQuery


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        name: The fault's name on the command line.
        says: The event that the fault simulates, in one sentence.
        play: The function that simulates the fault in this process's session; None: the fault has no simulation.
        place: The point of a write at which the table kills the query's process for real; None: the fault kills no
            process.
        batch: The number of the batch in which the process is killed.
        is_of_process: Whether the documented guarantees cover the fault: a process dies and restarts from its own
            checkpoint.
        unfit: The function that returns the reason why the fault can't happen to a sink; it returns an empty text if
            the fault can happen.
        traced: Whether the process is killed at each of several operations on the target's files.
        waits: Whether the old process isn't killed, but continues to write after its successor has started.
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
    """Simulate a death by restoring the target and the checkpoint to an earlier point of a write: Spark's own sink
    calls no function of streamproof.
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
    """Remove a batch from the log of Spark's file sink, so that the batch's files exist but no log names them."""
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
    """Remove the batch's entry from the checkpoint's commit log and restart the query; do both twice."""
    for _ in range(2):
        query.run_until(AT + 1)
        undo_commit(query.checkpoint)
    query.observe()
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
    """Return a fault that kills a query's process at a point of a write; `invariants` also simulates this fault."""
    return Fault(name, says, death_at(place), place, is_of_process=True, in_invariants=True, unfit=_lacks(place))


def _of_any_sink(name: str, **more: Any) -> Fault:
    """Return a fault that `invariants` also simulates on a user's sink."""
    fault = FAULTS_OF_ANY_SINK[name]
    return Fault(name, fault.says, fault.play, **more)


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
    _of_any_sink("lost-connection", is_of_process=True),
    _of_any_sink("full-disk", is_of_process=True, unfit=_has_files),
    _of_any_sink(
        "zombie",
        place=AFTER,
        waits=True,
        unfit=lambda sink: "each process has its own table in memory" if sink.memory else "",
    ),
    _of_any_sink("two-queries", unfit=lambda sink: "each query has its own table in memory" if sink.memory else ""),
    _of_any_sink("retention", unfit=_has_files),
    *map(_of_any_sink, ("old-checkpoint", "deleted-checkpoint", "deleted-checkpoint-latest")),
]

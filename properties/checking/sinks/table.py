"""The table of sinks and faults: simulates each fault on each sink, kills a real process, and judges the target."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput, StreamproofError
from ...system.progress import doing
from ...system.resources import NO_TIME, Spent
from ...system.work import temporary_folder
from ...witnesses.job.dying.faults import Seen
from ...witnesses.spark.session import spark_session, work_folder
from . import tracing
from .causes import DIFFERENCES, REPORTS, cause_of
from .cohorts import SinkCohort, payments
from .contracts import SinkContract
from .faults import FAULTS, Fault
from .judging import BAD, BROKEN_BY, SinkVerdict, judged
from .killing import dying_of, is_watched, kill_together, killed_in_commit, seen_after_death, zombies
from .playing import FaultedQuery
from .sinks import SINKS

HISTORIES = 60
TOGETHER = 8
"""The largest number of queries in a process that is killed."""


@dataclass(frozen=True)
class PlayedFault:
    """The result of a fault on a sink, either of a simulation or of a killed process.

    Attributes:
        counts: The number of histories with each bad verdict.
        smallest: The smallest history with each bad verdict, as text.
        refusals: The errors by which the sink or Spark refused an action, such as a repeated write.
        why: The error that stops the query or a reader for good; empty: no such error.
        unmet: The reason why the fault didn't happen; empty if the fault happened.
        seconds: The duration (s); for a process that several queries share, it includes the time until the process was
            killed.
        cpu_seconds: The CPU time of all processes in this duration (s).
    """

    counts: Mapping[SinkVerdict, int] = field(default_factory=dict)
    smallest: Mapping[SinkVerdict, str] = field(default_factory=dict)
    refusals: Sequence[str] = ()
    why: str = ""
    unmet: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def verdicts(self) -> tuple[SinkVerdict, ...]:
        """The verdicts, the worst first; an error after the rows were damaged doesn't count as a verdict."""
        if self.unmet:
            return ("not played",)
        return tuple(one for one in BAD if one in self.counts) or ("refused" if self.refusals else "kept",)

    def with_other(self, other: PlayedFault) -> PlayedFault:
        """Return the worse of two results, for a fault that happens at several points of a write."""
        if self.unmet or other.unmet:
            return self if other.unmet else other
        counts = {one: max(self.counts.get(one, 0), other.counts.get(one, 0)) for one in BAD}
        return PlayedFault(
            {one: count for one, count in counts.items() if count},
            {**other.smallest, **self.smallest},
            [*self.refusals, *other.refusals],
            self.why or other.why,
            seconds=self.seconds + other.seconds,
            cpu_seconds=self.cpu_seconds + other.cpu_seconds,
        )


@dataclass(frozen=True)
class Cell:
    """The results of one fault on one sink.

    Attributes:
        sink: The sink.
        fault: The fault.
        by_hand: The result of the simulation, which raises an exception or restores files.
        killed: The result of a process that is killed, or that continues after its successor has started.
        unfit: The reason why the fault can't happen to the sink; empty if it can.
    """

    sink: SinkContract
    fault: Fault
    by_hand: PlayedFault | None = None
    killed: PlayedFault | None = None
    unfit: str = ""

    @property
    def ways(self) -> Mapping[str, PlayedFault]:
        """The results in which the fault happened: the simulation's and the real process's."""
        return {name: way for name, way in self._tried.items() if not way.unmet}

    @property
    def _tried(self) -> Mapping[str, PlayedFault]:
        """The results of the simulation and of the real process, including results in which the fault didn't happen."""
        both = {"by hand": self.by_hand, "killed": self.killed}
        return {name: way for name, way in both.items() if way is not None}

    @property
    def played(self) -> PlayedFault:
        """The worse of the simulation's result and the real process's result."""
        found = PlayedFault(unmet=self.unfit or self._unmet)
        for way in self.ways.values():
            found = found.with_other(way) if not found.unmet else way
        return found

    @property
    def _unmet(self) -> str:
        unmet = dict.fromkeys(way.unmet for way in (self.by_hand, self.killed) if way and way.unmet)
        return "; ".join(unmet) or "the command ended before it" * (not self.ways)

    @property
    def verdicts(self) -> tuple[SinkVerdict, ...]:
        """The verdicts of both results, the worst first."""
        return self.played.verdicts

    @property
    def is_broken(self) -> bool:
        """Whether the result breaks the delivery guarantee in the sink's documentation."""
        return self.fault.is_of_process and bool({*self.verdicts} & {*BROKEN_BY[self.sink.promises]})

    @property
    def differs(self) -> bool:
        """Whether the simulation and the real process damage the rows differently."""
        return len({frozenset(way.counts) for way in self.ways.values()}) > 1

    @property
    def difference(self) -> str:
        """The reason why the simulation and the real process differ; empty if they agree, or for an unknown reason."""
        return DIFFERENCES.get((self.sink.name, self.fault.name), "") if self.differs else ""

    @property
    def cause(self) -> tuple[str, str]:
        """The cause of a bad verdict, and the source of the cause; both are empty without a bad verdict."""
        bad = [one for one in self.verdicts if one in BAD]
        return cause_of(self.sink, self.fault.name, bad[0]) if bad else ("", "")

    @property
    def report(self) -> str:
        """The address of a public report of the same defect; empty without a bad verdict or a known report."""
        return REPORTS.get((self.sink.name, self.fault.name), "") if {*self.verdicts} & {*BAD} else ""

    @property
    def command(self) -> str:
        """The command that runs this cell of the table again."""
        return f"streamproof sinks {self.sink.name} --fault {self.fault.name}"

    def to_json(self) -> dict[str, Any]:
        """Return the cell as plain data."""
        cause, source = self.cause
        return {
            "sink": self.sink.name,
            "fault": self.fault.name,
            "of a process": self.fault.is_of_process,
            "verdicts": [*self.verdicts],
            "breaks its promise": self.is_broken,
            "counts": dict(self.played.counts),
            "smallest": dict(self.played.smallest),
            "cause": cause,
            "source": source,
            "report": self.report,
            "difference": self.difference,
            "why": self.played.why,
            "refusals": [*self.played.refusals],
            "not played": self.played.unmet,
            "ways": {name: asdict(way) for name, way in self._tried.items()},
            "seconds": round(self.played.seconds, 1),
            "cpu seconds": round(self.played.cpu_seconds, 1),
            "command": self.command,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Cell:
        """Return the cell from plain data; a result that the data lack must still be computed.

        Raises:
            KeyError, TypeError: The data don't describe a cell.
        """
        ways = {name: PlayedFault(**way) for name, way in content["ways"].items()}
        sink, fault = SINKS[content["sink"]], fault_named(content["fault"])
        return cls(sink, fault, ways.get("by hand"), ways.get("killed"))


def fault_named(name: str) -> Fault:
    """Return the fault with a name.

    Raises:
        BadInput: No fault has this name.
    """
    known = {fault.name: fault for fault in FAULTS}
    if name not in known:
        raise BadInput(f"there is no fault {name!r}: name one of {', '.join(known)}")
    return known[name]


@dataclass(frozen=True)
class Asked:
    """The cells of the table to run (each a sink and a fault), and their options.

    Attributes:
        sinks: The sinks.
        faults: The faults.
        histories: The number of histories that share each query.
        seed: The seed of the random histories.
        folder: The folder of all files of the run.
    """

    sinks: Sequence[SinkContract] = tuple(SINKS.values())
    faults: Sequence[Fault] = tuple(FAULTS)
    histories: int = HISTORIES
    seed: int = 0
    folder: Path | None = None

    def cohort(self, sink: SinkContract) -> SinkCohort:
        """Return the cohort of histories for a sink."""
        return SinkCohort(payments(self.histories, self.seed), sink.result == "totals")


def play(
    asked: Asked,
    found: list[Cell],
    show: Callable[[str], None] = doing,
    save: Callable[[], None] = lambda: None,
) -> None:
    """Run all cells: first the simulations, then the processes to kill.

    Args:
        asked: The cells to run.
        found: The cells of an earlier command, complete or not; the function adds the new cells to this collection.
        show: The callback that receives the name of the next cell.
        save: The callback that saves the cells, so that an interruption doesn't lose them.

    Raises:
        BadInput: The required packages of all chosen sinks are missing.
        StreamproofError: Spark, or a process to kill, doesn't start.
    """
    _require_installed(asked.sinks)
    known = {(cell.sink.name, cell.fault.name): cell for cell in found}
    found[:] = [
        Cell(sink, fault, unfit=why)
        if (why := sink.missing or fault.unfit(sink))
        else known.get((sink.name, fault.name), Cell(sink, fault))
        for sink in asked.sinks
        for fault in asked.faults
    ]
    for index, cell in enumerate(found):
        if not cell.unfit and cell.fault.play is not None and cell.by_hand is None:
            show(f"{cell.sink.name}: {cell.fault.says}")
            found[index] = replace(cell, by_hand=_by_hand(asked, cell.sink, cell.fault))
            save()
    left = [index for index, cell in enumerate(found) if not cell.unfit and cell.killed is None]
    for group in _groups(found, [index for index in left if found[index].fault.place is not None]):
        names = dict.fromkeys(found[index].fault.name for index in group)
        show(f"kill a process: {len(group)} queries, {', '.join(names)}")
        for index, way in zip(group, _killed(asked, [found[index] for index in group]), strict=True):
            found[index] = replace(found[index], killed=way)
        save()
    for index in left:
        cell = found[index]
        if cell.fault.traced and cell.sink.write is not None:
            show(f"{cell.sink.name}: {cell.fault.says}")
            found[index] = replace(cell, killed=_traced(asked, cell))
            save()


def _require_installed(sinks: Sequence[SinkContract]) -> None:
    missing = [sink for sink in sinks if sink.missing]
    if missing and len(missing) == len(sinks):
        raise BadInput(f"the sink {missing[0].name} can't be tested: {missing[0].missing}")


def _groups(found: Sequence[Cell], indexes: Sequence[int]) -> Iterator[list[int]]:
    """Divide cells into groups whose queries share a process to be killed; a cell that needs its own process is a group
    alone.
    """
    watched = [index for index in indexes if is_watched(found[index].sink, found[index].fault)]
    for is_zombie in (False, True):
        some = [one for one in indexes if found[one].fault.waits == is_zombie and one not in watched]
        yield from (some[start : start + TOGETHER] for start in range(0, len(some), TOGETHER))
    yield from ([index] for index in watched)


def _by_hand(asked: Asked, sink: SinkContract, fault: Fault) -> PlayedFault:
    assert fault.play is not None
    began, cohort = Spent.now(), asked.cohort(sink)
    with _play(asked, sink, cohort) as play:
        return _judged(cohort, fault.play(play), began)


@contextlib.contextmanager
def _play(asked: Asked, sink: SinkContract, cohort: SinkCohort) -> Iterator[FaultedQuery]:
    """Yield a query to run under a fault, with its own temporary folder."""
    spark = spark_session(any_provider=True)
    with temporary_folder(asked.folder or work_folder()) as folder:
        yield FaultedQuery(spark, folder, sink, cohort)


def _killed(asked: Asked, group: Sequence[Cell]) -> list[PlayedFault]:
    with contextlib.ExitStack() as open_:
        plays = [open_.enter_context(_play(asked, cell.sink, asked.cohort(cell.sink))) for cell in group]
        queries = [dying_of(play, cell.fault) for play, cell in zip(plays, group, strict=True)]
        folder = open_.enter_context(temporary_folder())
        began, found = Spent.now(), []
        dead_s = (zombies if group[0].fault.waits else kill_together)(queries, folder)
        shared = Spent.now().since(began)
        shared = shared._replace(cpu_seconds=shared.cpu_seconds + dead_s)
        if group[0].fault.waits:
            return [_judged(one.play.cohort, one.play.seen, shared=shared) for one in queries]
        for one in queries:
            began = Spent.now()
            found.append(_judged(one.play.cohort, seen_after_death(one), began, shared))
        return found


def _traced(asked: Asked, cell: Cell) -> PlayedFault:
    if why := tracing.why_not():
        return PlayedFault(unmet=why)
    cohort, found = asked.cohort(cell.sink), PlayedFault(unmet="its query doesn't start its write")
    with _play(asked, cell.sink, cohort) as play:
        try:
            began = Spent.now()
            for where, query in killed_in_commit(play):
                query.observe()
                way = _judged(cohort, query.finish(), began)
                way = replace(way, smallest={name: f"{text}; {where}" for name, text in way.smallest.items()})
                found, began = found.with_other(way), Spent.now()
        except StreamproofError as error:
            return PlayedFault(unmet=error.message)
    return found


def _judged(cohort: SinkCohort, seen: Seen, began: Spent | None = None, shared: Spent = NO_TIME) -> PlayedFault:
    """Judge a cell's observations; the duration counts from `began`, plus the time `shared` with other cells."""
    if seen.unmet:
        return PlayedFault(unmet=seen.unmet)
    found = judged(cohort, seen)
    smallest = {name: str(cohort.histories[number]) for name, number in found.smallest.items()}
    own = NO_TIME if began is None else Spent.now().since(began)
    taken = [round(a + b, 2) for a, b in zip(own, shared, strict=True)]
    return PlayedFault(found.counts, smallest, seen.refusals, seen.stuck, "", *taken)

"""What any right job keeps, whatever it computes: nothing of how its query happens to run changes its result."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .check import BATCHES, JobCheck, check_arguments, runner_of
from .histories.inputs import Input
from .model import Comparing, JobHistory, Mode, Trigger
from .oracles import JobOracle
from .queries.running import Job, RunOptions, Sink
from .rendering.notebook import Shown


@dataclass(frozen=True)
class Invariant:
    """Something that changes nothing.

    Attributes:
        name: What reports call it.
        says: What holds, as a sentence.
        run: How the query is run then.
        comparing: What is the same: the rows of each batch, or the table at the end.
        vary: The history that the job is given then.
    """

    name: str
    says: str
    run: RunOptions
    comparing: Comparing = "batches"
    vary: Callable[[JobHistory], JobHistory] = lambda history: history


@dataclass(frozen=True)
class InvariantsReport(Shown):
    """What was shown.

    Attributes:
        job: The job's name.
        held: What changed nothing, and on how many histories.
        not_checked: What was not checked, and why.
    """

    job: str
    held: Mapping[str, int]
    not_checked: Sequence[str] = ()

    def __str__(self) -> str:
        lines = [f"{self.job}: nothing changes by"]
        lines += [f"  {name} ({count} histories)" for name, count in self.held.items()]
        lines += [f"Not checked: {one}." for one in self.not_checked]
        return "\n".join(lines)


def merged(batches: Sequence[Sequence[int]]) -> Callable[[JobHistory], JobHistory]:
    """Return what gives a history other cuts: each list names the batches that become one."""

    def with_cuts(history: JobHistory) -> JobHistory:
        groups = [[number for number in group if number < len(history.batches)] for group in batches]
        groups += [[number] for number in range(BATCHES, len(history.batches))]
        rows = tuple(tuple(arrival for number in group for arrival in history.batches[number]) for group in groups)
        clock = tuple(history.clock[group[-1]] for group in groups) if history.clock else ()
        return replace(history, batches=rows, clock=clock)

    return with_cuts


def reversed_rows(history: JobHistory) -> JobHistory:
    """Return the history with the rows of each batch in the opposite order."""
    return history.with_batches([batch[::-1] for batch in history.batches])


def invariants_of(run: RunOptions, seed: int) -> list[Invariant]:
    """Return what is asked of a job, at batches that are drawn from the seed."""
    generator = random.Random(f"{seed} of the invariants")
    stops = sorted(generator.sample(range(BATCHES), 2))
    crash = generator.randrange(1, BATCHES)
    first = generator.randrange(1, BATCHES)
    cuts = [list(range(first)), list(range(first, BATCHES))]
    return [
        Invariant(
            "a restart",
            f"stopped after batches {stops[0]} and {stops[1]} and started again, the job emits the same",
            replace(run, stop_after=stops),
        ),
        Invariant(
            "a crash",
            f"dying in batch {crash} between its output and its commit, the job emits the same",
            replace(run, crash_in=[crash]),
        ),
        Invariant(
            "the number of partitions",
            "with five shuffle partitions the job emits the same",
            replace(run, partitions=5),
        ),
        Invariant(
            "the cuts between batches",
            f"with a single cut, before batch {first}, the job's table at the end is the same",
            run,
            "end",
            merged(cuts),
        ),
        Invariant(
            "the order within a batch",
            "with the rows of each batch in the opposite order the job's table at the end is the same",
            run,
            "end",
            reversed_rows,
        ),
    ]


def invariants(
    job: Job,
    *inputs: Input,
    histories: int = 100,
    seed: int = 0,
    mode: Mode = "append",
    trigger: Trigger = "default",
    static: Mapping[str, Any] | None = None,
    out_of_order: str | None = None,
    unique: Sequence[str] | None = None,
    alone: bool = False,
    settings: Mapping[str, str] | None = None,
    seconds: float = 120,
    folder: Path | None = None,
) -> InvariantsReport:
    """Check without knowing what a job should emit that nothing of how its query runs changes it.

    Asked are a restart, a crash between a batch's output and its commit, which repeats the batch, the number of
    shuffle partitions, the cuts between batches and the order of rows within one, where no row is late, and whether
    histories of other keys in the same query play a part.

    Args:
        job: As `check_job`.
        inputs: As `check_job`.
        histories: How many histories are drawn.
        seed: What they are drawn from, and where the query stops and dies.
        mode: The job's output mode.
        trigger: As `check_job`.
        static: As `check_job`.
        out_of_order: As `check_job`.
        unique: As `check_job`.
        alone: As `check_job`.
        settings: As `check_job`.
        seconds: As `check_job`.
        folder: As `check_job`.

    Returns:
        What changed nothing.

    Raises:
        Violated: Something changes what the job emits; the message has the smallest history.
        Inconclusive: Nothing does, but the job emits next to nothing, or the histories leave coverage goals unmet.
        BadInput: The job or an input can't be used.
        StreamproofError: The query failed or took too long, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    check_arguments(histories, mode, trigger)
    resolved, runner = runner_of(job, inputs, seed, static)
    run = RunOptions(trigger, mode, settings=dict(settings or {}), seconds=seconds)
    held: dict[str, int] = {}
    name = ""
    for invariant in invariants_of(run, seed):
        plain = JobOracle(job, run, invariant.comparing, f"the job, for {invariant.says},")
        own = folder / invariant.name.replace(" ", "-") if folder is not None else None
        check = JobCheck(
            runner,
            resolved,
            plain,
            invariant.run,
            seed,
            unique,
            out_of_order,
            own,
            alone,
            vary=invariant.vary,
            late=False if invariant.comparing == "end" else None,
        )
        check.replay(())
        report = check.check(histories)
        held[invariant.name], name = report.histories, report.job
        alone = alone or check.alone
    unsure = ["a crash of a sink without foreachBatch"] if isinstance(job, Sink) else []
    if alone:
        unsure.append("histories of other keys, for each runs in a query of its own")
    else:
        held["histories of other keys in the query"] = len(invariants_of(run, seed))
    return InvariantsReport(name, held, unsure)

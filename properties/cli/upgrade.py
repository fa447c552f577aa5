"""The command `upgrade`: whether a new version of a job goes on from the old version's checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .check import JOBS_FOLDER, require_room
from .job import JobOptions, exit_by_verdict, takes_job, upgrading
from .reporting import again
from .witnesses import start_spark

if TYPE_CHECKING:
    from ..report.making import JobOutcome

Old = Annotated[
    str, typer.Argument(metavar="OLD", help="The version that runs in production: module:function, or a script.py.")
]
New = Annotated[str, typer.Argument(metavar="NEW", help="The version that is to go on from its checkpoint, as OLD.")]
Histories = Annotated[int | None, typer.Option(min=1, help="The number of random histories to draw; 300 by default.")]
OldMode = Annotated[
    str | None, options.of_job(help="The output mode of the old version; by default the new version's.")
]
Expect = Annotated[
    str | None,
    options.of_job(
        metavar="WHAT",
        help="What the new version must emit after the upgrade, instead of what it emits in a run from the start: "
        "module:NAME of a function of both outputs, or as for check.",
    ),
]


@takes_job
def upgrade(
    old: Old,
    new: New,
    job: JobOptions,
    histories: Histories = None,
    seed: options.Seed = 0,
    folder: options.CounterexamplesFolder = JOBS_FOLDER,
    master: options.Master = None,
    partitions: options.Partitions = None,
    shared: options.Shared = None,
    report: options.ReportFolder = None,
    expect: Expect = None,
    old_mode: OldMode = None,
) -> None:
    """Check that a new version of a job goes on from the old version's checkpoint as if it had run from the start."""
    job = replace(job, expect=expect)

    def check_of(common: Mapping[str, Any], outcomes: list[JobOutcome]) -> Callable[[], object]:
        return upgrading((old, new), job, old_mode, common, outcomes)

    require_room(shared)
    start_spark(master, partitions, shared)
    command = again("upgrade", [old, new], histories=histories, seed=seed)
    exit_by_verdict(f"{old} to {new}", check_of, job, seed, folder, command, report)

"""The command `replay`: checks that a run in production has written the expected rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import options
from ..reporting import again
from ..witnesses import start_spark
from .check import JOBS_FOLDER, require_room
from .job import JobOptions, exit_by_verdict, replaying, takes_job

if TYPE_CHECKING:
    from ...report.making import JobOutcome

Checkpoint = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The folder of the query's checkpoint.")]
Job = Annotated[str, typer.Option("--job", metavar="JOB", help="The job that ran: module:function, or a script.py.")]
Output = Annotated[
    str,
    typer.Option(
        metavar="FOLDER|MODULE:NAME",
        help="The output of the run: the folder of Spark's file sink or of a Delta table, or a function that takes "
        "the session and returns the table.",
    ),
]
Reads = Annotated[
    list[str] | None,
    typer.Option(
        "--read",
        metavar="NAME=FORMAT",
        help="The format of an input's files, if their names don't show it, and then the reader's options: "
        '"clicks=csv header=true".',
    ),
]
Expect = Annotated[
    str | None,
    options.of_job(
        metavar="WHAT",
        help="The expected rows, as for check; by default the rows that the job emits here for the same batches.",
    ),
]


@takes_job
def replay(
    checkpoint: Checkpoint,
    name: Job,
    output: Output,
    job: JobOptions,
    reads: Reads = None,
    expect: Expect = None,
    folder: options.CounterexamplesFolder = JOBS_FOLDER,
    master: options.Master = None,
    partitions: options.Partitions = None,
    shared: options.Shared = None,
    report: options.ReportFolder = None,
) -> None:
    """Judge a run in production: compare the rows that a streaming query has written with the expected rows."""

    def check_of(common: Mapping[str, Any], outcomes: list[JobOutcome]) -> Callable[[], object]:
        return replaying((checkpoint, name, output), reads or (), expect, job, common, outcomes)

    require_room(shared)
    start_spark(master, partitions, shared)
    command = again("replay", [checkpoint], job=name, output=output, read=reads, expect=expect)
    exit_by_verdict(name, check_of, job, 0, folder, command, report, doing=f"judging the run of {name}")

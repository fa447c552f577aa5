"""The command `upgrade`: checks that a new version of a job continues from the old version's checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....reference.core.errors import BadInput
from ...system.installed.environments import require_earlier
from .. import options
from ..reporting import again
from ..witnesses import start_spark
from .check import JOBS_FOLDER, require_room
from .job import JobOptions, exit_by_verdict, takes_job, upgrading

if TYPE_CHECKING:
    from ...report.making import JobOutcome

Old = Annotated[
    str, typer.Argument(metavar="OLD", help="The version that runs in production: module:function, or a script.py.")
]
New = Annotated[
    str | None,
    typer.Argument(
        metavar="NEW",
        help="The new version, which continues from OLD's checkpoint; with --from-pyspark by default OLD itself.",
    ),
]
FromPySpark = Annotated[
    str | None,
    options.of_job(
        metavar="VERSION",
        help="The PySpark of the old version, such as 4.1.4: streamproof installs it once, into a separate "
        "environment. By default the installed PySpark.",
    ),
]
Repartition = Annotated[
    int | None,
    options.of_job(
        min=1,
        metavar="PARTITIONS",
        help="The number of state partitions after Spark's offline repartition, which runs before the new version "
        "starts; needs PySpark 4.2 or newer.",
    ),
]
Histories = Annotated[int | None, typer.Option(min=1, help="The number of random histories to draw; 300 by default.")]
OldMode = Annotated[
    str | None, options.of_job(help="The output mode of the old version; by default the new version's.")
]
Expect = Annotated[
    str | None,
    options.of_job(
        metavar="WHAT",
        help="The rows that the new version must emit after the upgrade; by default the rows of a run from the start. "
        "Either module:NAME of a function of both outputs, or as for check.",
    ),
]


@takes_job
def upgrade(
    old: Old,
    job: JobOptions,
    new: New = None,
    histories: Histories = None,
    seed: options.Seed = 0,
    folder: options.CounterexamplesFolder = JOBS_FOLDER,
    master: options.Master = None,
    partitions: options.Partitions = None,
    shared: options.Shared = None,
    report: options.ReportFolder = None,
    expect: Expect = None,
    old_mode: OldMode = None,
    from_pyspark: FromPySpark = None,
    repartition: Repartition = None,
) -> None:
    """Check that a new version of a job continues from the old version's checkpoint as if the new version had run from
    the start.
    """
    job = replace(job, expect=expect)
    if from_pyspark is not None:
        require_earlier(from_pyspark)
    elif new is None:
        raise BadInput(
            f"{old} alone is no upgrade: also name the new version, or the old version's PySpark, such as "
            "--from-pyspark 4.1.4"
        )
    later = new or old

    def check_of(common: Mapping[str, Any], outcomes: list[JobOutcome]) -> Callable[[], object]:
        more = {"old_mode": old_mode, "from_pyspark": from_pyspark, "repartition": repartition}
        return upgrading((old, later), job, more, common, outcomes)

    require_room(shared)
    start_spark(master, partitions, shared)
    names = [old] if new is None else [old, new]
    command = again(
        "upgrade", names, from_pyspark=from_pyspark, repartition=repartition, histories=histories, seed=seed
    )
    name = f"{old} to {later}" if from_pyspark is None else f"{old} on PySpark {from_pyspark} to {later}"
    exit_by_verdict(name, check_of, job, seed, folder, command, report)

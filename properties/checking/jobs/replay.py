"""The check of a run in production: the rows that a streaming query has written, against the rows expected of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput
from ...generators.columns.inputs import Input
from ...laws.expected.oracles import JobOracle
from ...laws.variation import Variation
from ...outcomes.equality import TWELVE_DIGITS
from ...system.arguments import checked, short
from ...system.progress import doing
from ...witnesses.job.running import Job
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.production.reading import Reading
from ...witnesses.run_options import Mode
from .arguments import CheckOptions, check_options, oracle_of
from .job_check import JobCheck
from .production.judging import Judging
from .production.run import read_run
from .production.uncertainty import uncertain
from .production.verdict import report_of, violated
from .reports import ReplayReport
from .verdicts import Inconclusive

AS_RUN_HERE = "the job run here over the same batches"


@checked
def replay(
    checkpoint: str | Path,
    job: Job | Script,
    *inputs: Input,
    output: Any,
    expect: Any = None,
    reads: Mapping[str, Any] | None = None,
    mode: Mode | None = None,
    static: Mapping[str, Any] | None = None,
    unique: Sequence[str] | None = None,
    settings: Mapping[str, str | int] | None = None,
    seconds: float = 600,
    digits: int | None = TWELVE_DIGITS.digits,
    folder: str | Path | None = None,
) -> ReplayReport:
    """Judge a run in production: compare the rows that a streaming query has written with the rows expected of it.

    The checkpoint says which rows each micro-batch has read and which watermark it went by. These rows are read again,
    and the oracle says what they give. Nothing is written to the checkpoint, the sources or the sink. The query may be
    running: batches that aren't committed are left out.

    Args:
        checkpoint: The folder of the query's checkpoint, on any file system that the Spark session knows.
        job: The job that ran, as the job of `check_job`.
        inputs: As `check_job`; one for each source of the query.
        output: What it wrote: the folder of Spark's file sink or of a Delta table; or a function that takes the session
            and returns the table as a DataFrame.
        expect: As `check_job`. None: what the job emits here over the same batches, which finds a sink that lost or
            repeated rows, and a run of another version.
        reads: How each input is read, by its name: the format, such as "json", or a mapping of the format and the
            reader's options, such as `{"format": "csv", "header": "true"}`. By default the names of the files say it.
        mode: The query's output mode. In other modes than append, the output is the table at the end.
        static: As `check_job`.
        unique: As `check_job`.
        settings: As `check_job`, such as `spark.sql.session.timeZone`.
        seconds: The most time for the job's own run here.
        digits: As `check_job`.
        folder: As `check_job`.

    Returns:
        The report of what was judged.

    Raises:
        Violated: The run has written other rows; the message names the first batch and key, and the smallest part of
            what was read that shows it.
        Inconclusive: No row could be judged, or fewer than those that differ in a way that can't be judged.
        BadInput: The checkpoint, a source or the output can't be read, or is of another job.
        StreamproofError: A query failed, or took too long.
    """
    __tracebackhide__ = True
    given = {
        **locals(),
        **{"histories": 1, "seed": 0, "trigger": "available_now", "out_of_order": None, "timeouts": (), "alone": False},
    }
    options = check_options(given)
    if isinstance(options.runner.job, Sink):
        raise BadInput("the job is a Sink, or a script with read=: give it without, and what it wrote as output=")
    if not (isinstance(output, (str, Path)) or callable(output)):
        raise BadInput(f"output is {short(output)}: give a folder, or a function from the session to the table")
    target = output if callable(output) else str(output)
    oracle = JobOracle(called=AS_RUN_HERE) if expect is None else oracle_of(expect, job)
    check = JobCheck(options, oracle, Variation(options.run))
    run, options = read_run(check.judge, options, str(checkpoint), target, _readings(reads or {}, options))
    return _judged(Judging(check, options, run))


def _judged(judging: Judging) -> ReplayReport:
    """Compare, and return the report."""
    __tracebackhide__ = True
    run, name = judging.run, judging.judge.name
    if not any(run.history.batches):
        raise Inconclusive(f"inconclusive: the run of {name} has read no row", job=name)
    doing(f"{name}: judging {len(run.written.rows)} rows")
    (expected,) = judging.expected([judging.given(run.history)])
    expected, emitted = judging.emitted(expected)
    differing = judging.differing(expected, emitted)
    doubtful = uncertain(judging, expected)
    found = [one for one in differing if not doubtful.has(one.row)]
    if found:
        raise violated(judging, found, emitted)
    return report_of(judging, differing, emitted, doubtful)


def _readings(reads: Mapping[str, Any], options: CheckOptions) -> dict[str, Reading]:
    """Return how each input is read.

    Raises:
        BadInput: An input isn't known, or what is said of it is no format.
    """
    names = [given.name for given in options.inputs]
    found = {}
    for name, said in reads.items():
        if name not in names:
            raise BadInput(f"reads has {short(name)}, and the inputs are {', '.join(names)}: name one of them")
        as_mapping = {"format": said} if isinstance(said, str) else said
        if not isinstance(as_mapping, Mapping) or not all(isinstance(one, str) for one in as_mapping.values()):
            raise BadInput(
                f'reads has {short(said)} for {name!r}: give a format, such as "json", or a mapping of it and options'
            )
        others = {option: value for option, value in as_mapping.items() if option != "format"}
        found[name] = Reading(as_mapping.get("format"), others)
    return found

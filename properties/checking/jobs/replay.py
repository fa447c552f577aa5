"""The check of a run in production: compares the rows that a streaming query wrote with the expected rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput
from ...laws.expected.oracles import JobOracle
from ...laws.variation import Variation
from ...system.arguments import short
from ...system.progress import doing
from ...witnesses.job.query.runnable import JobOrSink
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.production.reading import Reading
from .arguments import CheckOptions, oracle_of
from .conclusion import noting
from .job_check import JobCheck
from .production.judging import Judging
from .production.run import read_run
from .production.verdict import report_of, violated
from .reports import JobReport
from .verdicts import Inconclusive

AS_RUN_HERE = "the job run here over the same batches"


def replay_run(
    options: CheckOptions, job: JobOrSink | Script, checkpoint: str, output: Any, expect: Any, reads: Mapping[str, Any]
) -> JobReport:
    """Compare the rows that a run in production wrote with the expected rows; arguments as for `Job.replay`."""
    __tracebackhide__ = True
    if isinstance(options.runner.job, Sink):
        raise BadInput(
            "the job is a Sink, or a script with read=: give the job without them, and the rows that it wrote as "
            "output="
        )
    if not (isinstance(output, (str, Path)) or callable(output)):
        raise BadInput(f"output is {short(output)}: give a folder, or a function from the session to the table")
    target = output if callable(output) else str(output)
    oracle = JobOracle(called=AS_RUN_HERE) if expect is None else oracle_of(expect, job)
    check = JobCheck(options, oracle, Variation(options.run))
    run, options = read_run(check.judge, options, checkpoint, target, _readings(reads, options))
    return _judged(Judging(check, options, run))


def _judged(judging: Judging) -> JobReport:
    """Compare the written rows with the expected rows, and return the report."""
    __tracebackhide__ = True
    run, name = judging.run, judging.judge.name
    if not any(run.history.batches):
        raise Inconclusive(f"inconclusive: the run of {name} read no rows", job=name)
    doing(f"{name}: judging {len(run.written.rows)} rows")
    with noting(judging.judge):
        (expected,) = judging.expected([judging.given(run.history)])
        expected, emitted = judging.emitted(expected)
        if found := judging.differing(expected, emitted):
            raise violated(judging, found, emitted)
        return report_of(judging, emitted)


def _readings(reads: Mapping[str, Any], options: CheckOptions) -> dict[str, Reading]:
    """Return the format and the reader's options for each input.

    Raises:
        BadInput: An input is unknown, or its format is invalid.
    """
    names = [given.name for given in options.inputs]
    found = {}
    for name, said in reads.items():
        if name not in names:
            raise BadInput(f"reads has {short(name)}, and the inputs are {', '.join(names)}: name one of them")
        as_mapping = {"format": said} if isinstance(said, str) else said
        if not isinstance(as_mapping, Mapping) or not all(isinstance(one, str) for one in as_mapping.values()):
            raise BadInput(
                f'reads has {short(said)} for {name!r}: give a format, such as "json", or a mapping of the '
                "format and options"
            )
        others = {option: value for option, value in as_mapping.items() if option != "format"}
        found[name] = Reading(as_mapping.get("format"), others)
    return found

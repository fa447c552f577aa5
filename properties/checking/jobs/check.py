"""The check of a user's own job: any streaming query, over drawn histories of its columns, against any oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....reference.spark.durations import Duration
from ...generators.columns.inputs import Input
from ...laws.variation import Variation
from ...outcomes.equality import TWELVE_DIGITS
from ...system.arguments import checked
from ...witnesses.job.running import Job
from ...witnesses.job.scripts.script import Script
from ...witnesses.run_options import Mode, Trigger
from .arguments import HISTORIES, check_options, oracle_of
from .conclusion import tell_of_few
from .job_check import JobCheck
from .mutants import check_mutants
from .reports import JobReport


@checked
def check_job(
    job: Job | Script,
    *inputs: Input,
    expect: Any,
    histories: int | None = None,
    seed: int = 0,
    mode: Mode | None = None,
    trigger: Trigger = "default",
    static: Mapping[str, Any] | None = None,
    out_of_order: Duration | None = None,
    unique: Sequence[str] | None = None,
    alone: bool = False,
    timeouts: Sequence[Duration] = (),
    settings: Mapping[str, str | int] | None = None,
    without: Sequence[str] = (),
    seconds: float = 120,
    digits: int | None = TWELVE_DIGITS.digits,
    examples: Sequence[str | Path] = (),
    mutants: bool = False,
    folder: str | Path | None = None,
) -> JobReport:
    """Check a streaming job over drawn histories against what is expected of it.

    Args:
        job: A function from streaming DataFrames, one for each input, then one for each static table, to the streaming
            DataFrame of its result; or a `Sink`, which writes the result itself.
        inputs: The job's inputs, each with its columns.
        expect: The expected result: a rule of Spark's operators (`session_windows(…)`), a Python function or class,
            `sql(…)`, `as_batch()` or `other_job(…)`.
        histories: The number of histories to draw, by default 300. If each runs in a query of its own, the check is
            inconclusive unless half of them run within `seconds`, 15 by default.
        seed: The seed of the draws.
        mode: The job's output mode.
        trigger: `default`: a batch without data follows each batch in which the watermark moved; `available_now`: it
            follows only the last batch, and so rows are late one batch later.
        static: Tables that don't change, by name: rows (dicts), or a pandas or arrow table.
        out_of_order: How far out of order events may be, such as "10 minutes", for oracles without lateness; by default
            as far as the job's own watermarks allow.
        unique: The columns that identify a row of an updated table; by default those of the key and the window.
        alone: Run each history in its own query, until `seconds` have passed.
        timeouts: How long the job's timeouts and timers are, such as ["30 minutes"], because no plan shows it. Of event
            time: times are apart by these durations, and by 1 ms less or more. Of processing time: each batch runs at
            the time of the history's clock, and batches are so far apart.
        settings: Other settings of the Spark session, such as {"spark.sql.session.timeZone": "Europe/Berlin"}.
        without: Columns of the result that aren't compared, such as a number that an outer system gives. Columns of
            the clock and of randomness needn't be named.
        seconds: The time limit of a query, of all queries of histories that run alone, and of shrinking.
        digits: The number of digits to which floating-point numbers are compared; None: exactly, as all other values.
        examples: Histories to run first: the texts or files of counterexamples.
        mutants: Whether to check mutants of the job too, and to report those that the check doesn't kill.
        folder: The folder where counterexamples are saved, and replayed from first; without it none is saved.

    Returns:
        The report of the check: how strong the comparison was, and what was not checked.

    Raises:
        Violated: The job differs; the message has the smallest history, the expected rows and the emitted rows.
        Inconclusive: It differs on no history alone, but the histories leave coverage goals unmet, or rows of other
            keys change a result; the message names the goals, or the rows.
        BadInput: The job, an input or what is expected can't be used; the message names it and the remedy.
        StreamproofError: The query failed or took too long, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    options = check_options(locals())
    tell_of_few(histories)
    checking = JobCheck(options, oracle_of(expect, job), Variation(options.run))
    checking.replay(examples)
    report = checking.check(histories or HISTORIES)
    if not mutants:
        return report
    of_mutants = replace(options, without=options.without | checking.judge.met.nondeterministic)
    return replace(report, mutants=check_mutants(of_mutants, expect, histories or HISTORIES))

"""A user's own job, described once, and what is asked of it over drawn histories of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from ....reference.core.errors import BadInput
from ...generators.columns.inputs import Input
from ...laws.variation import Variation
from ...system.arguments import checked
from ...system.installed.environments import require_earlier
from ...witnesses.job.other_pyspark import require_named
from ...witnesses.job.query.runnable import JobOrSink
from ...witnesses.job.scripts.script import Script
from .arguments import (
    HISTORIES,
    CheckOptions,
    Described,
    Drawing,
    Given,
    GivenOfUpgrade,
    check_options,
    divided,
    oracle_of,
)
from .conclusion import noting, tell_of_few
from .invariants import HISTORIES as HISTORIES_OF_INVARIANTS
from .invariants import Invariants, invariants_of
from .job_check import JobCheck
from .mutants import check_mutants
from .replay import replay_run
from .reports import JobReport, JudgedMutants
from .upgrade import check_upgrade

REPLAY_SECONDS = 600
"""The time limit of a job's own run over the rows of a run in production."""


@checked
class Job:
    """A streaming job, described once: `Job(visits, CLICKS, mode="update").check(expect=…)`.

    Args:
        job: A function from streaming DataFrames, one for each input, then one for each static table, to the streaming
            DataFrame of its result; a `Sink`, which writes the result itself; or a `Script`.
        inputs: The job's inputs, each with its columns.
        how: How it runs, and how its result is compared: the attributes below.

    Attributes:
        mode: The job's output mode; by default append.
        trigger: `default`: a batch without data follows each batch in which the watermark moved; `available_now`: it
            follows only the last batch, and so rows are late one batch later.
        static: Tables that don't change, by name: rows (dicts), or a pandas or arrow table.
        settings: Other settings of the Spark session, such as {"spark.sql.session.timeZone": "Europe/Berlin"}.
        timeouts: How long the job's timeouts and timers are, such as ["30 minutes"], because no plan shows it. Of event
            time: times are apart by these durations, and by 1 ms less or more. Of processing time: each batch runs at
            the time of the history's clock, and batches are so far apart.
        out_of_order: How far out of order events may be, such as "10 minutes", for oracles without lateness; by default
            as far as the job's own watermarks allow.
        unique: The columns that identify a row of an updated table; by default those of the key and the window.
        without: Columns of the result that aren't compared, such as a number that an outer system gives. Columns of
            the clock and of randomness needn't be named.
        digits: The number of digits to which floating-point numbers are compared, by default 12; None: exactly, as all
            other values.
        alone: Run each history in its own query, until `seconds` have passed.
        seconds: The time limit of a query, of all queries of histories that run alone, and of shrinking; by default
            120, and 600 of `replay`.

    What each method draws, and where it saves:

    - `histories`: the number of histories to draw, by default 300, and 100 for `invariants`. If each runs in a query of
      its own, the check is inconclusive unless half of them run within `seconds`, 15 by default.
    - `seed`: the seed of the draws.
    - `examples`: histories to run first: the texts or files of counterexamples.
    - `folder`: the folder where counterexamples are saved, and replayed from first; without it none is saved.
    """

    def __init__(self, job: JobOrSink | Script, *inputs: Input, **how: Unpack[Described]) -> None:
        self.job, self.inputs, self.how = job, inputs, how

    @checked
    def check(self, *, expect: Any, mutants: bool = False, **asked: Unpack[Drawing]) -> JobReport:
        """Check the job over drawn histories against what is expected of it.

        Args:
            expect: The expected result: a rule of Spark's operators (`session_windows(…)`), a Python function or class,
                `sql(…)`, `as_batch()`, `other_job(…)` or `reference_of(…)`.
            mutants: Whether to check mutants of the job too, and to report those that the check doesn't kill.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`.

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
        options, histories = self._options(asked), asked.get("histories")
        tell_of_few(histories)
        checking = JobCheck(options, oracle_of(expect, self.job), Variation(options.run))
        with noting(checking.judge):
            checking.replay(asked.get("examples", ()))
            report = checking.check(histories or HISTORIES)
        if not mutants:
            return report
        of_mutants = replace(options, without=options.without | checking.judge.met.nondeterministic)
        return replace(report, mutants=check_mutants(of_mutants, expect, histories or HISTORIES))

    @checked
    def mutants(self, *, expect: Any, **asked: Unpack[Drawing]) -> JudgedMutants:
        """Check the job and its mutants, and report the mutants that the check doesn't kill; as `check`."""
        __tracebackhide__ = True
        found = self.check(expect=expect, mutants=True, **asked).mutants
        assert found is not None
        return found

    @checked
    def invariants(self, *, without: Sequence[str] = (), **asked: Unpack[Drawing]) -> JobReport:
        """Check, without an expected result, that the way the job's query runs doesn't change its output.

        The query is restarted after each batch. It crashes in each micro-batch, with and without data, before its
        output and between output and commit, and so repeats the batch; a sink crashes in the middle of its output and
        within a write by Spark, too. The number of shuffle partitions changes, and, where no row is late, the cuts
        between batches and the order of rows within a batch. Histories run without those of other keys. Functions with
        state, such as a `StatefulProcessor`, get each row of a batch in a call of its own.

        Args:
            without: Invariants that the job needn't keep, by the names that the report has for them, such as "rows one
                at a time"; further columns of the result that aren't compared.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`. A counterexample of an invariant also says
                which invariant, and how to run the query.

        Returns:
            The report of the check: the ways to run the job that changed nothing.

        Raises:
            Violated: A way to run the query changes the job's output; the message has the smallest history.
            Inconclusive: No way changes it, but the job emits next to nothing, or the histories leave coverage goals
                unmet.
            BadInput: The job or an input can't be used.
            StreamproofError: The query failed or took too long, or Spark couldn't be started.
        """
        __tracebackhide__ = True
        laws, columns = invariants_of([*without, *self.how.get("without", ())])
        options, histories = self._options(asked, without=columns), asked.get("histories")
        tell_of_few(histories)
        checking = Invariants(options, laws)
        with noting(checking.checks[0].judge):
            return checking.report(histories or HISTORIES_OF_INVARIANTS, asked.get("examples", ()))

    @checked
    def upgrade(
        self,
        *,
        from_: Job,
        expect: Any = None,
        from_pyspark: str | None = None,
        repartition: int | None = None,
        **asked: Unpack[Drawing],
    ) -> JobReport:
        """Check that the job goes on from its earlier version's checkpoint as if it had run from the start.

        The earlier version runs until a batch, and this version goes on from its checkpoint. This is done after three
        batches, drawn by the seed, each in a query of its own. The batches after the upgrade are compared with a run of
        this version from the start, or with what `expect` says.

        Args:
            from_: The version that runs in production. It takes the same inputs and static tables as this version:
                `lambda clicks, views: old(clicks)` makes it so where this version reads more. Of its description the
                mode and the settings count, where they differ from this version's.
            expect: What this version must emit after the upgrade. None: what it emits if it runs from the start. A
                function of both outputs, `expect(old, new)`, says what may differ: each is a list of the rows (dicts)
                of each batch after the upgrade, as that version emits them if it runs from the start, and the function
                returns such a list. Or an oracle, as for `check`.
            from_pyspark: The PySpark that the earlier version runs on, such as "4.1.4"; by default the installed
                PySpark. The first time, it is installed into an environment of its own. Both versions may then be the
                same job. It is a function, class or script that another process finds by its module and its name.
            repartition: The number of partitions that Spark's offline repartition brings the state to before this
                version starts, from PySpark 4.2 on; by default it isn't called.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`.

        Returns:
            The report of the check.

        Raises:
            UpgradeRefused: Spark doesn't let this version go on from the checkpoint, or it fails on the state.
            Violated: It goes on, and emits other rows; the message has the smallest history.
            Inconclusive: It differs on no history alone, but the histories leave coverage goals unmet.
            BadInput: A version, an input or what is expected can't be used.
            StreamproofError: A query failed that isn't one of an upgrade, or took too long, or Spark couldn't be
                started.
        """
        __tracebackhide__ = True
        if from_.inputs and [*map(id, from_.inputs)] != [*map(id, self.inputs)]:
            raise BadInput("the earlier version has other inputs: give both versions the same Input objects")
        if from_pyspark is not None:
            require_earlier(from_pyspark)
            require_named(from_.job, from_pyspark)
        earlier = from_.job, from_.how.get("mode"), from_.how.get("settings")
        return check_upgrade(self._options(asked), earlier, expect, asked, from_pyspark, repartition)

    @checked
    def replay(
        self,
        checkpoint: str | Path,
        *,
        output: Any,
        expect: Any = None,
        reads: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
    ) -> JobReport:
        """Judge a run in production: compare the rows that the job's query has written with the rows expected of it.

        The checkpoint says which rows each micro-batch has read and which watermark it went by. These rows are read
        again, and the oracle says what they give. Nothing is written to the checkpoint, the sources or the sink. The
        query may be running: batches that aren't committed are left out.

        Args:
            checkpoint: The folder of the query's checkpoint, on any file system that the Spark session knows.
            output: What it wrote: the folder of Spark's file sink or of a Delta table; or a function that takes the
                session and returns the table as a DataFrame. In other modes than append it is the table at the end.
            expect: As `check`. None: what the job emits here over the same batches, which finds a sink that lost or
                repeated rows, and a run of another version.
            reads: How each input is read, by its name: the format, such as "json", or a mapping of the format and the
                reader's options, such as `{"format": "csv", "header": "true"}`. By default the names of the files say
                it.
            folder: The folder where the counterexample is saved; without it none is saved.

        Returns:
            The report of what was judged.

        Raises:
            Violated: The run has written other rows; the message names the first batch and key, and the smallest part
                of what was read that shows it.
            Inconclusive: No row could be judged, or fewer than those that differ in a way that can't be judged.
            BadInput: The checkpoint, a source or the output can't be read, or is of another job.
            StreamproofError: A query failed, or took too long.
        """
        __tracebackhide__ = True
        run: Described = {"trigger": "available_now", "timeouts": (), "out_of_order": None, "alone": False}
        seconds = self.how.get("seconds")
        run["seconds"] = REPLAY_SECONDS if seconds is None else seconds
        options = self._options({"histories": 1, "folder": folder}, **run)
        return replay_run(options, self.job, str(checkpoint), output, expect, reads or {})

    def _options(self, asked: Drawing, **otherwise: Unpack[Described]) -> CheckOptions:
        return check_options(self.job, self.inputs, {**self.how, **otherwise}, asked)


@checked
def check_job(
    job: JobOrSink | Script, *inputs: Input, expect: Any, mutants: bool = False, **given: Unpack[Given]
) -> JobReport:
    """Check a job in one call: `Job(job, *inputs, mode=…).check(expect=expect, histories=…)`.

    Args:
        job: As `Job`.
        inputs: As `Job`.
        expect: As `Job.check`.
        mutants: As `Job.check`.
        given: The attributes of `Job`, and `histories`, `seed`, `examples` and `folder`.
    """
    __tracebackhide__ = True
    how, asked = divided(given)
    return Job(job, *inputs, **how).check(expect=expect, mutants=mutants, **asked)


@checked
def invariants(job: JobOrSink | Script, *inputs: Input, **given: Unpack[Given]) -> JobReport:
    """Check a job's invariants in one call: `Job(job, *inputs, mode=…).invariants(histories=…)`.

    Args:
        job: As `Job`.
        inputs: As `Job`.
        given: The attributes of `Job`, of which `without` may name invariants; and `histories`, `seed`, `examples` and
            `folder`.
    """
    __tracebackhide__ = True
    how, asked = divided(given)
    return Job(job, *inputs, **how).invariants(**asked)


@checked
def upgrade(
    old: JobOrSink | Script,
    new: JobOrSink | Script,
    *inputs: Input,
    expect: Any = None,
    from_pyspark: str | None = None,
    repartition: int | None = None,
    **given: Unpack[GivenOfUpgrade],
) -> JobReport:
    """Check an upgrade in one call: `Job(new, *inputs).upgrade(from_=Job(old, mode=…))`.

    Args:
        old: The version that runs in production; as the job of `Job`.
        new: The version that is to go on from its checkpoint.
        inputs: As `Job`.
        expect: As `Job.upgrade`.
        from_pyspark: As `Job.upgrade`.
        repartition: As `Job.upgrade`.
        given: The attributes of `Job`; `old_mode` and `old_settings`, the old version's where they differ; and
            `histories`, `seed`, `examples` and `folder`.
    """
    __tracebackhide__ = True
    earlier = Job(old, mode=given.pop("old_mode", None), settings=given.pop("old_settings", None))
    how, asked = divided(given)
    other: Mapping[str, Any] = {"expect": expect, "from_pyspark": from_pyspark, "repartition": repartition}
    return Job(new, *inputs, **how).upgrade(from_=earlier, **other, **asked)


@checked
def replay(
    checkpoint: str | Path,
    job: JobOrSink | Script,
    *inputs: Input,
    output: Any,
    expect: Any = None,
    reads: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    **how: Unpack[Described],
) -> JobReport:
    """Judge a run in production in one call: `Job(job, *inputs, mode=…).replay(checkpoint, output=output)`.

    Args:
        checkpoint: As `Job.replay`.
        job: As `Job`.
        inputs: As `Job`, one for each source of the query.
        output: As `Job.replay`.
        expect: As `Job.replay`.
        reads: As `Job.replay`.
        folder: As `Job.replay`.
        how: The attributes of `Job`.
    """
    __tracebackhide__ = True
    return Job(job, *inputs, **how).replay(checkpoint, output=output, expect=expect, reads=reads, folder=folder)

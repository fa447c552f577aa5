"""A user's own job, described once, with its checks over drawn histories of its columns."""

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
"""The time limit of a job's own run over the rows of a run in production (s)."""


@checked
class Job:
    """A streaming job, described once: `Job(visits, CLICKS, mode="update").check(expect=…)`.

    Args:
        job: A function from streaming DataFrames, one for each input, then one for each static table, to the streaming
            DataFrame of its result; a `Sink`, which writes the result itself; or a `Script`.
        inputs: The job's inputs, each with its columns.
        how: The run options and the comparison: the attributes below.

    Attributes:
        mode: The job's output mode; by default append.
        trigger: `default`: a batch without data follows each batch in which the watermark moved; `available_now`: it
            follows only the last batch, so rows are late one batch later.
        static: Static tables, by name: rows (dicts), or a pandas or arrow table.
        settings: Other settings of the Spark session, such as {"spark.sql.session.timeZone": "Europe/Berlin"}.
        timeouts: The durations of the job's timeouts and timers, such as ["30 minutes"], because no plan shows them.
            For event time, rows are apart by these durations, and by 1 ms less or more. For processing time, each batch
            runs at the time of the history's clock, and batches are apart by these durations.
        out_of_order: How far out of order events may be, such as "10 minutes", for oracles without lateness; by default
            as far as the job's own watermarks allow.
        unique: The columns that identify a row of an updated table; by default the columns of the key and the window.
        without: The result's columns that aren't compared, such as a number from an external system. Columns of the
            clock and of random values needn't be named.
        digits: The number of digits in the comparison of floating-point numbers, by default 12; None: exactly, as for
            all other values.
        alone: Run each history in its own query, until `seconds` have passed.
        seconds: The time limit of a query, of all queries of histories that run alone, and of shrinking; by default
            120, and 600 for `replay`.

    The keyword arguments of the methods, for draws and saving:

    - `histories`: the number of histories to draw, by default 300, and 100 for `invariants`. If each history runs in
      its own query, the check is inconclusive unless half of them run within `seconds`, 15 by default.
    - `seed`: the seed of the draws.
    - `examples`: histories to run first: the texts or files of counterexamples.
    - `folder`: the folder of saved counterexamples, which are also replayed first; without it, none is saved.
    """

    def __init__(self, job: JobOrSink | Script, *inputs: Input, **how: Unpack[Described]) -> None:
        self.job, self.inputs, self.how = job, inputs, how

    @checked
    def check(self, *, expect: Any, mutants: bool = False, **asked: Unpack[Drawing]) -> JobReport:
        """Check the job over drawn histories against its expected output.

        Args:
            expect: The expected result: a rule of Spark's operators (`session_windows(…)`), a Python function or class,
                `sql(…)`, `as_batch()`, `other_job(…)` or `reference_of(…)`.
            mutants: Whether to check mutants of the job too, and to report those that survive.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`.

        Returns:
            The report of the check, with the strength of the comparison and the unchecked parts.

        Raises:
            Violated: The job differs; the message contains the smallest history, the expected rows and the emitted
                rows.
            Inconclusive: No history differs alone, but the histories leave coverage goals unmet, or rows of other keys
                change a result; the message names the goals, or the rows.
            BadInput: The job, an input or the oracle can't be used; the message names it and the remedy.
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
        """Check the job and its mutants, and report the surviving mutants; as `check`."""
        __tracebackhide__ = True
        found = self.check(expect=expect, mutants=True, **asked).mutants
        assert found is not None
        return found

    @checked
    def invariants(
        self, *, without: Sequence[str] = (), faults: Sequence[str] = (), **asked: Unpack[Drawing]
    ) -> JobReport:
        """Check, without an oracle, that the way the job's query runs doesn't change its output.

        The query is restarted after each batch. It crashes in each micro-batch, with and without data, before its
        output and between output and commit, so it repeats the batch. A sink also crashes in the middle of its output
        and within a write by Spark. The number of shuffle partitions changes and, if no row is late, the cuts between
        batches and the order of rows within a batch. Histories run without other keys' histories. Functions with state,
        such as a `StatefulProcessor`, get each row of a batch in a separate call.

        Args:
            without: Invariants that don't apply to the job, by their names in the report, such as "rows one at a time";
                further columns of the result that aren't compared.
            faults: The faults that a sink must withstand besides crashes, such as ["zombie"], or ["all"]; see
                `docs/sinks.md`. Each takes as long as a crash.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`. A counterexample of an invariant also names
                the invariant and the query's run options.

        Returns:
            The report of the check: the ways to run the job that didn't change its output.

        Raises:
            Violated: A way to run the query changes the job's output; the message contains the smallest history.
            Inconclusive: No way changes the output, but the job emits almost nothing, or the histories leave coverage
                goals unmet.
            BadInput: The job or an input can't be used.
            StreamproofError: The query failed or took too long, or Spark couldn't be started.
        """
        __tracebackhide__ = True
        laws, columns = invariants_of([*without, *self.how.get("without", ())])
        options, histories = self._options(asked, without=columns), asked.get("histories")
        tell_of_few(histories)
        checking = Invariants(options, laws, faults)
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
        """Check that the job continues from its earlier version's checkpoint as if it had run from the start.

        The earlier version runs until a batch, and this version continues from its checkpoint. The seed draws three
        such batches, and each upgrade runs in its own query. The batches after the upgrade are compared with a run of
        this version from the start, or with `expect`.

        Args:
            from_: The version in production. It gets the same inputs and static tables as this version; if this version
                reads more, use `lambda clicks, views: old(clicks)`. Of its description, only a different mode and
                different settings apply.
            expect: The expected output of this version after the upgrade. None: the output of its run from the start. A
                function of both outputs, `expect(old, new)`, allows differences: each argument is a list of the rows
                (dicts) of each batch after the upgrade, from that version's run from the start, and the function
                returns such a list. Or an oracle, as for `check`.
            from_pyspark: The PySpark of the earlier version, such as "4.1.4"; by default the installed PySpark. At
                first use, it is installed into its own environment. Both versions may then be the same job, which must
                be a function, class or script that another process finds by its module and its name.
            repartition: The number of partitions for Spark's offline repartition of the state before this version
                starts, from PySpark 4.2 on; by default no repartition.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`.

        Returns:
            The report of the check.

        Raises:
            UpgradeRefused: Spark doesn't let this version continue from the checkpoint, or it fails on the state.
            Violated: This version continues, but emits other rows; the message contains the smallest history.
            Inconclusive: No history differs alone, but the histories leave coverage goals unmet.
            BadInput: A version, an input or the oracle can't be used.
            StreamproofError: A query outside the upgrade failed, a query took too long, or Spark couldn't be started.
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
        """Judge a run in production: compare the rows that the job's query has written with the expected rows.

        The checkpoint records the rows that each micro-batch has read, and its watermark. The check reads these rows
        again, and the oracle returns their expected output. The check writes nothing to the checkpoint, the sources or
        the sink. The query may be running: uncommitted batches are left out.

        Args:
            checkpoint: The folder of the query's checkpoint, on any file system of the Spark session.
            output: The written rows: the folder of Spark's file sink or of a Delta table; or a function from the
                session to the table as a DataFrame. In modes other than append, the output is the final table.
            expect: As for `check`. None: the output of the job here over the same batches, which detects a sink that
                lost or repeated rows, and a run of another version.
            reads: The reader of each input, by the input's name: the format, such as "json", or a mapping of the format
                and the reader's options, such as `{"format": "csv", "header": "true"}`. By default, the file names
                determine the format.
            folder: The folder for the counterexample; without it, none is saved.

        Returns:
            The report of the judged part.

        Raises:
            Violated: The run has written wrong rows; the message names the first batch and key, and the smallest part
                of the input that shows the difference.
            Inconclusive: No row could be judged, or the judged rows are fewer than the rows with differences that can't
                be judged.
            BadInput: The checkpoint, a source or the output can't be read, or belongs to another job.
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
        job: As for `Job`.
        inputs: As for `Job`.
        expect: As for `Job.check`.
        mutants: As for `Job.check`.
        given: The attributes of `Job`, and `histories`, `seed`, `examples` and `folder`.
    """
    __tracebackhide__ = True
    how, asked = divided(given)
    return Job(job, *inputs, **how).check(expect=expect, mutants=mutants, **asked)


@checked
def invariants(
    job: JobOrSink | Script, *inputs: Input, faults: Sequence[str] = (), **given: Unpack[Given]
) -> JobReport:
    """Check a job's invariants in one call: `Job(job, *inputs, mode=…).invariants(histories=…)`.

    Args:
        job: As for `Job`.
        inputs: As for `Job`.
        faults: As for `Job.invariants`.
        given: The attributes of `Job`, of which `without` may name invariants; and `histories`, `seed`, `examples` and
            `folder`.
    """
    __tracebackhide__ = True
    how, asked = divided(given)
    return Job(job, *inputs, **how).invariants(faults=faults, **asked)


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
        old: The version in production; as the job of `Job`.
        new: The version that continues from its checkpoint.
        inputs: As for `Job`.
        expect: As for `Job.upgrade`.
        from_pyspark: As for `Job.upgrade`.
        repartition: As for `Job.upgrade`.
        given: The attributes of `Job`; `old_mode` and `old_settings`, if the old version's differ; and `histories`,
            `seed`, `examples` and `folder`.
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
        checkpoint: As for `Job.replay`.
        job: As for `Job`.
        inputs: As for `Job`, one for each source of the query.
        output: As for `Job.replay`.
        expect: As for `Job.replay`.
        reads: As for `Job.replay`.
        folder: As for `Job.replay`.
        how: The attributes of `Job`.
    """
    __tracebackhide__ = True
    return Job(job, *inputs, **how).replay(checkpoint, output=output, expect=expect, reads=reads, folder=folder)

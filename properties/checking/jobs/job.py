"""A user's own job, described once, with methods that check the job over random histories of its inputs."""

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
"""The time limit (s) for running the job over the rows of a run in production."""


@checked
class Job:
    """A user's streaming job, described once, with methods that check it: `Job(visits, CLICKS,
    mode="update").check(expect=…)`.

    Args:
        job: A function from streaming DataFrames (one per input) and DataFrames (one per static table) to the streaming
            DataFrame of its result; a `Sink`, which writes the result itself; or a `Script`.
        inputs: The job's inputs, each with its columns.
        how: The run options and the comparison: the attributes below.

    Attributes:
        mode: The job's output mode; by default append.
        trigger: `default`: a batch without data follows each batch that moves the watermark; `available_now`: a batch
            without data follows only the last batch, so rows are late one batch later.
        static: Static tables by name, each as rows (dicts) or as a pandas or Arrow table.
        settings: Other settings of the Spark session, such as {"spark.sql.session.timeZone": "Europe/Berlin"}.
        timeouts: The durations of the job's timeouts and timers, such as ["30 minutes"], which the check can't read
            from the plan. Event times in a history then differ by exactly these durations, and by 1 ms less or more.
            Batches then run at processing times that differ by these durations: each batch runs at its largest event
            time so far.
        out_of_order: How far out of order events may be, such as "10 minutes", if the oracle ignores lateness; by
            default, as the job's watermarks allow.
        unique: The columns that identify a row of an updated table; by default the columns of the key and the window.
        without: The columns of the result that aren't compared, such as a number from an external system. The check
            leaves out columns with the current time or random values by itself.
        digits: The number of compared digits of floating-point numbers, by default 12; None: floating-point numbers
            must be equal, as all other values must.
        alone: Whether each history runs in its own query, until `seconds` have passed.
        seconds: The time limit (s) of a query, of all queries of histories that run alone, and of shrinking; by default
            120, and 600 for `replay`.

    The keyword arguments of the methods, for drawing and saving histories:

    - `histories`: the number of histories to draw, by default 300, and 100 for `invariants`. If each history runs in
      its own query, at least half of the histories, by default 15, must run within `seconds`; otherwise the check is
      inconclusive.
    - `seed`: the seed of the draws.
    - `examples`: histories to run first, as texts or files of counterexamples.
    - `folder`: the folder where counterexamples are saved, and replayed by the next check; without a folder, none is
      saved.
    """

    def __init__(self, job: JobOrSink | Script, *inputs: Input, **how: Unpack[Described]) -> None:
        self.job, self.inputs, self.how = job, inputs, how

    @checked
    def check(self, *, expect: Any, mutants: bool = False, **asked: Unpack[Drawing]) -> JobReport:
        """Compare the job's output with the expected output over random histories.

        Args:
            expect: The expected output: a rule of Spark's operators (`session_windows(…)`), a Python function or class,
                `sql(…)`, `as_batch()`, `other_job(…)` or `reference_of(…)`.
            mutants: Whether to check mutants of the job too, and to report surviving mutants.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`.

        Returns: The report, which lists the compared rows and the behaviours that the check didn't cover.

        Raises:
            Violated: The job's output differs; the message has the smallest history, the expected rows and the emitted
                rows.
            Inconclusive: No history differs alone in its query, but coverage goals are unmet, or rows of other keys
                change a result; the message names them.
            BadInput: The job, an input or the oracle is unusable; the message says why, and what to do.
            StreamproofError: The query fails or exceeds its time limit, or Spark doesn't start.
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
        """Check the job and mutants of the job, and report surviving mutants; parameters and errors as for `check`."""
        __tracebackhide__ = True
        found = self.check(expect=expect, mutants=True, **asked).mutants
        assert found is not None
        return found

    @checked
    def invariants(
        self, *, without: Sequence[str] = (), faults: Sequence[str] = (), **asked: Unpack[Drawing]
    ) -> JobReport:
        """Check, without an oracle, that the output stays the same if Spark runs the query differently, for example
        with restarts.

        One varied run restarts the query after each batch. Another run crashes in each micro-batch, with or without
        data, before the output and between output and commit, so that Spark repeats the batch. A sink's query also
        crashes in the middle of the output and within a write by Spark. Further runs change the number of shuffle
        partitions and, if no row is late, the cuts between batches and the order of rows within a batch. In a further
        run, a history runs without the histories of other keys. Functions with state, such as a `StatefulProcessor`,
        also receive each row of a batch in a separate call.

        Args:
            without: Names, from the report, of invariants that don't apply to the job, such as "rows one at a time";
                and columns of the result that aren't compared.
            faults: The faults that a sink must withstand besides crashes, such as ["zombie"], or ["all"]; see
                `docs/sinks.md`. The check of a fault takes as long as the check of a crash.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`. A counterexample of an invariant also names
                the invariant and the query's run options.

        Returns: The report, which lists the changes to the run that didn't change the job's output.

        Raises:
            Violated: A change to the run changes the job's output; the message has the smallest history.
            Inconclusive: No change to the run changes the output, but the job emits too few rows for a verdict, or
                coverage goals are unmet.
            BadInput: The job or an input is unusable.
            StreamproofError: The query fails or exceeds its time limit, or Spark doesn't start.
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
        """Check that the job continues from an earlier version's checkpoint as if it had run from the start.

        The earlier version runs until a certain batch, and this version continues from its checkpoint. The seed draws
        three batches for an upgrade, and each upgrade runs in its own query. The check compares the batches after the
        upgrade with a run of this version from the start, or with `expect`.

        Args:
            from_: The earlier version of the job, from production. The earlier version receives the same inputs and
                static tables as this version; if it reads fewer inputs, wrap it: `lambda clicks, views: old(clicks)`.
                The check uses only the job, the mode and the settings of the earlier version's `Job`.
            expect: The expected output of this version after the upgrade. None: the output of this version's run from
                the start. A function of both versions' outputs, `expect(old, new)`, allows differences: each argument
                is a list with the rows (dicts) of each batch after the upgrade, from a run from the start. The function
                returns the expected rows in the form of `new`. Any other oracle works as in `check`.
            from_pyspark: The PySpark version of the earlier version, such as "4.1.4"; by default the installed version.
                At first use, this PySpark is installed into its own environment. With a PySpark version, both versions
                may be the same job: a function, class or script that another process can import by name.
            repartition: The number of partitions for Spark's offline repartition of the state before this version
                starts, from PySpark 4.2 on; by default no repartition.
            asked: `histories`, `seed`, `examples` and `folder`; see `Job`.

        Returns:
            The report of the check.

        Raises:
            UpgradeRefused: Spark doesn't let this version continue from the checkpoint, or this version fails on the
                state.
            Violated: This version continues, but emits different rows; the message has the smallest history.
            Inconclusive: No history differs alone in its query, but coverage goals are unmet.
            BadInput: A version, an input or the oracle is unusable.
            StreamproofError: A query fails before the upgrade or in a run from the start, a query exceeds its time
                limit, or Spark doesn't start.
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
        """Compare the rows that the job's query wrote in production with the expected rows.

        The checkpoint records which rows each micro-batch read, and the watermark of the micro-batch. The check reads
        these rows again, and the oracle returns the expected output for them. The check writes nothing to the
        checkpoint, the sources or the sink. The query may still be running: the check ignores uncommitted batches.

        Args:
            checkpoint: The folder of the query's checkpoint, on any file system of the Spark session.
            output: The written rows: the folder of Spark's file sink or of a Delta table; or a function from the
                session to the written table as a DataFrame. In output modes other than append, the output is the final
                table.
            expect: The expected output, as for `check`. None: the job's output on this machine over the same batches; a
                difference shows lost or repeated rows, or another version of the job.
            reads: How to read each input, by the input's name: a format, such as "json", or a mapping of the format and
                the reader's options, such as `{"format": "csv", "header": "true"}`. By default, the file names
                determine the format.
            folder: The folder for a counterexample; without a folder, none is saved.

        Returns: The report, with the number of judged rows.

        Raises:
            Violated: The run wrote wrong rows; the message names the first batch and key, and the smallest part of the
                input that shows the difference.
            Inconclusive: No row could be judged, or the rows that differ but couldn't be judged outnumber the judged
                rows.
            BadInput: The checkpoint, a source or the output is unreadable, or belongs to another job.
            StreamproofError: A query fails or exceeds its time limit.
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
    """Compare a job's output with the expected output, in one call: `Job(job, *inputs, mode=…).check(expect=expect,
    histories=…)`.

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
        given: The attributes of `Job` (`without` may also name invariants), and `histories`, `seed`, `examples` and
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
        old: The earlier version of the job, from production.
        new: The new version, which continues from the earlier version's checkpoint.
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
    """Compare the rows that a run in production wrote with the expected rows, in one call: `Job(job, *inputs,
    mode=…).replay(checkpoint, output=output)`.

    Args:
        checkpoint: As for `Job.replay`.
        job: As for `Job`.
        inputs: The job's inputs, as for `Job`, one for each source of the query.
        output: As for `Job.replay`.
        expect: As for `Job.replay`.
        reads: As for `Job.replay`.
        folder: As for `Job.replay`.
        how: The attributes of `Job`.
    """
    __tracebackhide__ = True
    return Job(job, *inputs, **how).replay(checkpoint, output=output, expect=expect, reads=reads, folder=folder)

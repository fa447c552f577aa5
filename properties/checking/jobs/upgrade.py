"""The check of an upgrade: a new version of a job continues from the checkpoint of an earlier version."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput
from ...generators.columns.model import JobHistory
from ...laws.all import UPGRADE
from ...laws.expected.judging import Judge
from ...laws.expected.oracle import Oracle
from ...laws.expected.oracles import BothOracle, JobOracle
from ...laws.expected.upgrading import UpgradeJudge
from ...laws.variation import Variation
from ...system.installed.environments import python_of
from ...witnesses.job.other_pyspark import PySparkProcess
from ...witnesses.job.query.runnable import Earlier, JobOrSink, OtherPySpark
from ...witnesses.job.query.upgrades import NotContinued
from ...witnesses.job.running import Declared
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.job.witness import RowsWitness
from ...witnesses.run_options import Mode
from ...witnesses.spark.failures import QueryFailed
from .arguments import HISTORIES, CheckOptions, Drawing, mode_of, oracle_of, settings_of
from .conclusion import noting, tell_of_few
from .draws import Draws
from .job_check import JobCheck
from .reports import JobReport
from .verdicts import UpgradeRefused

FROM_START = "the job run from the start"
SECTION = "*Recovery Semantics after Changes in a Streaming Query*"
"""The section of Spark's Structured Streaming guide about allowed changes of a query."""
OTHER_FILES = "a source reads another input than the source with the same number in the checkpoint"
OF_THE_GUIDE = (
    (
        r"Existing (key|value)_schema|SCHEMA_NOT_COMPATIBLE|VALUE_SCHEMA_EVOLUTION|KEY_SCHEMA",
        "a stateful operator must keep the schema of its state: the number and types of grouping keys and aggregates, "
        "the columns of a deduplication, the schema and keys of a stream-stream join",
    ),
    (
        r"OPERATOR_NOT_MATCH_IN_STATE_METADATA|MISSING_STATE_DIRECTORY",
        "stateful operators can't be added, removed or replaced",
    ),
    (rf"sources in the checkpoint offsets|{OTHER_FILES}", "the number of sources, and their order, must stay the same"),
)
"""Sentences of Spark's guide about changes, by a pattern in Spark's error message."""
ADVICE = "Give the new version its own checkpoint, or keep this part of the earlier version."


def check_upgrade(
    options: CheckOptions,
    earlier: tuple[JobOrSink | Script, Mode | None, Mapping[str, str | int] | None],
    expect: Any,
    asked: Drawing,
    from_pyspark: str | None,
    repartition: int | None,
) -> JobReport:
    """Check that a job continues from the checkpoint of its earlier version.

    Args:
        options: The options of the new version's check.
        earlier: The earlier version; If its output mode or its settings are None, those of the new version apply.
        expect: The expected output of the new version after the upgrade, as for `Job.upgrade`.
        asked: The options of the drawn histories.
        from_pyspark: The version of PySpark on which the earlier version runs; None: this process's.
        repartition: The new number of partitions of the state; None: unchanged.
    """
    __tracebackhide__ = True
    histories = asked.get("histories")
    tell_of_few(histories)
    with contextlib.ExitStack() as ended:
        on = None
        if from_pyspark is not None:
            on = ended.enter_context(PySparkProcess(python_of(from_pyspark), from_pyspark))
        old, mode, settings = earlier
        declared = replace(_earlier(old, options, mode, settings, on), repartition=repartition)
        upgrades = Upgrades(options, declared, expect)
        with noting(upgrades.checks[0].judge):
            return upgrades.report(histories or HISTORIES, asked.get("examples", ()))


def _earlier(
    old: JobOrSink | Script,
    options: CheckOptions,
    mode: Mode | None,
    settings: Mapping[str, str | int] | None,
    on: OtherPySpark | None,
) -> Earlier:
    """Return the earlier version with its version of PySpark; refuse an earlier version that isn't a valid job.

    Raises:
        BadInput: The earlier version breaks a rule for jobs, or only one of the versions is a sink.
    """
    own, job = settings_of(settings), old.job if isinstance(old, Script) else old
    if isinstance(job, Sink) != isinstance(options.runner.job, Sink):
        raise BadInput(
            "the earlier version and the new version are a Sink and a function: give both versions a Sink, or none"
        )
    run = replace(options.run, settings={**options.run.settings, **own})
    if isinstance(old, Script):
        old.found.tables = [*options.runner.static]
        replace(options.runner, job=old, on=on).declare(run)
        mode, own = mode or mode_of(old), {**old.found.settings, **own}
    return Earlier(job, mode or options.run.mode, own, on)


class Upgrades:
    """The checks of an upgrade, one check for each of several batches after which the upgrade happens; they share the
    runs from the start.
    """

    def __init__(self, options: CheckOptions, earlier: Earlier, expect: Any) -> None:
        self.options = replace(options, runner=replace(options.runner, earlier=earlier))
        self.earlier, run, job = earlier, options.run, options.runner.job
        cuts = UPGRADE.draw(run, options.seed, options.batches - 1)
        # The run from the start also restarts at the batch of the upgrade, so that a restart alone makes no difference.
        # With the default trigger, more restarts change nothing, so one run with all restarts serves all upgrades.
        stopped = replace(run, stop_after=tuple(range(max(cuts) + 1))) if run.trigger == "default" else None
        self.oracle: Oracle = JobOracle(
            job,
            stopped,
            called=FROM_START,
            takes_late=options.out_of_order is None,
            plain={} if stopped else None,
        )
        if _is_function(expect):
            self.oracle = BothOracle(expect, earlier, job, stopped)
        elif expect is not None:
            self.oracle = oracle_of(expect, job)
        of_earlier = replace(run, settings={**run.settings, **earlier.settings})
        self.old_plan = replace(options.runner, job=earlier.job, on=earlier.on).declare(of_earlier).plan
        self.checks = [self.check_of(cut) for cut in cuts]

    def check_of(self, cut: int) -> UpgradeCheck:
        """Return the check of an upgrade after the given batch."""
        variation = UPGRADE.variation(self.options.run, cut)
        if self.oracle.name != FROM_START:
            variation = replace(variation, when="", otherwise="")
        return UpgradeCheck(self.options, self.oracle, variation, self.old_plan.sources)

    def report(self, histories: int, examples: Sequence[str | Path]) -> JobReport:
        """Replay saved counterexamples, check the upgrade after each batch, and return the report."""
        __tracebackhide__ = True
        self.checks[0].replay(examples)
        reports: dict[int, JobReport] = {}
        why_alone = ""
        for check in self.checks:
            if why_alone:
                check.run_each_alone(why_alone)
            reports[check.variation.given] = check.check(histories)
            why_alone = check.why_alone
        first = next(iter(reports.values()))
        oracle, least = self.checks[0].judge.oracle.name, min(report.histories for report in reports.values())
        counted = [
            f"Upgraded after batch {cut}: rows were expected after that on {report.expecting} histories."
            for cut, report in reports.items()
        ]
        if moved := sum(check.moved for check in self.checks):
            counted.append(
                f"In {moved} comparisons, rows are in another batch than in a run from the start; both versions "
                "together emit the same rows."
            )
        return JobReport(
            job=first.job,
            says=f"{first.job} continues from the checkpoint of {self.earlier.name} as {oracle} expects, on {least} "
            "histories.",
            laws={f"an upgrade after batch {cut}": least for cut in reports},
            comparing=first.comparing,
            counted=counted,
            between=(oracle, "job"),
            limits=list(dict.fromkeys(limit for report in reports.values() for limit in report.limits)),
            not_checked=[*first.not_checked, *self._not_checked()],
            equality=self.options.equality,
            notes=first.notes,
        )

    def _not_checked(self) -> list[str]:
        left = ["the offsets of the job's own sources, because files replace the sources of both versions"]
        if self.checks[0].without_clock:
            left.append(
                "windows and timers that only later rows would close, because the versions have other sources "
                "or watermarks, and so only rows of the history move the watermark"
            )
        return left


class UpgradeCheck(JobCheck):
    """The check of an upgrade that happens after a certain batch.

    Args:
        options: As for `JobCheck`.
        oracle: As for `JobCheck`.
        variation: The upgrade.
        old_sources: The columns of each streaming source of the earlier version, in order.
    """

    def __init__(
        self, options: CheckOptions, oracle: Oracle, variation: Variation, old_sources: Sequence[Sequence[str]]
    ) -> None:
        super().__init__(options, oracle, variation)
        # Draw no clock if sources differ: the clock adds sources, and a checkpoint identifies sources by number.
        sources = self.judge.declared.plan.sources
        self.without_clock = self.judge.is_sink or [*sources] != [*old_sources]
        if self.without_clock:
            if oracle.follows_clock:
                raise BadInput(
                    f"{oracle.name} uses the check's clock, which requires the same sources and watermarks in "
                    "both versions: leave out expect=, or give a function of both outputs"
                )
            self.draws = _ByRowsAlone(options, oracle, variation.run, self.judge.declared.plan, self.draws.takes_late)

    def judge_of(self, witness: RowsWitness, oracle: Oracle, declared: Declared) -> Judge:
        """Return the judge that compares the upgraded job with the oracle."""
        given = self.options.unique, self.options.equality, self.options.without
        return UpgradeJudge(witness, oracle, declared, *given, from_start=not isinstance(oracle, BothOracle))

    @property
    def moved(self) -> int:
        """The number of comparisons in which the upgraded job emits rows in another batch than a run from the start."""
        return self.judge.moved if isinstance(self.judge, UpgradeJudge) else 0

    def failure(
        self, failed: QueryFailed, failing: JobHistory | None, variation: Variation, stopped: str = ""
    ) -> Exception:
        """Return `UpgradeRefused` if the job can't continue from the checkpoint; if a run from the start fails too,
        return that run's error.
        """
        if not isinstance(failed, NotContinued):
            return super().failure(failed, failing, variation, stopped)
        histories = [JobHistory(((),))] if failing is None else [failing]
        try:
            self.judge.witness.of(self.options.runner.job).evaluate(histories, variation.run)
        except QueryFailed as from_start:
            return super().failure(from_start, failing, variation, stopped)
        earlier = self.options.runner.earlier
        assert earlier is not None
        name, cause = self.judge.name, OTHER_FILES if "Wrong basePath" in failed.cause else failed.cause.rstrip(".")
        why = f"violated: {name} can't continue from the checkpoint of {earlier.name}"
        why += f"{', whatever arrives' if failing is None and not stopped else ''}: {cause}."
        why += f"\n{stopped}." if stopped else ""
        said = next((said for pattern, said in OF_THE_GUIDE if re.search(pattern, cause)), None)
        if said is not None:
            why += f"\nSpark's guide, section {SECTION}: {said}."
        why += f"\n{ADVICE}"
        if failing is not None:
            why = self.store.failure(replace(failing, variation=variation.saved), variation.run, why)
        return UpgradeRefused(why, job=name, cause=cause)


class _ByRowsAlone(Draws):
    """Draws histories without a clock: only the histories' own rows move the watermark."""

    def draw(self, count: int) -> list[JobHistory]:
        return [replace(history, clock=()) for history in super().draw(count)]


def _is_function(expect: Any) -> bool:
    """Return whether `expect` is a function of both outputs, and not a rule, class or statement."""
    return isinstance(expect, Callable) and not isinstance(expect, (type, Oracle))  # type: ignore[arg-type]

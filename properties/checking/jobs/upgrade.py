"""The check of an upgrade: a job goes on from the checkpoint that its earlier version left."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput
from ....reference.spark.durations import Duration
from ...generators.columns.inputs import Input
from ...generators.columns.model import JobHistory
from ...laws.all import UPGRADE
from ...laws.expected.judging import Judge
from ...laws.expected.oracle import Oracle
from ...laws.expected.oracles import BothOracle, JobOracle
from ...laws.expected.upgrading import UpgradeJudge
from ...laws.variation import Variation
from ...outcomes.equality import TWELVE_DIGITS
from ...system.arguments import checked
from ...system.installed.environments import python_of, require_earlier
from ...witnesses.job.other_pyspark import PySparkProcess, require_named
from ...witnesses.job.running import Declared, Earlier, Job, NotContinued, OtherPySpark
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.job.witness import RowsWitness
from ...witnesses.run_options import Mode, Trigger
from ...witnesses.spark.failures import QueryFailed
from .arguments import HISTORIES, CheckOptions, check_options, mode_of, oracle_of, settings_of
from .conclusion import tell_of_few
from .draws import Draws
from .job_check import JobCheck
from .reports import JobReport, UpgradeReport
from .verdicts import UpgradeRefused

FROM_START = "the job run from the start"
SECTION = "*Recovery Semantics after Changes in a Streaming Query*"
"""The section of Spark's guide on structured streaming that says which changes it allows."""
OTHER_FILES = "a source reads another input than the source at its position in the checkpoint"
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
"""The sentences of Spark's guide on changes, by a pattern in Spark's refusal."""
ADVICE = "Give the new version a checkpoint of its own, or keep that part of the earlier version."


@checked
def upgrade(
    old: Job | Script,
    new: Job | Script,
    *inputs: Input,
    expect: Any = None,
    histories: int | None = None,
    seed: int = 0,
    mode: Mode | None = None,
    old_mode: Mode | None = None,
    trigger: Trigger = "default",
    static: Mapping[str, Any] | None = None,
    out_of_order: Duration | None = None,
    unique: Sequence[str] | None = None,
    alone: bool = False,
    timeouts: Sequence[Duration] = (),
    settings: Mapping[str, str | int] | None = None,
    old_settings: Mapping[str, str | int] | None = None,
    from_pyspark: str | None = None,
    repartition: int | None = None,
    seconds: float = 120,
    digits: int | None = TWELVE_DIGITS.digits,
    examples: Sequence[str | Path] = (),
    folder: str | Path | None = None,
) -> UpgradeReport:
    """Check that a new version of a job goes on from the old version's checkpoint as if it had run from the start.

    The old version runs until a batch, and the new version goes on from its checkpoint. This is done after three
    batches, drawn by the seed, each in a query of its own. The batches after the upgrade are compared with a run of
    the new version from the start, or with what `expect` says.

    Args:
        old: The version that runs in production; as the job of `check_job`. It takes the same inputs and static tables
            as the new version: `lambda clicks, views: old(clicks)` makes it so where the new version reads more.
        new: The version that is to go on from its checkpoint.
        inputs: As `check_job`.
        expect: What the new version must emit after the upgrade. None: what it emits if it runs from the start. A
            function of both outputs, `expect(old, new)`, says what may differ: each is a list of the rows (dicts) of
            each batch after the upgrade, as that version emits them if it runs from the start, and the function returns
            such a list. Or a rule, a class or `sql(…)`, as of `check_job`.
        histories: The number of histories to draw.
        seed: The seed of the draws, and of the batches after which the job is upgraded.
        mode: The output mode of the new version.
        old_mode: The output mode of the old version; by default the new version's.
        trigger: As `check_job`.
        static: As `check_job`.
        out_of_order: How far out of order events may be, such as "5 minutes"; by default some are late for either
            version.
        unique: As `check_job`.
        alone: As `check_job`.
        timeouts: As `check_job`.
        settings: As `check_job`, of both versions.
        old_settings: Settings of the old version that differ, such as {"spark.sql.shuffle.partitions": 4}.
        from_pyspark: The PySpark that the old version runs on, such as "4.1.4"; by default the installed PySpark. The
            first time, it is installed into an environment of its own. `old` may then be the same job as `new`. It is
            a function, class or script that another process finds by its module and its name.
        repartition: The number of partitions that Spark's offline repartition brings the state to before the new
            version starts, from PySpark 4.2 on; by default it isn't called.
        seconds: As `check_job`.
        digits: As `check_job`.
        examples: As `check_job`.
        folder: As `check_job`.

    Returns:
        The report of the check.

    Raises:
        UpgradeRefused: Spark doesn't let the new version go on from the checkpoint, or it fails on the state.
        Violated: It goes on, and emits other rows; the message has the smallest history.
        Inconclusive: It differs on no history alone, but the histories leave coverage goals unmet.
        BadInput: A version, an input or what is expected can't be used.
        StreamproofError: A query failed that isn't one of an upgrade, or took too long, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    given = {**locals(), "job": new}
    if from_pyspark is not None:
        require_earlier(from_pyspark)
        require_named(old, from_pyspark)
    options = check_options(given)
    tell_of_few(histories)
    with contextlib.ExitStack() as ended:
        on = None
        if from_pyspark is not None:
            on = ended.enter_context(PySparkProcess(python_of(from_pyspark), from_pyspark))
        earlier = replace(_earlier(old, options, old_mode, old_settings, on), repartition=repartition)
        return _Upgrades(options, earlier, expect).report(histories or HISTORIES, examples)


def _earlier(
    old: Job | Script,
    options: CheckOptions,
    mode: Mode | None,
    settings: Mapping[str, str | int] | None,
    on: OtherPySpark | None,
) -> Earlier:
    """Return the old version, whose declaration is checked by itself, on its PySpark.

    Raises:
        BadInput: It breaks the contract, or the versions are a sink and no sink.
    """
    own, job = settings_of(settings), old.job if isinstance(old, Script) else old
    if isinstance(job, Sink) != isinstance(options.runner.job, Sink):
        raise BadInput("old and new are a Sink and a function: give both versions a Sink, or none")
    run = replace(options.run, settings={**options.run.settings, **own})
    if isinstance(old, Script):
        old.found.tables = [*options.runner.static]
        replace(options.runner, job=old, on=on).declare(run)
        mode, own = mode or mode_of(old), {**old.found.settings, **own}
    return Earlier(job, mode or options.run.mode, own, on)


class _Upgrades:
    """The checks of one upgrade after each of several batches; they share the runs from the start."""

    def __init__(self, options: CheckOptions, earlier: Earlier, expect: Any) -> None:
        self.options = replace(options, runner=replace(options.runner, earlier=earlier))
        self.earlier, run, job = earlier, options.run, options.runner.job
        cuts = UPGRADE.draw(run, options.seed, options.batches - 1)
        # It is stopped where the upgraded job is, so that a restart alone makes no difference. By the default trigger
        # other stops make none, so one run with all of them serves the upgrades after all batches.
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
        """Return the check of the upgrade after a batch."""
        variation = UPGRADE.variation(self.options.run, cut)
        if self.oracle.name != FROM_START:
            variation = replace(variation, when="", otherwise="")
        return UpgradeCheck(self.options, self.oracle, variation, self.old_plan.sources)

    def report(self, histories: int, examples: Sequence[str | Path]) -> UpgradeReport:
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
        return UpgradeReport(
            job=first.job,
            earlier=self.earlier.name,
            oracle=first.oracle,
            histories=min(report.histories for report in reports.values()),
            expecting={cut: report.expecting for cut, report in reports.items()},
            comparing=first.comparing,
            moved=sum(check.moved for check in self.checks),
            limits=list(dict.fromkeys(limit for report in reports.values() for limit in report.limits)),
            not_checked=[*first.not_checked, *self._not_checked()],
            equality=self.options.equality,
        )

    def _not_checked(self) -> list[str]:
        left = ["the offsets of the job's own sources: both versions read files in their place"]
        if self.checks[0].without_clock:
            left.append(
                "windows and timers that only later rows would close: the versions have other sources or watermarks, "
                "so rows alone move the watermark"
            )
        return left


class UpgradeCheck(JobCheck):
    """The check of an upgrade after one batch.

    Args:
        options: As `JobCheck`.
        oracle: As `JobCheck`.
        variation: The upgrade.
        old_sources: The columns of the old version's streaming sources, in order.
    """

    def __init__(
        self, options: CheckOptions, oracle: Oracle, variation: Variation, old_sources: Sequence[Sequence[str]]
    ) -> None:
        super().__init__(options, oracle, variation)
        # The check's clock is a source beside each watermark, and Spark numbers a checkpoint's sources.
        sources = self.judge.declared.plan.sources
        self.without_clock = self.judge.is_sink or [*sources] != [*old_sources]
        if self.without_clock:
            if oracle.follows_clock:
                raise BadInput(
                    f"{oracle.name} goes by the check's clock, and both versions must have the same sources and "
                    "watermarks for it: leave out expect=, or give a function of both outputs"
                )
            self.draws = _ByRowsAlone(options, oracle, variation.run, self.judge.declared.plan, self.draws.takes_late)

    def judge_of(self, witness: RowsWitness, oracle: Oracle, declared: Declared) -> Judge:
        """Make the judge of the upgrade."""
        given = self.options.unique, self.options.equality, self.options.without
        return UpgradeJudge(witness, oracle, declared, *given, from_start=not isinstance(oracle, BothOracle))

    @property
    def moved(self) -> int:
        """The number of comparisons in which rows come in another batch than in a run from the start."""
        return self.judge.moved if isinstance(self.judge, UpgradeJudge) else 0

    def failure(
        self, failed: QueryFailed, failing: JobHistory | None, variation: Variation, stopped: str = ""
    ) -> Exception:
        """Return the verdict on a job that can't go on from the checkpoint; or the error of a run from the start."""
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
        why = f"violated: {name} can't go on from the checkpoint of {earlier.name}"
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
    """Draws histories without a clock: their rows alone move the watermark."""

    def draw(self, count: int) -> list[JobHistory]:
        return [replace(history, clock=()) for history in super().draw(count)]


def _is_function(expect: Any) -> bool:
    """Whether what is expected is a function of both outputs, and no rule, class or statement."""
    return isinstance(expect, Callable) and not isinstance(expect, (type, Oracle))  # type: ignore[arg-type]

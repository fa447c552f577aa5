"""The command `check`, which checks operators or a user's job."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ....reference.core.errors import BadInput, StreamproofError
from ...system import signals
from ...system.garbage import searched_seldom
from ...system.resources import too_small
from ...system.visible import visible
from ...witnesses.kafka.versions import use_version
from .. import options
from ..reporting import again, reporting
from ..terminal import EXITS, STYLES, print_divergences, results, steps, titled_table
from ..witnesses import start_spark
from .inferred import check_script
from .job import JobOptions, check_one_job, job_among, takes_job

if TYPE_CHECKING:
    from ....reference.core.history import History
    from ...checking.report import Report
    from ...checking.rounds import Budget, Round
    from ...counterexamples.counterexample import Counterexample
    from ...counterexamples.of_operators import FolderStore
    from ...report.content import Content

DEFAULT_FOLDER = Path(".streamproof/counterexamples")
JOBS_FOLDER = Path(".streamproof/jobs")
DEFAULT_HISTORIES = 2000  # per operator

Part = StrEnum("Part", "REFERENCE SPARK KAFKA")
"""The parts that `check` can be limited to."""
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[OPERATOR]…|SCRIPT.py|MODULE:JOB",
        help="Operators to check, such as session_windows; all by default. Or a job of your own: a script, whose "
        "inputs are inferred, or module:function.",
    ),
]
Histories = Annotated[
    int | None, typer.Option(min=1, help="Random histories to draw, at least; 2000 by default, 300 for a job.")
]
Minutes = Annotated[
    float | None, typer.Option(help="Go on with more seeds and longer histories for this many minutes.")
]
Mutant = Annotated[str | None, typer.Option(help="Check a mutant instead of the operator, to see a counterexample.")]
Laws = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LAW",
        help="Check only this law, such as restart or 'fold is meaning'; docs/laws.md lists the laws. May be repeated.",
    ),
]
AllLaws = Annotated[
    bool | None,
    typer.Option(
        "--all-laws",
        help="Also check Spark against the laws that by default check only the reference, as before a release: slower.",
    ),
]
WriteTest = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=("Write a test module for a script, with the script's inferred inputs, and check the script."),
    ),
]
Format = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FORMAT",
        help="json: print the result as JSON, as in report.json, and everything else on stderr. Or the format of a "
        "job's input: kafka, kinesis, eventhubs, pubsub, pulsar, or text; by default the job gets the columns. "
        "May be repeated, like --key.",
    ),
]
Only = Annotated[Part | None, typer.Option(help="Check the reference, Spark, or the reference against Kafka Streams.")]


@takes_job
def check(
    job: JobOptions,
    operators: Names = None,
    histories: Histories = None,
    seed: options.Seed = 0,
    minutes: Minutes = None,
    folder: options.CounterexamplesFolder = DEFAULT_FOLDER,
    mutant: Mutant = None,
    only: Only = None,
    law: Laws = None,
    all_laws: AllLaws = None,
    master: options.Master = None,
    partitions: options.Partitions = None,
    shared: options.Shared = None,
    kafka_version: options.KafkaVersion = None,
    report: options.ReportFolder = None,
    write_test: WriteTest = None,
    format: Format = None,
) -> None:
    """Check operators against every law on random histories, the reference first, then Spark; or check your own job."""
    from ....reference.core.operator import OPERATORS, operator_named
    from ...checking.rounds import Budget
    from ...counterexamples.of_operators import FolderStore
    from ...laws.base import worst

    use_version(kafka_version)
    as_json = "json" in (format or ())
    job = replace(job, format=tuple(one for one in format or () if one != "json"))
    of_operators = {"minutes": minutes, "mutant": mutant, "only": only, "law": law, "all-laws": all_laws or None}
    if (name := job_among(operators or (), of_operators)) is not None:
        require_room(shared)
        start_spark(master, partitions, shared)
        own_folder = JOBS_FOLDER if folder == DEFAULT_FOLDER else folder
        if ":" in name:
            if write_test is not None:
                raise BadInput(f"--write-test is for scripts, and {name} is a function: leave it out")
            check_one_job(name, job, seed, own_folder, report, as_json=as_json)
        check_script(name, job, seed, own_folder, report, write_test, as_json=as_json)
    if write_test is not None:
        raise BadInput("--write-test is for a job of your own: name its script too")
    if job.given:
        raise BadInput(
            f"--{job.given[0]} is for a job of your own: name the job too, as module:function or a script.py"
        )
    histories = DEFAULT_HISTORIES if histories is None else histories
    if minutes is not None and not 0 < minutes < math.inf:
        raise BadInput(f"--minutes {minutes:g}: there is no time to check anything: give a number above 0")
    if mutant is not None and only not in (None, Part.SPARK):
        raise BadInput(
            f"--mutant {mutant} runs on Spark, and --only {only} leaves Spark out: leave out one of the two options"
        )
    names = [operator_named(name).name for name in operators or OPERATORS]
    asked = {"histories": histories, "seed": seed, **of_operators, "kafka_version": kafka_version}
    command = again("check", operators or [], **asked)
    budget = Budget(minutes)
    gate = _Gate(names, FolderStore(folder), histories, seed, mutant, only, budget, law or (), bool(all_laws))

    def content(ended: str) -> Content:
        from ...report.making import content

        return content(gate.reports, command, ended)

    with reporting(report, content, as_json=as_json):
        if gate.on_spark:
            require_room(shared, "; `--only reference` needs no Spark")
            start_spark(master, partitions, shared)
        gate.run()
    raise typer.Exit(EXITS[worst(report.verdict for report in gate.reports)])


def require_room(shared: Path | None, otherwise: str = "") -> None:
    """Refuse a machine on which Spark would crash or fill the disk, before anything is started."""
    folders = {"TMPDIR": Path(tempfile.gettempdir()), **({} if shared is None else {"--shared": shared})}
    if (lack := too_small(folders)) is not None:
        raise StreamproofError(f"{lack}{otherwise}")


@dataclass
class _Gate:
    """A run of the command `check`, with its operators, time limit, printed reports and counterexamples."""

    names: Sequence[str]
    store: FolderStore
    histories: int
    seed: int
    mutant: str | None
    only: Part | None
    budget: Budget
    laws: Sequence[str] = ()
    all_laws: bool = False
    printed: list[Report] = field(default_factory=list)
    shown: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        from ...checking.mutation import witness_of
        from ...checking.report import Report

        self.witness = witness_of(self.names[0], self.mutant)
        of_reference = self.names if self.mutant is None and self.only is not Part.SPARK else ()
        on_spark = self.names if self.only in (None, Part.SPARK) else ()
        if self.laws:
            of_reference, on_spark = _asked_by(self.laws, of_reference, on_spark, self.all_laws)
        of_mutant = "on Spark" if self.mutant is None else f"mutant {self.mutant}, on Spark"

        def new(name: str, subject: str) -> Report:
            report = Report(name, [], self.seed, subject=subject, only=self.laws, all_laws=self.all_laws)
            report.beside_reference = bool(of_reference)
            return report

        self.of_reference = {name: new(name, "the reference") for name in of_reference}
        self.on_spark = {name: new(name, of_mutant) for name in on_spark}

    @property
    def reports(self) -> list[Report]:
        """All reports, in the order of their creation."""
        return [*self.of_reference.values(), *self.on_spark.values()]

    def count(self, operator: str, done: float, of: float) -> None:
        """Show the finished steps of an operator and of all operators, or with `--minutes` the elapsed minutes."""
        if len(self.names) > 1:
            self.progress.count(done, of, operator)
        done, of = sum(self.work.done.values()), sum(self.work.steps.values())
        if self.budget.minutes is not None:
            done, of = self.budget.elapsed, 60 * self.budget.minutes
        self.progress.count(min(done, of), of)

    def run(self) -> None:
        """Run the check, and print each report; if the check is interrupted, print the reports so far."""
        from ...checking.rounds import Work

        self.work = Work(self.count)
        for name in self.names:
            # read saved counterexamples first, so that an unreadable one is reported before any run
            self.store.saved(name, "spark", None)
        try:
            with searched_seldom(), signals.interrupting(), steps(is_counted=True) as self.progress:
                for turn in self.budget.rounds(self.work, self.found):
                    self.check(turn)
        except BaseException:
            if signals.received():
                signals.leave()
            self.print_others([report for report in self.reports if report.results])
            raise
        self.print_others(self.reports)

    def check(self, turn: Round) -> None:
        """Check all operators once; the references are checked while the first queries run on Spark."""
        from ...checking.check import check_operators, check_reference, steps_of_references

        ready = partial(self.ready, turn)
        asked = self.store, self.histories, self.seed, self.progress
        if self.on_spark:
            check_operators(self.names, *asked, self.witness, self.on_spark, ready, turn, self.of_reference)
        else:
            turn.work.expect(steps_of_references(list(self.of_reference)))
            check = partial(check_reference, on="kafka") if self.only is Part.KAFKA else check_reference
            for name, report in self.of_reference.items():
                ready(check(name, *asked, report, turn))
        if turn.is_first and self.budget.minutes is not None and self.budget.is_over():
            late = f"the {self.budget.minutes:g} minutes were over before every law had checked every operator once"
            self.progress(f"{late}; the first round still ended, after {self.budget.elapsed / 60:.1f} minutes")

    def ready(self, turn: Round, report: Report) -> None:
        """Print a report after the operator's last sample; before further rounds, print only the verdict so far."""
        with self.progress.hidden():
            if self.budget.minutes is None:
                _print_report(report, self.shown)
                self.printed.append(report)
            elif turn.is_first:
                _print_verdict(report, "so far ")

    def print_others(self, reports: Sequence[Report]) -> None:
        """Print the reports that haven't been printed."""
        for report in reports:
            if not any(report is one for one in self.printed):
                _print_report(report, self.shown)

    def found(self, report: Report) -> None:
        """Print the new counterexamples of a report at once, because the rest of the check takes long.

        For a counterexample before shrinking, only the verdict is printed.
        """
        with self.progress.hidden():
            for counterexample, path in report.found:
                if counterexample.awaits_recheck:
                    results.print(f"{report.checked.name}: {counterexample.sentence}", markup=False)
                    results.out(f"Until it is shrunk, its history is in {visible(path)}\n")
                elif path not in self.shown:
                    asked = f"the law {counterexample.law}, the first counterexample:"
                    results.print(f"{report.checked.name}: {asked}", markup=False)
                    _print_counterexample(counterexample, path)
                    results.print()
                    self.shown.add(path)


def _asked_by(
    laws: Sequence[str], of_reference: Sequence[str], on_spark: Sequence[str], all_laws: bool
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the operators whose reference the given laws judge, and the operators that the laws judge on Spark.

    Raises:
        BadInput: The law doesn't exist, or this check doesn't include the law.
    """
    from ...laws.all import AS_OF_REFERENCE, LAWS

    of = [*LAWS["reference"]] if of_reference else []
    on = [law for law in LAWS["spark"] if all_laws or law not in AS_OF_REFERENCE] if on_spark else []
    for law in laws:
        if law not in {*of, *on}:
            if law in AS_OF_REFERENCE:
                raise BadInput(
                    f"--law {law}: this check runs the law on the reference, where its name is "
                    f"{AS_OF_REFERENCE[law]}: use that name, or check Spark with --all-laws"
                )
            raise BadInput(f"--law {law}: this check has no such law, but has {', '.join(dict.fromkeys([*of, *on]))}")
    return of_reference if {*laws} & {*of} else (), on_spark if {*laws} & {*on} else ()


def _print_report(report: Report, shown: Container[Path]) -> None:
    checked = report.checked
    table = titled_table(checked.name, "law", "verdict", "histories", "violations", "what it says")
    for one in checked.laws[: len(report.results)]:
        verdict, said = "[yellow]skipped[/]", escape(one.why)
        if one.verdict != "not checked":
            verdict = f"[{STYLES[one.verdict]}]{one.verdict}[/]"
            said = f"{one.says} ({one.reason})" if one.reason else one.says
        table.add_row(one.law, verdict, f"{one.histories:,}", f"{one.violations:,}", said)
    results.print(table)
    covered = ", ".join(f"{name} {count:,}" for name, count in checked.covered.items())
    results.print(f"Coverage goals, in how many drawn histories each was met: {covered or 'none'}.", markup=False)
    if report.not_checked:
        by_reason: dict[str, list[str]] = {}
        for law, reason in report.not_checked.items():
            by_reason.setdefault(reason, []).append(law)
        reasons = "; ".join(f"{', '.join(laws)} ({reason})" for reason, laws in by_reason.items())
        results.print(f"Not checked: {reasons}.", markup=False)
    for counterexample, path in report.found:
        results.print()
        if path in shown:
            results.print(counterexample.sentence, markup=False)
            results.out(f"Shown above; written to {visible(path)}")
        else:
            _print_counterexample(counterexample, path)
    print_divergences(report.divergences)
    _print_verdict(report)


def _print_counterexample(counterexample: Counterexample[History], path: Path) -> None:
    from ...counterexamples.text import counterexample_text

    results.out(counterexample_text(counterexample), f"Written to {visible(path)}", sep="\n")


def _print_verdict(report: Report, when: str = "") -> None:
    found = report.checked
    results.print(f"{found.name}: {when}[{STYLES[report.verdict]}]{found.verdict}[/] — {found.counts}")

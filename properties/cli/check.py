"""The command `check`: the gate."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ..system import signals
from ..system.visible import visible
from .options import CounterexamplesFolder, Master, Partitions, Seed, Shared
from .terminal import EXITS, STYLES, Steps, results, steps
from .witnesses import start_spark

if TYPE_CHECKING:
    from ..laws.base import LawResult, Verdict
    from ..runner.counterexample import Store
    from ..runner.report import Report


class Part(StrEnum):
    """What a check may be narrowed to."""

    REFERENCE = "reference"
    SPARK = "spark"


def check(
    operators: Annotated[
        list[str] | None, typer.Argument(help="Operators to check, such as session_windows; all by default.")
    ] = None,
    histories: Annotated[int, typer.Option(min=1, help="How many random histories to draw.")] = 2000,
    seed: Seed = 0,
    folder: CounterexamplesFolder = Path(".streamproof/counterexamples"),
    mutant: Annotated[
        str | None, typer.Option(help="Check a mutant instead of the operator, to see a counterexample.")
    ] = None,
    only: Annotated[Part | None, typer.Option(help="Check the reference alone, or Spark alone.")] = None,
    master: Master = None,
    partitions: Partitions = None,
    shared: Shared = None,
) -> None:
    """The gate: check operators against every law on random out-of-order histories, the reference first, then Spark."""
    from ...reference.core.operator import OPERATORS, operator_named
    from ..laws.base import worst
    from ..report.counterexamples import FolderStore
    from ..runner.check import check_operators
    from ..runner.recheck import witness_of
    from ..runner.report import Report

    names = [operator_named(name).name for name in operators or OPERATORS]
    witness, store = witness_of(names[0], mutant), FolderStore(folder)
    if only is not Part.REFERENCE:
        start_spark(master, partitions, shared)

    verdicts: list[Verdict] = []

    def reported(reports: dict[str, Report], part: Callable[[Steps, Callable[[Report], None]], object]) -> None:
        waiting = dict(reports)
        try:
            with signals.interrupting(), steps() as progress:

                def ready(report: Report) -> None:
                    with progress.hidden():
                        _print_report(report)
                    del waiting[report.operator]

                part(progress, ready)
        finally:
            # Whatever ended it, what was found until then is reported.
            if signals.received():
                signals.leave()
            for report in waiting.values():
                _print_report(report)
        verdicts.extend(report.verdict for report in reports.values())

    if mutant is None and only is not Part.SPARK:
        for name in names:
            report = Report(name, [], seed, subject="the reference")
            reported({name: report}, partial(_on_reference, name, store, histories, seed, report))
    if only is not Part.REFERENCE:
        reports = {name: Report(name, [], seed) for name in names}
        on_spark = partial(check_operators, names, store, histories, seed)
        reported(reports, lambda progress, ready: on_spark(progress, witness, reports, ready))
    raise typer.Exit(EXITS[worst(verdicts)])


def _on_reference(
    name: str,
    store: Store,
    histories: int,
    seed: int,
    report: Report,
    progress: Steps,
    ready: Callable[[Report], None],
) -> None:
    from ..runner.check import check_reference

    ready(check_reference(name, store, histories, seed, progress, report))


def _print_report(report: Report) -> None:
    from ..report.counterexamples import counterexample_text

    table = Table(
        "law", "verdict", "histories", "violations", "what it says", title=_title(report), title_justify="left"
    )
    for result in report.results:
        said = result.sentence
        if result.verdict == "inconclusive":
            said += f" ({_why_inconclusive(result)})"
        verdict = f"[{STYLES[result.verdict]}]{result.verdict}[/]"
        if result.skipped:
            verdict, said = "[yellow]skipped[/]", escape(result.skipped)
        table.add_row(result.law.name, verdict, f"{result.judged:,}", f"{len(result.violations):,}", said)
    results.print(table)
    covered = ", ".join(f"{name} {count:,}" for name, count in sorted(report.covered.items()))
    results.print(f"Coverage goals, in how many drawn histories each was met: {covered or 'none'}.", markup=False)
    if report.not_checked:
        reasons = "; ".join(f"{law} ({reason})" for law, reason in report.not_checked.items())
        results.print(f"Not checked: {reasons}.", markup=False)
    for counterexample, path in report.found:
        results.print()
        text = f"{counterexample_text(counterexample)}\nWritten to {visible(path)}"
        results.print(text, markup=False, soft_wrap=True)
    if report.divergences:
        named = ", ".join(f"{name} {count:,}" for name, count in report.divergences.most_common())
        results.print(f"Named divergences of Kafka Streams, in how many histories: {named}.", markup=False)
    queries = f" in {report.queries} queries" if report.queries else ""
    results.print(
        f"{_title(report)}: [{STYLES[report.verdict]}]{report.verdict}[/] — {report.histories:,} histories{queries}, "
        f"{report.seconds:.0f} s, seed {report.seed}."
    )


def _title(report: Report) -> str:
    return f"{report.operator}, {report.subject}"


def _why_inconclusive(result: LawResult) -> str:
    if result.unfinished:
        return "not finished"
    return f"coverage goals not met: {', '.join(result.missing)}" if result.judged else "no history judged"

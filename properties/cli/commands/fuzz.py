"""The command `fuzz`: draws whole queries, and judges Spark's answers by Spark's own rules."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ....reference.core.errors import BadInput
from ...system import signals
from ..options import Seed
from ..spec.files import write_text
from ..terminal import EXITS, messages, results, steps, titled_table

if TYPE_CHECKING:
    from ...checking.fuzzing.campaign import CampaignOptions, Tally
    from ...checking.fuzzing.seeds import ReportedFinding

Paths: TypeAlias = dict[tuple[str, ...], Path]
"""The script of each finding, by the divergences that explain the finding, or by the finding's relation and seed."""
LEAST_PLANS = 10
"""The smallest number of plans for a verdict."""
MOST_UNSEEN = 8
"""The maximum number of uncovered pairs of operators that the command prints; the JSON contains all pairs."""


def fuzz(
    minutes: Annotated[float, typer.Option(min=0.1, help="The duration of the run (minutes).")] = 10.0,
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help=("The number of processes, each with its own Spark; by default one per core.")),
    ] = None,
    histories: Annotated[int, typer.Option(min=1, max=1_000, help="The number of histories of each plan.")] = 200,
    only: Annotated[
        str, typer.Option(metavar="RELATION", help="The only relation to check, in addition to the reference.")
    ] = "",
    spark_version: Annotated[
        str,
        typer.Option(metavar="VERSION", help="The PySpark to judge, such as 4.1.4; by default the installed PySpark."),
    ] = "",
    against: Annotated[
        str, typer.Option(metavar="VERSION", help="Another PySpark that judges the same seeds, such as 4.1.4.")
    ] = "",
    corpus: Annotated[bool, typer.Option(help="Begin with the plans of known divergences.")] = True,
    findings: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder for the scripts that show the findings.")
    ] = Path("findings"),
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all results here, too.")
    ] = None,
) -> None:
    """Draw whole streaming queries and their rows, run them on Spark, and judge the answers by the rules of Spark's
    operators.

    Each plan is judged by the reference of plans, by relations between queries, and, if no row is late, by the batch
    query. Each difference is shrunk, and written as a PySpark script that shows it. Exits 0 if every difference has a
    name, 1 if a difference has no name, 2 if too few plans ran. An existing script of a named divergence is kept.
    """
    from ...checking.fuzzing.campaign import CampaignOptions, Tally, run

    shown = frozenset(path.stem for path in findings.glob("*.py"))
    processes = jobs or os.cpu_count() or 1
    options = CampaignOptions(minutes, seed, processes, only, spark_version, against, corpus, histories, shown)
    tally = Tally()
    paths: Paths = {}
    try:
        with signals.interrupting(), steps() as progress:
            run(options, tally, progress, lambda found: _kept(found, findings, paths))
    except BaseException as error:
        if signals.received():
            signals.leave()
        if tally.plans or not isinstance(error, BadInput):
            _report(options, tally, paths, json_file)
        raise
    _report(options, tally, paths, json_file)
    few = len(tally.plans) < LEAST_PLANS
    raise typer.Exit(EXITS["violated" if tally.unnamed else "inconclusive" if few else "conforms"])


def _report(options: CampaignOptions, tally: Tally, paths: Paths, json_file: Path | None) -> None:
    from ...checking.fuzzing.campaign import progress

    table = titled_table("differences", "named", "found by", "times", "first after", "script")
    seconds: dict[tuple[tuple[str, ...], str], list[float]] = {}
    for one in tally.differences:
        seconds.setdefault((one.named, one.relation), []).append(one.seconds)
    for (named, relation), found in sorted(seconds.items()):
        name, first = " and ".join(named) or "without a name", f"{min(found):.0f} s"
        table.add_row(name, relation, str(len(found)), first, str(paths.get(named, "")))
    if seconds:
        results.print(table)
    for one in tally.unnamed:
        results.out(f"seed {one.seed}, {one.relation}: {one.error or 'other rows'}", style="bold red")
        results.out(f"{paths.get((one.relation, one.seed), 'no script')}")
        results.out(one.plan)
    relations = ", ".join(f"{name} {count:,}" for name, count in tally.runs.most_common())
    results.print(f"Asked: {relations or 'nothing'}.", markup=False)
    if tally.refusals:
        refused = ", ".join(f"{name} {count:,}" for name, count in tally.refusals.most_common())
        results.print(f"Refused by Spark: {refused}.", markup=False)
    if tally.never_seen:
        some = ", ".join(tally.never_seen[:MOST_UNSEEN])
        more = f" and {len(tally.never_seen) - MOST_UNSEEN} more" if len(tally.never_seen) > MOST_UNSEEN else ""
        results.print(f"Never came up: {some}{more}.", markup=False)
    on = f" on PySpark {options.pyspark}" * bool(options.pyspark)
    results.print(f"{progress(tally)}. Seed {options.seed}{on}.", markup=False)
    if json_file is not None:
        _write_json(options, tally, paths, json_file)


def _kept(one: ReportedFinding, folder: Path, paths: Paths) -> None:
    """Write the script of a finding, unless the file exists. The name of an unexplained finding's script contains the
    seed.
    """
    from ...checking.fuzzing.campaign import file_name

    name = file_name(one.named or ("unnamed", one.relation, one.seed))
    key, path, number = one.named or (one.relation, one.seed), folder / f"{name}.py", 1
    if not one.script:
        if one.named and path.exists():
            paths.setdefault(key, path)
        return
    while path.exists() and path.read_text(encoding="utf-8") != one.script:
        number += 1
        path = folder / f"{name}-{number}.py"
    write_text(path, one.script)
    paths[key] = path
    if not one.named:
        messages.out(f"a difference without a name: {path}", style="bold red")


def _write_json(options: CampaignOptions, tally: Tally, paths: Paths, file: Path) -> None:
    found = [
        {**asdict(one), "script": str(paths.get(one.named or (one.relation, one.seed), "")), "named": [*one.named]}
        for one in tally.differences
    ]
    content = {
        "options": {name: value for name, value in asdict(options).items() if name != "shown"},
        "seconds": round(tally.seconds),
        "plans": len(tally.plans),
        "pairs": tally.pairs,
        "asked": tally.runs,
        "refused": tally.refusals,
        "skipped": tally.skipped,
        "never_seen": tally.never_seen,
        "named": tally.named,
        "differences": found,
    }
    write_text(file, json.dumps(content, indent=2))

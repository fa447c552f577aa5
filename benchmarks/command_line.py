"""The command `python -m benchmarks`.

It exits 0 when every target was reached, or none was judged; 1 when one was missed; 3 when it could not run.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from streamproof.reference.core.errors import BadInput, StreamproofError
from streamproof.reference.core.operator import operator_named

from .figures import Figure, Setting
from .machine import load_average, machine
from .nexmark.queries import QUERIES
from .plots import FOLDER
from .plots import write as write_plots
from .table import PAGE, every_figure, write

BENCHMARKS: Mapping[str, str] = {
    "cohort": "a cohort of histories in one Spark query, against one query a history",
    "reference": "the reference alone",
    "duckdb": "DuckDB on a cohort, against the reference",
    "judging": "what judging a history costs beside Spark: drawing, playing, coverage, each comparison, DuckDB",
    "oracle": "the reference of every operator, against DuckDB and the real Kafka Streams",
    "operators": "a cohort of every operator on Spark, against one query a history",
    "agreement": "10,000 histories of every operator on Spark and the reference; with --on, false alarms over millions",
    "production": "one million records through every operator, beside its earlier form and Spark's own or batch SQL",
    "sizes": "batches of 1,000 to 200,000 records over 10,000 to 1,000,000 keys, uniform and skewed",
    "sql_plan": "the table-table join in SQL over its state and a batch, against the operator in Python",
    "nexmark": "seven queries of Nexmark by the operators and in the forms a user would pick; latency at several rates",
    "state": "the size of the state against the retention, of the operators that have one",
    "real_foreign_keys": "336,776 flights joined with planes and airlines by foreign keys, against DuckDB's join",
    "flights": "336,776 flights on the reference, DuckDB and both Spark operators, how the time grows, and joined",
    "cluster": "cohorts on a standalone Spark cluster on this machine, of one worker and of two",
    "memory": "peak resident memory of the driver for a large cohort",
    "large": "100,000,000 records on clusters of one worker and of two, killed in the middle; only if named",
    "specs": "what the wrapper adds to TLC, the small models, and behaviours replayed on the reference and on Spark",
    "queries": "what a small stateful query costs, with the session's settings and without them",
    "spark_rules": "10,000 histories of Spark's own operators, against the reference of its rules; --histories others",
    "kafka_schedules": "10,000 random schedules of the foreign-key join on Kafka's own code, and its races",
    "jobs": "the check of a user's own job, and how many histories a second a native job in a shared query takes",
    "report": "the size of a report of 100,000 histories; in a browser, where there is one, its opening, and axe",
    "shared": "how many histories a CPU second of Spark serves, in shared queries and in typed ones",
    "check": "the gate's wall time",
    "first_check": "the start page's passing check, the first in its process: where its seconds go",
}
_FOLDERS = {
    "agreement": "agreement kafka_schedules spark_rules",
    "checks": "check first_check jobs judging report specs",
    "nexmark": "nexmark",
    "production": "flights large production real_foreign_keys sizes sql_plan state",
    "witnesses": "cluster cohort duckdb memory operators oracle queries reference shared",
}
MODULES = {name: f".{folder}.{name}" for folder, names in _FOLDERS.items() for name in names.split()}
"""The module of each benchmark, from here."""
AGREEMENT = "agreement"
"""The one that takes a witness, a number of histories and a seed."""
SPARK_RULES = "spark_rules"
"""The one that takes a number of histories and a seed without a witness."""
BY_OPERATOR = ("operators", "agreement", "production", "sizes", "large", "state", "judging")
"""Those that measure one operator alone where they are asked to, as `production:session_windows`."""
NEXMARK = "nexmark"
"""The one that runs one query alone where it is asked to, as `nexmark:q7`."""
MISSED, COULD_NOT_RUN = 1, 3
LARGE = "large"
"""Takes hours, so that it must be named; takes a number of records."""
TABLE, PLOTS = "table", "plots"
"""Named instead of benchmarks: writes the table of the saved figures, and draws the plots of Nexmark's."""
SMALL = "Sizes are small: this shows that the benchmarks run. Their figures say nothing, and no target is judged."
NAMES_HELP = (
    f"{', '.join(BENCHMARKS)}; by default all but {LARGE}. {', '.join(BY_OPERATOR)} take an operator: "
    f"production:session_windows. {NEXMARK} takes a query: {NEXMARK}:q7."
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
results = Console(width=None if sys.stdout.isatty() else 170, highlight=False)
messages = Console(stderr=True, highlight=False)


class On(StrEnum):
    """What false alarms are counted of."""

    REFERENCE = "reference"
    SPARK = "spark"


class Size(StrEnum):
    """How large the benchmarks are."""

    FULL = "full"
    SMALL = "small"


def main() -> NoReturn:
    """Run the command line: usage errors and bad input exit 3 with one message, and no traceback."""
    code: int = COULD_NOT_RUN
    try:
        code = app(standalone_mode=False) or 0
    except typer.Exit as stop:
        code = stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        messages.print("interrupted")
    except StreamproofError as error:
        messages.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        messages.print(f"error: {error.format_message()}", style="red", markup=False, soft_wrap=True)
    spark = sys.modules.get("pyspark.sql")
    session = None if spark is None else spark.SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    sys.exit(code)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help=NAMES_HELP)] = None,
    size: Annotated[Size, typer.Option(help="small takes minutes; its figures say nothing.")] = Size.FULL,
    rounds: Annotated[int | None, typer.Option(min=1, help="How often each is measured; 3 or 5 by default.")] = None,
    on: Annotated[
        On | None, typer.Option(help="agreement: count false alarms over drawn definitions; the reference on DuckDB.")
    ] = None,
    histories: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="agreement --on: how many histories; 5,000,000 of the reference, 1,000,000 on Spark. "
            "spark_rules: how many of each; 10,000.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="agreement --on, spark_rules: the seed of the first round; 1 by default.")
    ] = None,
    records: Annotated[
        int | None, typer.Option(min=10_000, help="large: how many records; 100,000,000 by default.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file too.")] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
    every: Annotated[bool, typer.Option("--all", help="table: print all saved figures; write no page.")] = False,
) -> None:
    """Measure what docs/benchmarks.md says of speed and memory, and compare it with its targets.

    `table` writes the table there of the main saved figures, `plots` its plots; files of `--json` that follow `plots`
    bring Nexmark's figures.
    """
    if names == [TABLE] and every:
        print(every_figure(), end="")
        return
    if names == [TABLE]:
        write()
        messages.print(f"{PAGE} has the saved figures", soft_wrap=True)
        return
    if names and names[0] == PLOTS:
        write_plots([Path(name) for name in names[1:]])
        messages.print(f"{FOLDER} has the plots", soft_wrap=True)
        return
    if list_them:
        table = Table("benchmark", "what it measures")
        for name, sentence in BENCHMARKS.items():
            table.add_row(name, sentence)
        results.print(table)
        return
    chosen = list(dict.fromkeys(names or (name for name in BENCHMARKS if name != LARGE)))
    _check_names(chosen)
    _check_options(chosen, on, histories, seed, rounds, records)
    if every:
        raise BadInput(f"--all means nothing here: use it with {TABLE}")
    small = size is Size.SMALL
    made_on = machine()
    results.print(", ".join(f"{name} {value}" for name, value in made_on.items()), markup=False, soft_wrap=True)
    if small:
        results.print(SMALL, style="yellow")
    measured: list[dict[str, Any]] = []
    missed: list[str] = []
    options = {"rounds": rounds, "on": on, "histories": histories, "seed": seed, "records": records}
    for name in chosen:
        operator = name.partition(":")[2] or None
        first_seed = 1 if seed is None else seed
        setting = Setting(small, rounds, partial(_step, name), operator, on, histories, first_seed, records)
        found, figures = _measured(name, setting, _command(name, size, options))
        measured.append(found)
        if not small:
            missed += [f"{name}: {figure.name}" for figure in figures if figure.missed]
        _print(found, figures, small)
        if file is not None:
            # After each benchmark, so that an interrupted run keeps what it had.
            everything = {"size": size.value, "machine": made_on, "benchmarks": measured}
            file.write_text(json.dumps(everything, indent=2, ensure_ascii=False) + "\n")
    if small:
        results.print(SMALL, style="yellow")
    for name in missed:
        results.print(f"target missed: {name}", style="red", markup=False)
    raise typer.Exit(MISSED if missed else 0)


def _step(name: str, step: str) -> None:
    messages.print(f"{time.strftime('%H:%M:%S')} {name}: {step}", markup=False, soft_wrap=True)


def _measured(name: str, setting: Setting, command: str) -> tuple[dict[str, Any], list[Figure]]:
    """Run a benchmark; return what is saved of it, and its figures."""
    before, started = load_average(), time.monotonic()
    figures: list[Figure] = import_module(MODULES[name.partition(":")[0]], __package__).run(setting)
    found = {
        "benchmark": name,
        "command": command,
        "load average before": before,
        "load average after": load_average(),
        "seconds": round(time.monotonic() - started, 1),
        "figures": [
            asdict(figure)
            | {
                "target": None if figure.target is None else figure.target._asdict(),
                "reached": None if setting.small else figure.reached,
            }
            for figure in figures
        ],
    }
    return found, figures


def _check_names(chosen: Sequence[str]) -> None:
    """Refuse names of benchmarks or operators that aren't there, and operators where none can be named.

    Raises:
        BadInput: One was given.
    """
    for name in chosen:
        benchmark, _, operator = name.partition(":")
        if benchmark not in BENCHMARKS:
            raise BadInput(f"unknown benchmark {benchmark!r}: use some of {', '.join(BENCHMARKS)}")
        if operator and benchmark == NEXMARK:
            if operator not in QUERIES:
                raise BadInput(f"{name}: there is no query {operator!r}: use one of {', '.join(QUERIES)}")
            continue
        if operator and benchmark not in BY_OPERATOR:
            raise BadInput(f"{name}: no operator can be named here, only in {', '.join(BY_OPERATOR)}: leave it out")
        if operator:
            operator_named(operator)


def _check_options(
    chosen: Sequence[str],
    on: On | None,
    histories: int | None,
    seed: int | None,
    rounds: int | None,
    records: int | None,
) -> None:
    """Refuse options that the benchmarks don't take.

    Raises:
        BadInput: One was given that would mean nothing.
    """
    if on is not None and [name.partition(":")[0] for name in chosen] != [AGREEMENT]:
        raise BadInput(f"--on {on.value} means nothing here: name the benchmark {AGREEMENT}, and no other")
    if on is None and list(chosen) != [SPARK_RULES] and (histories is not None or seed is not None):
        option = "--seed" if histories is None else "--histories"
        raise BadInput(
            f"{option} means nothing here: use it with {AGREEMENT} --on reference, --on spark, or {SPARK_RULES}"
        )
    if records is not None and {name.partition(":")[0] for name in chosen} != {LARGE}:
        raise BadInput(f"--records means nothing here: name the benchmark {LARGE}, and no other")
    if on is not None and rounds is not None:
        raise BadInput("--rounds means nothing with --on: say by --histories how many histories there are to be")


def _command(name: str, size: Size, options: Mapping[str, object]) -> str:
    words = ["python", "-m", "benchmarks", name, "--size", size.value]
    given = {option: value for option, value in options.items() if value is not None}
    return shlex.join([*words, *(word for option, value in given.items() for word in (f"--{option}", str(value)))])


def _print(found: Mapping[str, Any], figures: Sequence[Figure], small: bool) -> None:
    table = Table(
        title=f"{found['benchmark']}: {BENCHMARKS[found['benchmark'].partition(':')[0]]}",
        caption=(
            f"{found['command']}  ({found['seconds']:.0f} s; load average {found['load average before']} before, "
            f"{found['load average after']} after)"
        ),
        title_justify="left",
        caption_justify="left",
    )
    for column in ("figure", "sizes"):
        table.add_column(column)
    for column in ("median", "min … max", "runs"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("unit", "target", "reached"):
        table.add_column(column)
    for figure in figures:
        reached = {True: "[green]yes[/]", False: "[bold red]no[/]", None: ""}[figure.reached]
        table.add_row(
            figure.name,
            figure.sizes,
            shown(figure.median),
            f"{shown(figure.least)} … {shown(figure.largest)}",
            str(figure.runs),
            figure.unit,
            ""
            if figure.target is None
            else f"{'aim: ' * figure.target.aim}{figure.target.side} {figure.target.bound:,g}",
            "not judged" if small and figure.target else reached,
        )
    results.print(table)


def shown(value: float) -> str:
    """Write a number with about three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"

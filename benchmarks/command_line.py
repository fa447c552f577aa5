"""The command `python -m benchmarks`.

The command exits 0 if no target was missed, 1 if a target was missed, and 3 if a benchmark could not run.
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
    "cohort": "a cohort of histories in one Spark query, against one query per history",
    "reference": "the reference alone",
    "duckdb": "DuckDB on a cohort, against the reference",
    "judging": "the cost of judging a history apart from Spark: drawing, playing, coverage, each comparison, DuckDB",
    "oracle": "the reference of every operator, against DuckDB and the real Kafka Streams",
    "operators": "a cohort of every operator on Spark, against one query per history",
    "agreement": "10,000 histories of every operator on Spark and the reference; with --on, false alarms over millions",
    "production": "one million records through every operator, beside its earlier form and Spark's own or batch SQL",
    "sizes": "batches of 1,000 to 200,000 records over 10,000 to 1,000,000 keys, uniform and skewed",
    "sql_plan": "the table-table join in SQL over its state and a batch, against the operator in Python",
    "nexmark": "seven queries of Nexmark by the operators and in a user's likely forms; latency at several rates",
    "state": "the size of the state against the retention, for operators with a retention",
    "real_foreign_keys": "336,776 flights joined with planes and airlines by foreign keys, against DuckDB's join",
    "flights": "336,776 flights on the reference, DuckDB and both Spark operators, the growth of the time, and joins",
    "cluster": "cohorts on a standalone Spark cluster on this machine, of one worker and of two",
    "memory": "peak resident memory of the driver for a large cohort",
    "large": "100,000,000 records on clusters of one worker and of two, killed in the middle; only on request",
    "specs": "the wrapper's overhead over TLC, the small models, and behaviours replayed on the reference and on Spark",
    "queries": "the cost of a small stateful query, with and without the session's settings",
    "spark_rules": "10,000 histories of Spark's own operators, against the reference of its rules",
    "kafka_schedules": "10,000 random schedules of the foreign-key join on Kafka's own code, and its races",
    "jobs": "the check of a user's own job, and the histories per second of a native job in a shared query",
    "report": "the size of a report of 100,000 histories; in a browser, if installed, its opening, and axe",
    "shared": "histories per CPU second of Spark, in shared and in typed queries",
    "check": "the gate's wall time",
    "first_check": "the start page's passing check, the first in its process: where its seconds are spent",
}
_FOLDERS = {
    "agreement": "agreement kafka_schedules spark_rules",
    "checks": "check first_check jobs judging report specs",
    "nexmark": "nexmark",
    "production": "flights large production real_foreign_keys sizes sql_plan state",
    "witnesses": "cluster cohort duckdb memory operators oracle queries reference shared",
}
MODULES = {name: f".{folder}.{name}" for folder, names in _FOLDERS.items() for name in names.split()}
"""The module of each benchmark, relative to this package."""
AGREEMENT = "agreement"
"""The benchmark that accepts a witness, a number of histories and a seed."""
SPARK_RULES = "spark_rules"
"""The benchmark that accepts a number of histories and a seed, but no witness."""
BY_OPERATOR = ("operators", "agreement", "production", "sizes", "large", "state", "judging")
"""The benchmarks that can measure one operator alone, such as `production:session_windows`."""
NEXMARK = "nexmark"
"""The benchmark that can run one query alone, such as `nexmark:q7`."""
MISSED, COULD_NOT_RUN = 1, 3
LARGE = "large"
"""The benchmark that takes hours, so it runs only on request; it takes a number of records."""
TABLE, PLOTS = "table", "plots"
"""Names in place of a benchmark's: write the table of the saved figures, or draw Nexmark's plots."""
SMALL = "Sizes are small, only to run the benchmarks: the figures have no meaning, and no target is judged."
NAMES_HELP = (
    f"{', '.join(BENCHMARKS)}; by default all but {LARGE}. {', '.join(BY_OPERATOR)} take an operator: "
    f"production:session_windows. {NEXMARK} takes a query: {NEXMARK}:q7."
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
results = Console(width=None if sys.stdout.isatty() else 170, highlight=False)
messages = Console(stderr=True, highlight=False)


class On(StrEnum):
    """Whose false alarms are counted."""

    REFERENCE = "reference"
    SPARK = "spark"


class Size(StrEnum):
    """How much the benchmarks run: full, or small only to try them."""

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
    size: Annotated[Size, typer.Option(help="small takes minutes; its figures have no meaning.")] = Size.FULL,
    rounds: Annotated[int | None, typer.Option(min=1, help="Measurements of each; 3 or 5 by default.")] = None,
    on: Annotated[
        On | None, typer.Option(help="agreement: count false alarms over drawn definitions; the reference on DuckDB.")
    ] = None,
    histories: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="agreement --on: the number of histories; 5,000,000 of the reference, 1,000,000 on Spark. "
            "spark_rules: the number per operator; 10,000.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="agreement --on, spark_rules: the seed of the first round; 1 by default.")
    ] = None,
    records: Annotated[
        int | None, typer.Option(min=10_000, help="large: the number of records; 100,000,000 by default.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
    every: Annotated[bool, typer.Option("--all", help="table: print all saved figures; write no page.")] = False,
) -> None:
    """Measure the figures of docs/benchmarks.md for speed and memory, and compare them with their targets.

    `table` writes its table of the main saved figures, and `plots` its plots; `plots` adds Nexmark's figures from the
    `--json` files that follow it.
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
        raise BadInput(f"--all has no effect here: use it with {TABLE}")
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
            # Write after each benchmark, so that an interrupted run keeps its results.
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
    """Run a benchmark; return its entry to save, and its figures."""
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
    """Refuse unknown benchmarks or operators, and operators for benchmarks without a choice.

    Raises:
        BadInput: One was given.
    """
    for name in chosen:
        benchmark, _, operator = name.partition(":")
        if benchmark not in BENCHMARKS:
            raise BadInput(f"unknown benchmark {benchmark!r}: use some of {', '.join(BENCHMARKS)}")
        if operator and benchmark == NEXMARK:
            if operator not in QUERIES:
                raise BadInput(f"{name}: unknown query {operator!r}: use one of {', '.join(QUERIES)}")
            continue
        if operator and benchmark not in BY_OPERATOR:
            raise BadInput(f"{name}: only {', '.join(BY_OPERATOR)} accept an operator: leave it out")
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
    """Refuse options that the benchmarks don't support.

    Raises:
        BadInput: An option has no effect on the named benchmarks.
    """
    if on is not None and [name.partition(":")[0] for name in chosen] != [AGREEMENT]:
        raise BadInput(f"--on {on.value} has no effect here: name the benchmark {AGREEMENT}, and no other")
    if on is None and list(chosen) != [SPARK_RULES] and (histories is not None or seed is not None):
        option = "--seed" if histories is None else "--histories"
        raise BadInput(
            f"{option} has no effect here: use it with {AGREEMENT} --on reference, --on spark, or {SPARK_RULES}"
        )
    if records is not None and {name.partition(":")[0] for name in chosen} != {LARGE}:
        raise BadInput(f"--records has no effect here: name the benchmark {LARGE}, and no other")
    if on is not None and rounds is not None:
        raise BadInput("--rounds has no effect with --on: set the number of histories with --histories")


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

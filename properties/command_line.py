"""The command `streamproof`.

It exits 0 when what was checked conforms, 1 when it is violated, 2 when the check is inconclusive, and 3 when it
could not run.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.markup import escape
from rich.table import Table

from ..reference.errors import BadInput
from . import signals
from .cluster import MASTER_VARIABLE, PARTITIONS_VARIABLE, SHARED_VARIABLE
from .spec_command import specs
from .standard_streams import OutputLost, prepare_streams
from .terminal import COULD_NOT_RUN, EXITS, STYLES, messages, results
from .terminal import steps as _steps
from .visible import json_line, visible
from .work import remove_own, sweep

if TYPE_CHECKING:
    from ..reference.histories import History
    from .check import Report
    from .compare import Comparison
    from .data import DataSet
    from .divergences import Divergence
    from .hunting import Kill
    from .laws import LawResult
    from .outcomes import Outcome

INTERRUPTED = 130
"""What typer makes of Ctrl-C."""

app = typer.Typer(
    help="Hold Spark stream operators to a reference model. "
    "Exits 0 where it conforms, 1 where it is violated, 2 where that is inconclusive, and 3 if it could not run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(specs, name="spec")

FindingsFolder = Annotated[
    Path, typer.Option("--findings", help="Folder that findings are written to and replayed from.")
]
Seed = Annotated[int, typer.Option(help="What the random histories are drawn from.")]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar=MASTER_VARIABLE,
        help="Run on this Spark cluster: spark://HOST:PORT, local-cluster[WORKERS,CORES,MEGABYTES], yarn or k8s://….",
    ),
]
Partitions = Annotated[
    int | None, typer.Option(min=1, envvar=PARTITIONS_VARIABLE, help="Shuffle partitions of each query; 2 by default.")
]
Shared = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        envvar=SHARED_VARIABLE,
        help="Folder that this machine and all workers see under one path; needed where they are other machines.",
    ),
]


class Part(StrEnum):
    """What a check may be narrowed to."""

    REFERENCE = "reference"
    SPARK = "spark"


class WitnessName(StrEnum):
    """The witnesses that can run a history."""

    REFERENCE = "reference"
    SPARK = "spark"
    SPARK_NATIVE = "spark-native"
    DUCKDB = "duckdb"
    KAFKA = "kafka"
    PROTOCOL = "protocol"


ON_SPARK = {WitnessName.SPARK, WitnessName.SPARK_NATIVE}


def main() -> NoReturn:
    """Run the command line: usage errors and bad input exit 3 with one message, and no traceback."""
    # An interrupted call to the JVM is told once, by us, and not by its client's log.
    logging.disable(logging.CRITICAL)
    code: int = COULD_NOT_RUN
    try:
        with signals.interrupting():
            prepare_streams()
            _require_working_directory()
            sweep()
            code = app(prog_name="streamproof", standalone_mode=False) or 0
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
    except typer.Exit as stop:
        code = stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        signals.leave()
        code = COULD_NOT_RUN
        by = f" by {signals.received()}" if signals.received() not in ("", "SIGINT") else ""
        with contextlib.suppress(OSError):  # the terminal may be gone
            messages.print(f"interrupted{by}: what was found until then is on disk", style="yellow")
    except SystemExit:  # nobody's but a library's, and no verdict
        code = COULD_NOT_RUN
    except Exception as error:
        code = COULD_NOT_RUN
        _say_why(error)
    _leave(code)


def _say_why(error: Exception) -> None:
    """Say what ended the command: what the user or the machine can mend, or an error of ours with its traceback."""
    from .failures import explained

    if _is_usage_error(error):
        _say_error(_usage(error))
        return
    known = explained(error)
    _say_error(known.message)
    if known.details:
        messages.print(known.details, markup=False, soft_wrap=True)


def _say_error(text: str) -> None:
    if text:
        messages.print(f"error: {visible(text)}", style="red", markup=False, soft_wrap=True)


def _require_working_directory() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise BadInput(f"the working directory is gone ({error.strerror}): change to one that is there") from None


def _leave(code: int) -> NoReturn:
    signals.leave()
    if signals.received():
        _leave_at_once(code)
    try:
        sys.stdout.flush()
    except OutputLost as lost:
        code = COULD_NOT_RUN
        _say_error(lost.message)
    sys.stderr.flush()
    with contextlib.suppress(Exception):  # of a JVM that has died every question fails
        session = _running_session()
        if session is not None:
            with contextlib.suppress(Exception):
                _tell_who_took_part(session)
            session.stop()
    sys.exit(code)


def _leave_at_once(code: int) -> NoReturn:
    """Leave after a signal: the JVMs are killed already, and nothing is asked of them any more."""
    jvm = sys.modules.get(f"{__package__}.spark_jvm")
    if jvm is not None:
        jvm.end()
    remove_own()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _start_spark(master: str | None, partitions: int | None, shared: Path | None) -> None:
    """Start Spark where it was asked for, before anything else: a cluster that can't be used is told at once."""
    if master is None and partitions is None and shared is None:
        return
    from .spark_session import spark_session

    with _steps() as progress:
        progress(f"starting Spark on {master or 'this machine'}")
        spark_session(master=master, partitions=partitions, shared=shared)


def _tell_who_took_part(session: Any) -> None:
    """Say of a cluster which of its executors ran how many tasks: an answer of one executor isn't that of a cluster."""
    from .cluster import is_cluster, tasks_of_executors

    master = session.sparkContext.master
    if is_cluster(master):
        told = ", ".join(f"executor {name} ran {count:,}" for name, count in tasks_of_executors(session).items())
        messages.print(f"tasks on {master}: {told or 'none'}", markup=False, soft_wrap=True)


def _running_session() -> Any:
    spark = sys.modules.get("pyspark.sql")
    return None if spark is None else spark.SparkSession.getActiveSession()


def _is_usage_error(error: Exception) -> bool:
    return hasattr(error, "format_message")


def _usage(error: Any) -> str:
    if not error.format_message():
        return ""  # the command was called without arguments, and the help is printed already
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    return f"{error.format_message()}{hint}"


@app.command()
def check(
    operators: Annotated[
        list[str] | None, typer.Argument(help="Operators to check, such as session_windows; all by default.")
    ] = None,
    histories: Annotated[int, typer.Option(min=1, help="How many random histories to draw.")] = 2000,
    seed: Seed = 0,
    folder: FindingsFolder = Path(".streamproof/findings"),
    mutant: Annotated[
        str | None, typer.Option(help="Check a seeded bug instead of the operator, to see a finding.")
    ] = None,
    only: Annotated[Part | None, typer.Option(help="Check the reference alone, or Spark alone.")] = None,
    master: Master = None,
    partitions: Partitions = None,
    shared: Shared = None,
) -> None:
    """The gate: hold operators to every law, the reference first and then Spark, over random out-of-order histories."""
    from ..reference.operators import OPERATORS, operator_named
    from .check import Report, told
    from .check import check as run_check
    from .hunting import chosen
    from .laws import worst
    from .oracle import check_reference
    from .spark_witness import PLAIN, Plan

    names = [operator_named(name).name for name in operators or OPERATORS]
    plan = PLAIN if mutant is None else Plan(logic=chosen(names[0], [mutant])[0].logic, mutant=mutant)
    if only is not Part.REFERENCE:
        _start_spark(master, partitions, shared)

    def on_reference(name: str, progress: Callable[[str], None], report: Report) -> None:
        check_reference(name, histories, seed, folder, progress, report)

    def on_spark(name: str, progress: Callable[[str], None], report: Report) -> None:
        run_check(name, histories, seed, folder, progress, plan, report)

    parts = [(name, "the reference", on_reference) for name in names if mutant is None and only is not Part.SPARK]
    parts += [(name, "on Spark", on_spark) for name in names if only is not Part.REFERENCE]
    verdicts = []
    for name, subject, part in parts:
        report = Report(name, [], seed, subject=subject)
        try:
            with signals.interrupting(), _steps() as progress:
                part(name, progress, report)
        except BaseException:
            # Whatever ended it, what was found until then is reported.
            if signals.received():
                signals.leave()
            _print_report(report, told(report.found))
            raise
        _print_report(report, told(report.found))
        verdicts.append(report.verdict)
    raise typer.Exit(EXITS[worst(verdicts)])


def _print_report(report: Report, findings: Sequence[str]) -> None:
    table = Table(
        "law", "verdict", "histories", "violations", "what it says", title=_title(report), title_justify="left"
    )
    for result in report.results:
        said = result.law.sentence
        if result.verdict == "inconclusive":
            said += f" ({_why_inconclusive(result)})"
        verdict = f"[{STYLES[result.verdict]}]{result.verdict}[/]"
        if result.skipped:
            verdict, said = "[yellow]skipped[/]", escape(result.skipped)
        table.add_row(result.law.name, verdict, f"{result.judged:,}", f"{len(result.violations):,}", said)
    results.print(table)
    came_up = ", ".join(f"{name} {count:,}" for name, count in sorted(report.situations.items()))
    results.print(f"Situations, in how many drawn histories: {came_up or 'none'}.", markup=False)
    for finding in findings:
        results.print()
        results.print(finding, markup=False, soft_wrap=True)
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
    return f"never came up: {', '.join(result.missing)}" if result.judged else "no history judged"


@app.command()
def run(
    paths: Annotated[
        list[Path], typer.Argument(help="History files, or folders of them (*.jsonl).", metavar="HISTORY…")
    ],
    on: Annotated[WitnessName, typer.Option("--on", help="The witness that answers.")] = WitnessName.REFERENCE,
    table: Annotated[bool, typer.Option("--table", help="Print the folded table at the end instead.")] = False,
    master: Master = None,
    partitions: Partitions = None,
    shared: Shared = None,
) -> None:
    """Run history files on one witness, and print what comes out as JSON Lines."""
    histories = _histories(paths)
    if on in ON_SPARK:
        _start_spark(master, partitions, shared)
    outcomes = _answer(histories, on)
    try:
        for outcome in outcomes:
            lines = outcome.table_lines() if table or on is WitnessName.DUCKDB else outcome.to_lines()
            for line in lines:
                print(json_line(line))
        sys.stdout.flush()
    except OutputLost as lost:
        if not lost.closed:  # else `head` has read enough
            raise


def _histories(paths: Sequence[Path]) -> list[History]:
    from ..reference.histories import read_history

    files = _files(paths, "history files")
    histories = [read_history(path) for path in files]
    names = [history.name for history in histories]
    for name, path in zip(names, files, strict=True):
        if names.count(name) > 1:
            raise BadInput(
                f"{path}: two histories are called {name!r}: rename one, for lines are told apart by that name"
            )
    return histories


def _files(paths: Sequence[Path], what: str) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        if not found:
            raise BadInput(f"{path}: a folder without {what}: they end in .jsonl")
        files += found
    return files


def _answer(histories: Sequence[History], on: WitnessName) -> list[Outcome]:
    from ..reference.play import play
    from .outcomes import Outcome

    if on is WitnessName.REFERENCE:
        return [Outcome.of_play(history.name, play(history)) for history in histories]
    if on is WitnessName.DUCKDB:
        from .duckdb_witness import tables

        return tables(histories)
    if on is WitnessName.KAFKA:
        from .kafka_witness import answer as answer_of_kafka

        with _steps() as progress:
            progress(f"{_counted(histories)} on Kafka Streams")
            return answer_of_kafka(histories)
    if on is WitnessName.PROTOCOL:
        from .oracle import answer_of_protocol

        return answer_of_protocol(histories)
    from .spark_witness import Plan, answer

    otherwise = [history.name for history in histories if history.clock != "batch"]
    if otherwise:
        messages.print(
            f"note: Spark has the batch clock, not stream time: {', '.join(map(visible, otherwise))}",
            markup=False,
            soft_wrap=True,
        )
    with _steps() as progress:
        progress(f"{_counted(histories)} on Spark")
        return answer(histories, Plan(native=on is WitnessName.SPARK_NATIVE))


def _counted(histories: Sequence[History]) -> str:
    return f"{len(histories)} {'history' if len(histories) == 1 else 'histories'}"


@app.command()
def compare(
    operator: Annotated[str, typer.Argument(help="The operator, such as session_windows.")],
    data: Annotated[str, typer.Option("--data", help="`flights`, or a parquet, CSV or JSON Lines file.")],
    key: Annotated[
        list[str] | None, typer.Option("--key", help="A column of the key; may be given several times.")
    ] = None,
    timestamp: Annotated[str | None, typer.Option("--timestamp", help="The column of event time.")] = None,
    order: Annotated[
        str | None, typer.Option("--order", help="The column of arrival order; the file's by default.")
    ] = None,
    value: Annotated[str | None, typer.Option("--value", help="The column that is aggregated.")] = None,
    aggregate: Annotated[str, typer.Option(help="count, sum, min, max or list.")] = "count",
    gap: Annotated[str, typer.Option(help='The inactivity gap that ends a session, such as "30 minutes".')] = "4 hours",
    grace: Annotated[str, typer.Option(help="How much longer a session stays open for late records.")] = "0 ms",
    emit: Annotated[
        str, typer.Option(help="Tell every change of a session (update), or its final value (close).")
    ] = "update",
    late: Annotated[
        str, typer.Option(help="Lateness is tested on the merged session (merged), or on the record alone (own).")
    ] = "merged",
    batches: Annotated[int, typer.Option(min=1, help="How many micro-batches.")] = 12,
    on: Annotated[
        list[WitnessName] | None, typer.Option("--on", help="Witnesses; reference, spark and duckdb by default.")
    ] = None,
    master: Master = None,
    partitions: Partitions = None,
    shared: Shared = None,
) -> None:
    """Compare witnesses on a data set, in its real order of arrival."""
    from ..reference.operators import operator_named
    from ..spark_impl.durations import milliseconds
    from .compare import compare_data
    from .data import flights, load

    operator_named(operator)
    options = {
        "gap_ms": milliseconds("--gap", gap),
        "grace_ms": milliseconds("--grace", grace),
        "aggregate": aggregate,
        "emit": emit,
        "late": late,
    }
    operator_named(operator).declare(options)
    if data == "flights":
        data_set = flights()
    else:
        for name, given in (("--key", key), ("--timestamp", timestamp)):
            if not given:
                raise BadInput(f"{name} is missing: name the column of {data} that it is")
        data_set = load(Path(data), key or [], timestamp or "", order, value)
    chosen = on or [WitnessName.REFERENCE, WitnessName.SPARK, WitnessName.DUCKDB]
    witnesses = [name.value for name in chosen]
    if not ON_SPARK.isdisjoint(chosen):
        _start_spark(master, partitions, shared)
    with _steps() as progress:
        comparison = compare_data(data_set, options, witnesses, batches, progress)
    _print_comparison(comparison, data_set)
    raise typer.Exit(EXITS[comparison.verdict])


def _print_comparison(comparison: Comparison, data_set: DataSet) -> None:
    from .findings import both_shown

    disorder = data_set.disorder()
    for note, count in data_set.notes.items():
        results.print(f"{note}: {count:,}", markup=False)
    results.print(
        f"out of order: {disorder.late_rows:,} records, the furthest {disorder.largest_lateness_ms:,} ms behind",
        markup=False,
    )
    table = Table(
        "witness",
        "seconds",
        "dropped",
        title=f"{escape(visible(data_set.name))}, {comparison.batches} batches",
        title_justify="left",
    )
    for witness in comparison.witnesses:
        dropped = comparison.dropped.get(witness)
        reasons = "not told" if dropped is None else ", ".join(f"{why}: {count:,}" for why, count in dropped.items())
        table.add_row(witness, f"{comparison.seconds[witness]:.1f}", reasons or "none")
    results.print(table)
    merges = "" if comparison.merges is None else f", {comparison.merges:,} records that joined sessions"
    results.print(
        f"{comparison.rows:,} records, {comparison.sessions:,} sessions, {comparison.changes:,} changes "
        f"({comparison.tombstones:,} tombstones){merges}.",
        markup=False,
    )
    for left, right, difference in comparison.differences:
        when = "at the end" if difference.when is None else f"batch {difference.when}"
        results.print(f"key {visible(difference.key)}, {when}:", markup=False)
        for witness, told in zip((left, right), both_shown(difference.left, difference.right), strict=True):
            results.print(f"  {witness}: {told}", markup=False, soft_wrap=True)
    results.print(f"[{STYLES[comparison.verdict]}]{comparison.verdict}[/]: {escape(comparison.why)}")


@app.command()
def mutants(
    operator: Annotated[str, typer.Argument(help="The operator, such as session_windows.")],
    names: Annotated[list[str] | None, typer.Argument(help="Mutants; all by default.")] = None,
    histories: Annotated[int, typer.Option(min=1, help="How many random histories each is held to.")] = 100,
    seed: Seed = 0,
    rounds: Annotated[int, typer.Option(min=0, help="Rounds of shrinking.")] = 4,
    master: Master = None,
    partitions: Partitions = None,
    shared: Shared = None,
) -> None:
    """Hold seeded bugs to the laws: one that survives is a hole in the gate."""
    from .hunting import chosen, hunt

    selected = chosen(operator, names or [])
    _start_spark(master, partitions, shared)
    kills: dict[str, Kill] = {}
    try:
        with signals.interrupting(), _steps() as progress:
            hunt(selected, histories, seed, progress, rounds, kills)
    except BaseException:
        # Whatever ended it, what was found until then is reported.
        if signals.received():
            signals.leave()
        _print_kills(operator, [*kills.values()], seed, finished=False)
        raise
    survivors = _print_kills(operator, [*kills.values()], seed, finished=True)
    if survivors:
        results.print(f"survived: {', '.join(survivors)}", style="bold red", markup=False)
    raise typer.Exit(1 if survivors else 0)


def _print_kills(operator: str, kills: Sequence[Kill], seed: int, finished: bool) -> list[str]:
    """Print what became of mutants, and return the names of those that survived, or aren't killed yet."""
    table = Table(
        "mutant",
        "killed by",
        "in histories",
        "shrunk to",
        "also by",
        "what is wrong",
        title=operator,
        title_justify="left",
    )
    for kill in kills:
        if kill.law is None:
            held = f"0 of {max(kill.judged.values(), default=0)}"
            table.add_row(
                kill.mutant.name,
                "[bold red]survived[/]" if finished else "[yellow]not finished[/]",
                held,
                "",
                "",
                kill.mutant.sentence,
            )
            continue
        smallest = kill.shrunk or kill.drawn[kill.law]
        length = f"{len(smallest.records)} records{'' if kill.shrunk else ', as drawn'}"
        others = ", ".join(sorted(law for law in kill.laws if law != kill.law))
        count = f"{kill.laws[kill.law]} of {kill.judged[kill.law]}"
        table.add_row(kill.mutant.name, kill.law, count, length, others, kill.mutant.sentence)
    results.print(table)
    survivors = [kill.mutant.name for kill in kills if not kill.killed]
    until = "" if finished else " until then"
    results.print(f"{len(kills) - len(survivors)} of {len(kills)} mutants killed{until}, seed {seed}.", markup=False)
    return survivors


@app.command()
def divergences(
    names: Annotated[list[str] | None, typer.Argument(help="Divergences; all by default.")] = None,
) -> None:
    """List where the real Kafka Streams contradicts its documents, each with its smallest history.

    Exits 0 if Kafka still shows each, 1 if it no longer shows one, 2 if Kafka Streams isn't here to ask.
    """
    from .divergences import answers_of, chosen

    told, verdict = [], "conforms"
    for divergence in chosen(names or []):
        reference, kafka, why = answers_of(divergence)
        text, shows = _told_divergence(divergence, reference, kafka, why)
        told.append(text)
        verdict = (
            "violated" if shows is False else "inconclusive" if shows is None and verdict == "conforms" else verdict
        )
    results.print("\n\n".join(told), markup=False, soft_wrap=True)
    raise typer.Exit(EXITS[verdict])


def _told_divergence(
    divergence: Divergence, reference: Outcome, kafka: Outcome | None, why: str
) -> tuple[str, bool | None]:
    from .findings import side_by_side
    from .outcomes import differences

    setting = "" if divergence.setting == "plain" else f" Shown with: {divergence.setting}."
    lines = [
        f"{divergence.name} ({divergence.operator})",
        f"  Kafka Streams: {divergence.sentence}. Source: {divergence.source}.{setting}",
        *(f"    {line}" for line in divergence.history.to_text().splitlines()),
    ]
    if kafka is None:
        return "\n".join([*lines, f"  Kafka Streams can't be asked: {why}"]), None
    found = differences(reference, kafka)
    keys = {entry.output.key for outcome in (reference, kafka) for entry in outcome.entries}
    lines += side_by_side(("reference", reference), ("Kafka Streams", kafka), keys)
    return "\n".join(lines if found else [*lines, "  Kafka Streams no longer shows it."]), bool(found)


regress = typer.Typer(
    help="Record a witness's answers, and hold a witness of today against them.", no_args_is_help=True
)
app.add_typer(regress, name="regress")


@regress.command("record")
def regress_record(
    folder: Annotated[Path, typer.Argument(help="Folder that the recordings are written to, a file a definition.")],
    operators: Annotated[
        list[str] | None, typer.Argument(help="Operators; all that the witness has by default.")
    ] = None,
    on: Annotated[WitnessName, typer.Option("--on", help="The witness that answers.")] = WitnessName.REFERENCE,
    histories: Annotated[int, typer.Option(min=1, help="How many histories an operator, at the least.")] = 100,
    seed: Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace recordings that say something else.")] = False,
) -> None:
    """Record what a witness says of random histories, so that it can be checked where the witness can't run.

    A recording that is there already and says something else is replaced with --force alone.
    """
    from ..reference.operators import OPERATORS, operator_named
    from .regress import drawn, record, recording, refuse_others

    clock = "batch" if on in (WitnessName.SPARK, WitnessName.SPARK_NATIVE) else "stream_time"
    answered: dict[Path, tuple[list[History], list[Outcome]]] = {}
    for operator in [operator_named(name).name for name in operators or OPERATORS]:
        for shape, of_shape in drawn(operator, histories, seed, clock, _refusal_of(on)).items():
            path = folder / f"{operator}-{shape.replace(', ', '-').replace(' ', '-')}.jsonl"
            answered[path] = of_shape, _answer(of_shape, on)
    if not answered:
        raise BadInput(f"{on.value} answers none of {', '.join(operators or OPERATORS)}: choose another witness")
    texts = {path: recording(on.value, *pair, seed) for path, pair in answered.items()}
    same = [] if force else refuse_others(texts, seed)
    for path, (of_shape, outcomes) in answered.items():
        if path not in same:
            record(path, on.value, of_shape, outcomes, seed)
        note = ", recorded before" if path in same else ""
        messages.print(f"{path}: {_counted(of_shape)}{note}", markup=False, soft_wrap=True)
    count = sum(len(of_shape) for of_shape, _ in answered.values())
    results.print(f"{count:,} histories recorded on {on.value}, seed {seed}.", markup=False)


@regress.command("check")
def regress_check(
    paths: Annotated[
        list[Path], typer.Argument(help="Recordings, or folders of them (*.jsonl).", metavar="RECORDING…")
    ],
    on: Annotated[WitnessName, typer.Option("--on", help="The witness that is checked.")] = WitnessName.REFERENCE,
) -> None:
    """Hold a witness against recorded answers, but for the named divergences of a recorded Kafka Streams."""
    from .findings import side_by_side
    from .regress import compare_recorded

    comparison = compare_recorded(_files(paths, "recordings"), lambda histories: _answer(histories, on))
    for history, found, now, before in comparison.parted[:3]:
        keys = {difference.key for difference in found} | {record.key for record in history.records}
        results.print(
            "\n".join(
                [visible(history.name), history.to_text(), *side_by_side((on.value, now), ("recorded", before), keys)]
            ),
            markup=False,
            soft_wrap=True,
        )
    named = ", ".join(f"{name} {count:,}" for name, count in comparison.divergences.most_common())
    if named:
        results.print(f"Named divergences of Kafka Streams, in how many histories: {named}.", markup=False)
    verdict = "violated" if comparison.parted else "conforms" if comparison.histories else "inconclusive"
    results.print(
        f"[{STYLES[verdict]}]{verdict}[/]: {comparison.histories:,} recorded histories, {len(comparison.parted):,} of "
        f"them answered otherwise by {on.value}."
    )
    raise typer.Exit(EXITS[verdict])


def _refusal_of(on: WitnessName) -> Callable[[History], str | None]:
    if on is WitnessName.KAFKA:
        from .kafka_witness import refusal

        return refusal
    if on is WitnessName.PROTOCOL:
        return lambda history: None if history.operator == "foreign_key_join" else "no messages"
    if on is WitnessName.SPARK_NATIVE:
        from .spark_witness import native_refusal

        return native_refusal
    return lambda history: None


@app.command()
def doctor() -> None:
    """Say what this machine lacks, and the command that mends it."""
    from .doctor import diagnose

    found = diagnose()
    table = Table("", "what", "found", "remedy")
    marks = {
        "ok": "[green]ok[/]",
        "missing": "[bold red]missing[/]",
        "wrong": "[bold red]wrong[/]",
        "optional": "[yellow]optional[/]",
    }
    for finding in found:
        table.add_row(
            marks[finding.status], finding.name, *(escape(visible(told)) for told in (finding.found, finding.remedy))
        )
    results.print(table)
    raise typer.Exit(COULD_NOT_RUN if any(finding.blocks for finding in found) else 0)


if __name__ == "__main__":
    main()

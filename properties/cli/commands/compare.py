"""The command `compare`, which compares the outcomes of witnesses on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ....reference.core.errors import BadInput
from ...system.garbage import searched_seldom
from ...system.visible import visible
from ...witnesses.kafka.versions import use_version
from ..options import KafkaVersion, Master, Partitions, Shared
from ..terminal import EXITS, STYLES, results, steps, titled_table
from ..witnesses import ON_SPARK, WitnessName, start_spark

if TYPE_CHECKING:
    from ...datasets.compare import ComparedData
    from ...datasets.data import DataSet


def compare(
    operator: Annotated[str, typer.Argument(help="The operator, such as session_windows.")],
    data: Annotated[str, typer.Option(help="`flights`, or a parquet, CSV or JSON Lines file.")],
    key: Annotated[list[str] | None, typer.Option(help="A column of the key; may be given several times.")] = None,
    timestamp: Annotated[str | None, typer.Option(help="The column of event time.")] = None,
    order: Annotated[str | None, typer.Option(help="The column of arrival order; the file's by default.")] = None,
    value: Annotated[str | None, typer.Option(help="The column to aggregate.")] = None,
    aggregate: Annotated[str, typer.Option(help="count, sum, min, max or list.")] = "count",
    gap: Annotated[str, typer.Option(help='The inactivity gap that ends a session, such as "30 minutes".')] = "4 hours",
    grace: Annotated[
        str, typer.Option(help="The time beyond the gap in which a session stays open for late records.")
    ] = "0 ms",
    emit: Annotated[
        str, typer.Option(help="Emit every change of a session (update), or its final value (close).")
    ] = "update",
    late: Annotated[
        str, typer.Option(help="Lateness is tested on the merged session (merged), or on the record alone (own).")
    ] = "merged",
    batches: Annotated[int, typer.Option(min=1, help="The number of micro-batches.")] = 12,
    on: Annotated[
        list[WitnessName] | None, typer.Option(help="Witnesses; reference, spark and duckdb by default.")
    ] = None,
    master: Master = None,
    partitions: Partitions = None,
    shared: Shared = None,
    kafka_version: KafkaVersion = None,
) -> None:
    """Compare witnesses on a data set, in its real order of arrival."""
    from ....reference.core.operator import operator_named
    from ....spark_impl.runtime.durations import milliseconds
    from ...datasets.compare import compare_data
    from ...datasets.data import flights, load
    from ...witnesses.by_name import witness_named

    use_version(kafka_version)
    declare = operator_named(operator).declare
    options = {
        "gap_ms": milliseconds("--gap", gap),
        "grace_ms": milliseconds("--grace", grace),
        "aggregate": aggregate,
        "emit": emit,
        "late": late,
    }
    declare(options)
    if data == "flights":
        data_set = flights()
    elif key and timestamp:
        data_set = load(Path(data), key, timestamp, order, value)
    else:
        raise BadInput(f"{'--timestamp' if key else '--key'} is missing: give the name of a column of {data}")
    chosen = on or [WitnessName.REFERENCE, WitnessName.SPARK, WitnessName.DUCKDB]
    witnesses = [witness_named(name) for name in chosen]
    if not ON_SPARK.isdisjoint(chosen):
        start_spark(master, partitions, shared)
    with searched_seldom(), steps() as progress:
        comparison = compare_data(data_set, options, witnesses, batches, progress)
    _print(comparison, data_set)
    raise typer.Exit(EXITS[comparison.verdict])


def _print(comparison: ComparedData, data_set: DataSet) -> None:
    from ...outcomes.notation import both_shown

    disorder = data_set.disorder()
    for note, count in data_set.notes.items():
        results.print(f"{note}: {count:,}", markup=False)
    results.print(
        f"out of order: {disorder.late_rows:,} records, the furthest {disorder.largest_lateness_ms:,} ms behind",
        markup=False,
    )
    title = f"{escape(visible(data_set.name))}, {comparison.batches} batches"
    table = titled_table(title, "witness", "seconds", "dropped")
    for witness in comparison.witnesses:
        dropped = comparison.dropped.get(witness)
        reasons = ", ".join(f"{why}: {count:,}" for why, count in (dropped or {}).items()) or "none"
        table.add_row(witness, f"{comparison.seconds[witness]:.1f}", "not reported" if dropped is None else reasons)
    results.print(table)
    merges = "" if comparison.merges is None else f", {comparison.merges:,} records that joined sessions"
    results.print(
        f"{comparison.rows:,} records, {comparison.sessions:,} sessions, {comparison.changes:,} changes "
        f"({comparison.tombstones:,} tombstones){merges}.",
        markup=False,
    )
    for witness, what in comparison.compared.items():
        results.out(f"Compared: {comparison.witnesses[0]} with {witness}, {what}.")
    for other, difference in comparison.differences:
        when = "at the end" if difference.when is None else f"batch {difference.when}"
        results.print(f"key {visible(difference.key)}, {when}:", markup=False)
        sides = both_shown(difference.expected, difference.actual)
        for witness, shown in zip((comparison.witnesses[0], other), sides, strict=True):
            results.out(f"  {witness}: {shown}")
    results.print(f"[{STYLES[comparison.verdict]}]{comparison.verdict}[/]: {escape(comparison.why)}")

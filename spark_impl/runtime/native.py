"""Spark's own operators as changelogs: windows emitted once, when they close, and the columns of a changelog."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.definitions.aggregates import Aggregate
from .inputs import OperatorInput, any_null
from .logic import UPDATE

WINDOW = "struct<start: timestamp, end: timestamp>"


def changelog(
    rows: DataFrame,
    keys: Sequence[tuple[str, str]],
    *,
    value: Column,
    timestamp: Column,
    window: Column | None = None,
    cause: Column | None = None,
) -> DataFrame:
    """Return the rows of one of Spark's own operators with a changelog's columns; each row is an update.

    `place` is missing, because Spark's operators lose the order of arrival, which the next operator would need.

    Args:
        rows: The output of Spark's operator.
        keys: The name of each key column, and its column in `rows`.
        value: The value.
        timestamp: Its timestamp.
        window: `struct<start: timestamp, end: timestamp>`; none by default.
        cause: The order column's value of the row that caused the change; unknown by default.
    """
    return rows.select(
        *(F.col(held).alias(name) for name, held in keys),
        (F.lit(None) if window is None else window).cast(WINDOW).alias("window"),
        value.alias("value"),
        timestamp.alias("timestamp"),
        F.lit(UPDATE).alias("change"),
        F.lit(None).cast("string").alias("reason"),
        (F.lit(None).cast("bigint") if cause is None else cause).alias("cause"),
        F.lit(0).alias("ordinal"),
    )


def closed_windows(
    events: OperatorInput, *, size_ms: int, step_ms: int, grace_ms: int, aggregate: Aggregate
) -> DataFrame:
    """Aggregate a stream by Spark's own `window`; emit each window from 1970 on once, when end <= clock - grace."""
    names = [f"key_{number}" for number in range(len(events.keys))]
    has_key = ~any_null([column for column, _ in events.keys])
    rows = events.frame.filter(has_key & events.time.isNotNull()).select(
        F.timestamp_millis(F.unix_millis(events.time)).alias("clock"),
        *(column.alias(name) for name, (column, _) in zip(names, events.keys, strict=True)),
        events.value.alias("value"),
        events.order.alias("order"),
    )
    aggregated = F.expr(aggregate.spark)
    if aggregate.ordered:
        # Sort by arrival, because Spark collects lists in no defined order.
        members = F.array_sort(F.collect_list(F.struct("order", "clock", "value")))
        aggregated = F.transform(members, lambda member: member["value"])
    windows = (
        rows.withWatermark("clock", f"{grace_ms} milliseconds")
        .groupBy(F.window("clock", f"{size_ms} milliseconds", f"{step_ms} milliseconds").alias("window"), *names)
        .agg(aggregated.alias("value"), F.max("clock").alias("latest"))
        .filter(F.unix_millis("window.start") >= 0)
    )
    named = [(field.name, name) for name, (_, field) in zip(names, events.keys, strict=True)]
    return changelog(windows, named, value=F.col("value"), timestamp=F.col("latest"), window=F.col("window"))


def key_names(keys: Sequence[tuple[Column, T.StructField]], prefix: str) -> list[str]:
    """Return column names for a key that don't clash with another side's names."""
    return [f"{prefix}_key_{number}" for number in range(len(keys))]

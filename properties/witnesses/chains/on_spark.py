"""A chain on Spark: one query in which each operator reads the changelog of the operator before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....reference.core.records import Record, Value
from ...generators.chains import DRIVER, REFERRED, SEPARATOR, Chain, Link, StreamBatch, clock_records
from ...registration.bindings import FOREIGN_KEY, INPUT, KEY, ORDER, TIMESTAMP, VALUE, Columns
from ...registration.registration import registration_of
from ..spark.query import run_stream
from .composed import LIST_BASE, LIST_MODULUS, ChainChanges

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import types as T

GROUP = "group"
_TYPE = pa.struct([("v", pa.int64()), ("ref", pa.string())])
_COLUMNS = Columns(report_dropped=False)


def changelog_on_spark(
    spark: SparkSession,
    chain: Chain,
    histories: Sequence[Sequence[StreamBatch]],
    between: Callable[[DataFrame], DataFrame] = lambda changelog: changelog,
) -> ChainChanges:
    """Run a chain over histories in one query, and return the emitted changes.

    Args:
        spark: The session.
        chain: The chain.
        histories: The histories.
        between: A mutant's function, which changes each changelog before the next operator reads the changelog.
    """
    ran = run_stream(spark, _tables(chain, histories), lambda frame: chained(chain, frame, between))
    emitted: ChainChanges = defaultdict(list)
    for batch, table in ran.batches:
        for row in sorted(table.to_pylist(), key=lambda row: row["ordinal"]):
            if not row[KEY].startswith(DRIVER):
                window = row["window"] and (_ms(row["window"]["start"]), _ms(row["window"]["end"]))
                emitted[batch, row[KEY]].append((window, _plain(row[VALUE]), _ms(row[TIMESTAMP])))
    return dict(emitted)


def chained(chain: Chain, frame: DataFrame, between: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Return the changelog of a chain whose inputs are rows of a frame."""
    from pyspark.sql import functions as F

    changelog: DataFrame | None = None
    for number, link in enumerate(chain.links):
        inputs = {side: frame.filter(F.col(INPUT) == f"{number} {side}") for side in link.definition.inputs}
        if changelog is not None:
            inputs[link.side] = _as_input(between(changelog))
        changelog = _applied(link, inputs)
    assert changelog is not None
    return changelog.select(KEY, "window", VALUE, TIMESTAMP, "ordinal")


def _applied(link: Link, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the changelog of an operator, whose inputs have the columns of all operators."""
    from pyspark.sql import functions as F

    prepared: dict[str, DataFrame] = {}
    for side, frame in inputs.items():
        given = frame.withColumns({INPUT: F.lit(side), FOREIGN_KEY: F.col("value.ref"), GROUP: F.col("value.ref")})
        if link.takes_numbers:
            given = given.filter(F.col(VALUE).isNotNull())
        prepared[side] = given.withColumn(VALUE, F.col("value.v")) if hasattr(link.definition, "aggregate") else given
    binding = registration_of(link.operator).spark
    assert binding is not None
    assert binding.typed is not None
    frames = prepared if len(prepared) > 1 else prepared["events"]
    return binding.typed(link.definition, frames, None, 3, columns=_COLUMNS)


def _as_input(changelog: DataFrame) -> DataFrame:
    """Return a changelog as rows of an input of the next operator."""
    from pyspark.sql import functions as F

    number, referred = _parts(F.col(VALUE), changelog.schema[VALUE].dataType)
    bounds = [F.coalesce(F.unix_millis(f"window.{name}"), F.lit(0)) for name in ("start", "end")]
    value = F.struct((F.coalesce(number, F.lit(0)) + bounds[0] + 2 * bounds[1]).alias("v"), referred.alias("ref"))
    return changelog.select(
        KEY,
        F.when(F.col(VALUE).isNotNull(), value).alias(VALUE),
        F.unix_millis(TIMESTAMP).alias(TIMESTAMP),
        F.col("place").alias(ORDER),
    )


def _parts(value: Column, kind: T.DataType) -> tuple[Column, Column]:
    """Return the number of a value and the key that it refers to, by the value's type."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.StructType) and kind.names == ["left", "right"]:
        (one, referred), (other, other_referred) = (_parts(value[name], kind[name].dataType) for name in kind.names)
        return 3 * F.coalesce(one, F.lit(0)) + F.coalesce(other, F.lit(0)), F.coalesce(referred, other_referred)
    if isinstance(kind, T.StructType):
        return value["v"], value["ref"]
    if isinstance(kind, T.ArrayType):
        zero = F.lit(0).cast("bigint")
        value = F.aggregate(value, zero, lambda made, member: (LIST_BASE * made + member) % LIST_MODULUS)
    number = value.cast("bigint")
    prefix = F.substring_index(KEY, SEPARATOR, 1)
    name = F.when(prefix == DRIVER, "r")
    for at, referred_name in enumerate(REFERRED):
        name = name.when(number % len(REFERRED) == at, F.lit(referred_name))
    return number, F.when(number.isNotNull(), F.concat(prefix, F.lit(SEPARATOR), name))


def _tables(chain: Chain, histories: Sequence[Sequence[StreamBatch]]) -> list[pa.Table]:
    """Return a table for each batch of all histories; its first rows move the clock."""
    tables, order = [], 0
    for number, (clock_ms, _) in enumerate(histories[0]):
        records = [*clock_records(chain, clock_ms), *(record for one in histories for record in one[number][1])]
        tables.append(_table(records, order))
        order += len(records)
    return tables


def _table(records: Sequence[Record], first: int) -> pa.Table:
    columns = dict(zip((INPUT, KEY, VALUE, TIMESTAMP), zip(*records, strict=True), strict=True))
    columns[ORDER] = tuple(range(first, first + len(records)))
    kinds = {INPUT: pa.string(), KEY: pa.string(), VALUE: _TYPE}
    return pa.table({name: pa.array(column, kinds.get(name, pa.int64())) for name, column in columns.items()})


def _plain(value: Any) -> Value:
    """Return a value in the reference's form, in which a joined value is a list."""
    if isinstance(value, dict) and set(value) == {"left", "right"}:
        return [_plain(value["left"]), _plain(value["right"])]
    return value


def _ms(time: Any) -> int:
    milliseconds: int = round(time.timestamp() * 1_000)
    return milliseconds

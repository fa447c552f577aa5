"""The table-table join as plain Spark SQL over its state and a batch, in `foreachBatch`.

Window functions compute the changelog over the batch's rows and the state's rows with the batch's keys. The state is a
folder of parquet files, a log-structured merge tree: each batch adds a run of its changed rows, and runs of similar
size are merged. A file lists the runs after the last completed batch, and is replaced atomically, as a restart would
need it; here no query restarts, and the file isn't read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

OPERATOR = "table_table_join"
CHANGES = ("key", "value", "timestamp", "change", "cause")
"""The compared columns; a row changes its key once, so the causes also order the changes."""


class Run(NamedTuple):
    """One run of the merge tree: its folder's name, and its number of rows."""

    name: str
    rows: int


class SqlTableTableJoin:
    """An outer join of two tables in SQL; changes and state both stay in Spark's engine."""

    def __init__(self, folder: Path, write: Callable[[DataFrame, Path | None], None]) -> None:
        self.write = write
        self.folder = folder
        folder.mkdir(parents=True)
        self.current = folder / "runs.json"
        self.runs: list[Run] = []
        self.batch = 0

    @staticmethod
    def rows(inputs: Mapping[str, DataFrame], value: Column) -> DataFrame:
        """Return the rows of both inputs with `key`, `order`, and the changed row of one side."""
        from pyspark.sql import functions as F

        sides = [
            frame.select(
                "key",
                "order",
                *(F.when(F.lit(name == side), F.struct(value, "time")).alias(name) for name in ("left", "right")),
            )
            for side, frame in inputs.items()
        ]
        return reduce(lambda one, other: one.unionByName(other), sides)

    def changes(self, rows: DataFrame) -> DataFrame:
        """Return the changes of a batch, and the rows of the state after it, marked by `emitted` and `last`."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        before = F.lit(-1).cast("bigint").alias("order")
        if self.runs:
            keys = F.broadcast(rows.select("key").distinct())
            held = self.newest(self.read(rows.sparkSession, self.runs).join(keys, "key", "left_semi"))
            rows = rows.unionByName(held.select("key", before, "left", "right"))
        by_key = Window.partitionBy("key").orderBy("order")
        earlier = by_key.rowsBetween(Window.unboundedPreceding, -1)
        seen = {name: F.last(name, ignorenulls=True).over(earlier) for name in ("left", "right")}
        found = rows.select(
            "*",
            *(column.alias(f"{name}_before") for name, column in seen.items()),
            F.lead("order").over(by_key).isNull().alias("last"),
        )
        is_left = F.col("left").isNotNull()
        new, old, other = (
            F.when(is_left, F.col(one)).otherwise(F.col(two))
            for one, two in (("left", "right"), ("left_before", "right_before"), ("right_before", "left_before"))
        )
        there = [F.coalesce(side["value"].isNotNull(), F.lit(False)) for side in (new, old, other)]
        after = [F.coalesce(F.col(name), F.col(f"{name}_before")).alias(name) for name in ("left", "right")]
        joined = F.struct(after[0]["value"].alias("left"), after[1]["value"].alias("right"))
        time = F.greatest(new["time"], F.when(there[2], other["time"]))
        emitted = (F.col("order") >= 0) & (there[0] | there[1] | there[2])
        ordinal = F.sum(emitted.cast("int")).over(by_key.rowsBetween(Window.unboundedPreceding, 0)) - 1
        return found.select(
            "key",
            "order",
            *after,
            F.when(there[0] | there[2], joined).alias("value"),
            F.timestamp_millis(time).alias("timestamp"),
            emitted.alias("emitted"),
            "last",
            ordinal.cast("int").alias("ordinal"),
        )

    def write_batch(self, rows: DataFrame, to: Path | None) -> None:
        """Write a batch's changelog, then its state."""
        from pyspark.sql import functions as F

        found = self.changes(rows).persist()
        try:
            change = F.when(F.col("value").isNull(), "tombstone").otherwise("update").alias("change")
            columns = ["key", "value", "timestamp", change, F.col("order").alias("cause"), "ordinal"]
            self.write(found.filter("emitted").select(*columns), to)
            new = self.written(found.filter("last").select("key", "left", "right"), f"batch-{self.batch}")
        finally:
            found.unpersist()
        self.commit(rows.sparkSession, [*self.runs, new])

    def commit(self, spark: SparkSession, runs: Sequence[Run]) -> None:
        """Merge runs of similar size, and replace the file that lists the runs."""
        merged, replaced = list(runs), []
        while len(merged) > 1 and merged[-2].rows <= 2 * merged[-1].rows:
            *merged, older, newer = merged
            replaced += [older, newer]
            merged.append(self.written(self.newest(self.read(spark, [older, newer])), f"{newer.name}-{len(merged)}"))
        staged = self.current.with_suffix(".new")
        staged.write_text(json.dumps({"batch": self.batch, "runs": merged}))
        os.replace(staged, self.current)
        for run in replaced:
            shutil.rmtree(self.folder / run.name)
        self.runs, self.batch = merged, self.batch + 1

    def read(self, spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
        """Read the rows of several runs, each with the ordinal of its run."""
        from pyspark.sql import functions as F

        schema = spark.read.parquet(str(self.folder / runs[0].name)).schema
        frames = [
            spark.read.schema(schema).parquet(str(self.folder / run.name)).withColumn("run", F.lit(number))
            for number, run in enumerate(runs)
        ]
        return reduce(lambda one, other: one.unionByName(other), frames)

    def newest(self, rows: DataFrame) -> DataFrame:
        """Return each key's row in the newest run that has this key."""
        from pyspark.sql import functions as F

        last = rows.groupBy("key").agg(F.max_by(F.struct("left", "right"), "run").alias("row"))
        return last.select("key", "row.left", "row.right")

    def written(self, rows: DataFrame, name: str) -> Run:
        """Write rows to a new run of the merge tree."""
        folder = self.folder / name
        rows.write.mode("overwrite").parquet(str(folder))
        return Run(name, sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet")))

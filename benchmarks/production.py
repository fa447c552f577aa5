"""Measures one million records through each operator, beside Spark's own operator or plain SQL on the same data.

Each operator runs as a streaming query over parquet files, one a micro-batch (16 of equal size), on RocksDB, and writes
its changelog to parquet. Timed is a query's life, from its start to its end; growth is that of the times at which the
first sixteenth of the records was through, the first eighth, and so on. Afterwards the result is compared with the
baseline's: a benchmark of wrong answers is worth nothing.

All run in one process of their own, whose JVM has both its compilers, as in production. `python -m
benchmarks.production ROWS BATCHES ROUNDS OPERATOR…` is that process: it prints what it measured as JSON, an operator a
line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from streamproof.properties.witnesses.spark.query import reported_failures
from streamproof.reference.core.errors import StreamproofError

from .figures import Figure, Setting, Target, figure, growth_exponent, ratio, seconds
from .machine import ROOT
from .production_cases import CASES, Case, arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES = 16
Measured = dict[str, Any]


def run(setting: Setting) -> list[Figure]:
    """Measure, operator by operator."""
    sizes = (setting.size(1_000_000, 8_000), setting.size(BATCHES, 4), setting.times(1))
    words = [sys.executable, "-m", "benchmarks.production", *map(str, sizes), *setting.among(CASES)]
    figures: list[Figure] = []
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            if "step" in message:
                setting.progress(message["step"])
            else:
                figures += _figures(message)
        if process.wait():
            errors.seek(0)
            raise StreamproofError(f"`{' '.join(words)}` failed: {(errors.read().strip().splitlines() or ['?'])[-1]}")
    return figures


def _figures(measured: Measured) -> list[Figure]:
    operator, cores, rows, batches = (measured[name] for name in ("operator", "cores", "rows", "batches"))
    sizes = f"{rows:,} records in {batches} batches, {cores} cores"
    runs: list[list[float]] = measured["passed"]
    ours = figure(operator, "records/s/core", [rows / passed[-1] / cores for passed in runs], sizes)
    theirs = figure(
        f"{operator}: {measured['against']}",
        "records/s/core",
        [rows / run / cores for run in measured["baseline"]],
        sizes if measured["streaming"] else f"{rows:,} records at once, {cores} cores",
    )
    marks = [count for count in (1, 2, 4, 8, 16) if count <= batches]

    def growth(counts: Sequence[int]) -> list[float]:
        return [growth_exponent([(count, passed[count - 1]) for count in counts]) for passed in runs]

    times = ", ".join(f"{median(passed[count - 1] for passed in runs):.1f}" for count in marks)
    return [
        ours,
        theirs,
        ratio(f"{operator} over {measured['against']}", ours, theirs),
        figure(
            f"{operator}, growth",
            "exponent",
            growth(marks),
            f"{rows // batches:,} to {rows:,} records: {times} s",
            Target("at most", 1.1),
        ),
        figure(
            f"{operator}, growth of the last doubling (the query's start weighs least here)",
            "exponent",
            growth(marks[-2:]),
            f"{rows // 2:,} to {rows:,} records",
            Target("at most", 1.1),
        ),
        figure(
            f"{operator}, results that differ from the baseline's",
            "rows",
            [measured["different"]],
            f"of {measured['results']:,}",
            Target("at most", 0),
        ),
    ]


def measure(rows: int, batches: int, rounds: int, operators: Sequence[str]) -> None:
    """Measure operators in this process, and print what was found."""
    from streamproof.properties.witnesses.spark.session import spark_session

    spark = spark_session(settings={"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"})
    for operator in operators:
        case = CASES[operator]()
        with tempfile.TemporaryDirectory(prefix="streamproof-") as folder:
            _report(f"{operator}: warming up")
            warm = Source(spark, case, max(rows // 50, 4_000), 2, Path(folder) / "warm")
            ours(spark, case, warm)
            theirs(spark, case, warm)
            source = Source(spark, case, rows, batches, Path(folder) / "source")
            passed: list[list[float]] = []
            baseline: list[float] = []
            for number in range(rounds):
                _report(f"{operator}: round {number + 1} of {rounds}, {rows:,} records")
                passed.append(ours(spark, case, source))
                _report(f"{operator}: round {number + 1} of {rounds}, {rows:,} records, {case.against}")
                baseline.append(theirs(spark, case, source))
            _report(f"{operator}: comparing the results")
            results, different = compared(spark, case, source)
        measured = {
            "operator": operator,
            "against": case.against,
            "streaming": case.streaming,
            "rows": rows,
            "batches": batches,
            "cores": spark.sparkContext.defaultParallelism,
            "passed": passed,
            "baseline": baseline,
            "results": results,
            # No result at all agrees with anything.
            "different": different if results else 1,
        }
        print(json.dumps(measured), flush=True)
    spark.stop()


class Source:
    """The files of a case's inputs, a folder an input and a file a batch, and of its results."""

    def __init__(self, spark: SparkSession, case: Case, rows: int, batches: int, folder: Path) -> None:
        self.folder, self.batches = folder, batches
        self.inputs = []
        for name, columns in case.make(rows).items():
            self.inputs.append(name)
            source = folder / name
            source.mkdir(parents=True)
            table = arrow(columns)
            ends = np.searchsorted(columns["order"], [rows * batch // batches for batch in range(batches + 1)])
            for batch in range(batches):
                file = source / f"{batch:06d}.parquet"
                pq.write_table(table.slice(ends[batch], ends[batch + 1] - ends[batch]), file)
                # Spark takes the files in the order of their times.
                os.utime(file, (1_000_000_000 + batch, 1_000_000_000 + batch))
        self.still = {name: spark.read.parquet(str(folder / name)) for name in self.inputs}

    def streaming(self, spark: SparkSession) -> Mapping[str, DataFrame]:
        """The inputs as streams; those that stand still are there too, as `still …`."""
        streams = {
            name: spark.readStream.schema(still.schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder / name))
            for name, still in self.still.items()
        }
        return streams | {f"still {name}": still for name, still in self.still.items()}


def ours(spark: SparkSession, case: Case, source: Source) -> list[float]:
    """Run the operator, and return after how many seconds each batch was through; after the last one, the query."""
    passed = _streamed(case.build(source.streaming(spark), case.state_groups), source.folder / "ours")
    # A batch without data may follow the last one, and belongs to it.
    return [*passed[: source.batches - 1], passed[-1]]


def theirs(spark: SparkSession, case: Case, source: Source) -> float:
    """Run the baseline, and return the seconds that it took."""
    result = source.folder / "theirs"
    if case.streaming:
        for name, value in (case.settings or {}).items():
            spark.conf.set(name, value)
        taken = _streamed(case.baseline(source.streaming(spark)), result)[-1]
        for name in case.settings or {}:
            spark.conf.unset(name)
        return taken
    frame = case.baseline(source.still)
    return seconds(lambda: frame.write.mode("overwrite").parquet(str(result)))


def _streamed(result: DataFrame, folder: Path) -> list[float]:
    """Run a streaming query that writes its results into a folder; return the seconds up to each batch, and in all."""
    shown, passed = result.drop("place"), []

    def write(rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(str(folder / f"batch={batch}"))
        passed.append(time.perf_counter() - started)

    with tempfile.TemporaryDirectory(prefix="streamproof-checkpoint-", ignore_cleanup_errors=True) as checkpoint:
        writer = shown.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        started = time.perf_counter()
        query = writer.trigger(availableNow=True).start()
        with reported_failures():
            query.awaitTermination()
        return [*passed, time.perf_counter() - started]


def compared(spark: SparkSession, case: Case, source: Source) -> tuple[int, int]:
    """Return how many results the operator has, and how many rows one side has and the other hasn't."""
    ours, theirs = (spark.read.parquet(str(source.folder / side)) for side in ("ours", "theirs"))
    if case.result == "table":
        ours = last_changes(ours, [name for name in case.same if name != "value"])
    return differing(ours.select(*case.same), theirs.select(*case.same))


def differing(ours: DataFrame, theirs: DataFrame) -> tuple[int, int]:
    """Return the number of our rows, and of the rows that only one side has, each as often as it is there."""
    if "key" in ours.columns:
        # What closed all else may itself be open still.
        ours, theirs = (rows.filter("key != '~end'") for rows in (ours, theirs))
    return ours.count(), ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()


def last_changes(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Fold a changelog: the last change of each key (and window) stands, unless it is a tombstone."""
    from pyspark.sql import functions as F

    row = F.max_by(F.struct("change", "value"), F.struct("batch", "cause", "ordinal")).alias("row")
    last = changes.groupBy(*keys).agg(row).filter("row.change = 'update'")
    return last.select(*keys, F.col("row.value").alias("value"))


def _report(step: str) -> None:
    print(json.dumps({"step": step}), flush=True)


if __name__ == "__main__":
    rows, batches, rounds = map(int, sys.argv[1:4])
    measure(rows, batches, rounds, sys.argv[4:])

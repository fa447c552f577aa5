"""Runs one operator in one form, in a separate process, and counts the CPU seconds of the process tree.

`python -m benchmarks.production.run through FORM OPERATOR FOLDER ROWS BATCHES` runs the operator of the imported
streamproof (`today` or `ce10c6f`), its `baseline`, or its `inputs` alone; it writes results to the folder. `… over FORM
OPERATOR FOLDER SPREAD KEYS… -- SIZES…` runs it in batches of these sizes over a state of this many keys. Each command
prints its steps, and last its measurements, as one JSON object per line. Each command starts one session with the
settings of a streaming job, whose JVM uses both of its compilers. A first run over the records writes the results for
the comparison. This run is also the warm-up, because the JVM continues to compile code that Spark runs once per batch.
A second run is measured; its results are discarded, because a sink isn't part of an operator.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from ..processes import CpuClock
from . import sampling
from .cases import CASES, EARLIER, FILLED, TODAY, Case, arrow, over_state, unless_deleted
from .earlier import COMMIT
from .sql_table_table_join import CHANGES, SqlTableTableJoin

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

TODAYS, EARLIERS, BASELINE, INPUTS, SQL = "today", COMMIT, "baseline", "inputs", "sql"
FILL = 100_000

Used = dict[str, float]
"""CPU seconds, by kind of process."""


def write_batches(inputs: Mapping[str, pa.Table], ends: Sequence[int], folder: Path) -> None:
    """Write inputs as files, a folder per input with a file per batch; each batch ends before one of these orders."""
    for name, table in inputs.items():
        source = folder / name
        source.mkdir(parents=True)
        cuts = [0, *np.searchsorted(table.column("order").to_numpy(), ends)]
        for batch, (start, end) in enumerate(pairwise(cuts)):
            write_file(table.slice(start, end - start), source, batch)


def write_file(table: pa.Table, folder: Path, batch: int) -> None:
    """Write the records of a batch of an input."""
    file = folder / f"{batch:06d}.parquet"
    pq.write_table(table, file)
    # Set the file's time, because Spark reads files in the order of their times.
    os.utime(file, (1_000_000_000 + batch, 1_000_000_000 + batch))


class Source:
    """Return the files of several inputs, as `write_batches` has written them."""

    def __init__(self, spark: SparkSession, folder: Path, names: Iterable[str]) -> None:
        self.folder = folder
        self.still = {name: spark.read.parquet(str(folder / name)) for name in names}

    def streaming(self, spark: SparkSession) -> Mapping[str, DataFrame]:
        """Return the inputs as streams, and each also as a static DataFrame, under the name `still …`."""
        streams = {
            name: spark.readStream.schema(still.schema).option("maxFilesPerTrigger", 1).parquet(str(self.folder / name))
            for name, still in self.still.items()
        }
        return streams | {f"still {name}": still for name, still in self.still.items()}


def through(form: str, operator: str, folder: Path, rows: int, batches: int) -> Mapping[str, Any]:
    """Run an operator in a form over this many records, and return the cost of each batch and stage."""
    case = CASES[operator]()
    spark = streaming_session(dict([sampling.SETTING]))
    with CpuClock(os.getpid()).running() as clock:
        ends = [rows * (batch + 1) // batches for batch in range(batches)]
        inputs = case.make(rows)
        write_batches({name: arrow(columns) for name, columns in inputs.items()}, ends, folder / form)
        source = Source(spark, folder / form, inputs)
        for result in (folder / f"{form} result", None):
            report(f"{operator}, {form}: {rows:,} records, {'measured' if result is None else 'for their results'}")
            noted, threads, started = _noted(), clock.threads(), time.perf_counter()
            used = _run(spark, case, form, source, batches, clock, result)
        taken = time.perf_counter() - started
        stages = {stage: at - noted.get(stage, 0) for stage, at in _noted().items()}
        doing = {what: at - threads[what] for what, at in clock.threads().items()}
    differing_rows: Mapping[str, tuple[int, int]] = {}
    if form == BASELINE:
        report(f"{operator}: comparing the results")
        sides = [side for side in (TODAYS, EARLIERS) if (folder / f"{side} result").exists()]
        differing_rows = {side: _compared(spark, case, folder, side) for side in sides}
    if form == SQL:
        report(f"{operator}: comparing the changelogs")
        ours, theirs = (spark.read.parquet(str(folder / f"{side} result")) for side in (TODAYS, SQL))
        differing_rows = {TODAYS: differing(ours.select(*CHANGES), theirs.select(*CHANGES))}
    about = {"against": case.against, "streaming": case.streaming}
    return {**about, "used": used, "seconds": taken, "stages": stages, "threads": doing, "results": differing_rows}


def _run(
    spark: SparkSession, case: Case, form: str, source: Source, batches: int, clock: CpuClock, result: Path | None
) -> list[Used]:
    """Run a form, and return the CPU seconds up to the end of each batch, and last of the whole run."""
    used = used_since_now(clock)
    if form == BASELINE and not case.streaming:
        write(case.baseline(source.still), result)
        return [used()]
    settings = (case.settings or {}) if form == BASELINE else {}
    for name, value in settings.items():
        spark.conf.set(name, value)
    inputs = source.streaming(spark)
    if form == INPUTS:
        together, *others = (inputs[name] for name in source.still)
        for other in others:
            together = together.unionByName(other, allowMissingColumns=True)
        ends = streamed(together, into(result), used)
    elif form == BASELINE:
        ends = streamed(case.baseline(inputs), into(result), used)
    elif form == SQL:
        plan = SqlTableTableJoin(source.folder / ("state" if result else "measured state"), write)
        rows = plan.rows({name: inputs[name] for name in source.still}, unless_deleted("amount"))
        ends = streamed(rows, into(result, plan.write_batch), used)
    else:
        ends = streamed(case.build(inputs, TODAY if form == TODAYS else EARLIER), into(result), used)
    for name in settings:
        spark.conf.unset(name)
    return by_batch(ends, batches)


def used_since_now(clock: CpuClock) -> Callable[[], Used]:
    """Return a function that counts the CPU seconds from now on."""
    before = clock.read()
    return lambda: {kind: at - before[kind] for kind, at in clock.read().items()}


def by_batch(ends: Sequence[Used], batches: int) -> list[Used]:
    """Return the CPU seconds up to the end of each batch with data; a final batch without data belongs to the last.

    Args:
        ends: The CPU seconds up to the end of each batch, and of the query.
        batches: The number of batches with data.
    """
    return [*ends[: batches - 1], ends[-1]]


def over(
    form: str, operator: str, folder: Path, spread: str, keys: Sequence[int], sizes: Sequence[int]
) -> Mapping[str, Any]:
    """Run a form in batches over a state of each number of keys, and return the CPU seconds of each batch."""
    case = CASES[operator]()
    spark = streaming_session(dict([sampling.SETTING]))
    found: dict[str, list[float]] = {}
    with CpuClock(os.getpid()).running() as clock:
        for turn, many in enumerate([min(keys), *keys]):
            report(f"{operator}: {'warming up' if turn == 0 else 'batches'} over {many:,} keys")
            fill = [*range(FILL, many, FILL), many]
            ends = [*fill, *(many + np.cumsum(sizes))]
            inputs = FILLED[operator](over_state(many, sizes, spread))
            write_batches({name: arrow(columns) for name, columns in inputs.items()}, ends, folder / str(turn))
            source = Source(spark, folder / str(turn), inputs)
            used = _run(spark, case, form, source, len(ends), clock, None)
            sums = [sum(each.values()) for each in used]
            found[str(many)] = [end - start for start, end in pairwise(sums[len(fill) - 1 :])]
    return {"batches": found}


def write(rows: DataFrame, folder: Path | None) -> None:
    """Write rows to a folder, or compute and discard them."""
    if folder is None:
        rows.write.format("noop").mode("overwrite").save()
    else:
        rows.write.mode("overwrite").parquet(str(folder))


def into(
    folder: Path | None, write_rows: Callable[[DataFrame, Path | None], None] = write
) -> Callable[[DataFrame, int], None]:
    """Return a function that writes a batch's rows to the batch's subfolder of a folder; None: nowhere."""
    return lambda rows, batch: write_rows(rows, folder and folder / f"batch={batch}")


def streamed(
    result: DataFrame,
    write_batch: Callable[[DataFrame, int], None],
    used: Callable[[], Used],
    *,
    ended: Callable[[StreamingQuery], None] = lambda query: None,
) -> list[Used]:
    """Run a streaming query; return the CPU seconds up to each batch's end.

    Args:
        result: The query's result.
        write_batch: A function that writes the rows of a batch, given the batch's id.
        used: A function that returns the CPU seconds so far.
        ended: A function that receives the query after its end.
    """
    shown, ends = result.drop("place"), []

    def write_one(rows: DataFrame, batch: int) -> None:
        write_batch(rows, batch)
        ends.append(used())

    with tempfile.TemporaryDirectory(prefix="streamproof-checkpoint-", ignore_cleanup_errors=True) as checkpoint:
        writer = shown.writeStream.foreachBatch(write_one).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        after = used()
        ended(query)
        return [*ends, after]


def _compared(spark: SparkSession, case: Case, folder: Path, side: str) -> tuple[int, int]:
    """Return the number of results, and the number of rows that only one side contains."""
    ours, theirs = (spark.read.parquet(str(folder / f"{one} result")) for one in (side, BASELINE))
    if case.result == "table":
        ours = last_changes(ours, [name for name in case.same if name != "value"])
    return differing(ours.select(*case.same), theirs.select(*case.same))


def differing(ours: DataFrame, theirs: DataFrame) -> tuple[int, int]:
    """Return the number of the operator's rows, and the number of rows that only one side contains, as bags."""
    if "key" in ours.columns:
        # Leave out the last row, which closes all other windows, because its own window may still be open.
        ours, theirs = (rows.filter("key != '~end'") for rows in (ours, theirs))
    return ours.count(), ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()


def last_changes(changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Fold a changelog: the last change of each key (and window) counts, unless it is a tombstone."""
    from pyspark.sql import functions as F

    row = F.max_by(F.struct("change", "value"), F.struct("batch", "cause", "ordinal")).alias("row")
    last = changes.groupBy(*keys).agg(row).filter("row.change = 'update'")
    return last.select(*keys, F.col("row.value").alias("value"))


def streaming_session(settings: Mapping[str, str]) -> SparkSession:
    """Start a session like a streaming job's, whose JVM uses both its compilers."""
    from streamproof.properties.witnesses.spark.session import spark_session

    session = spark_session(settings={"spark.driver.extraJavaOptions": "-XX:+UseParallelGC", **settings})
    with_plain_hadoop(session)  # the same settings as at commit ce10c6f, and as in a user's session
    return session


def with_plain_hadoop(session: SparkSession) -> None:
    """Restore a session's original Hadoop file system, and reload its Hadoop settings from their files."""
    session._jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    session._jsc.hadoopConfiguration().reloadConfiguration()


def _noted() -> Mapping[str, float]:
    return sampling.seconds_by_stage(Path(os.environ[sampling.VARIABLE]))


def report(step: str) -> None:
    """Print a step as JSON for the parent process."""
    print(json.dumps({"step": step}), flush=True)


def _main(job: str, *words: str) -> Mapping[str, Any]:
    if job == "through":
        form, operator, folder, rows, batches = words
        return through(form, operator, Path(folder), int(rows), int(batches))
    form, operator, folder, spread, *numbers = words
    cut = numbers.index("--")
    return over(form, operator, Path(folder), spread, [*map(int, numbers[:cut])], [*map(int, numbers[cut + 1 :])])


if __name__ == "__main__":
    print(json.dumps(_main(*sys.argv[1:])), flush=True)
    from pyspark.sql import SparkSession as Session

    Session.builder.getOrCreate().stop()

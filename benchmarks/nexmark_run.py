"""Runs a query of Nexmark in one form, in a process of its own, and counts the CPU seconds of the process tree.

`python -m benchmarks.nexmark_run through FORM QUERY FOLDER BATCHES` runs the query by the `operators`, by `spark` or
by `bytewax`, over the events in the folder, to which its rows go. `… at-rates FORM QUERY FOLDER SECONDS RATES…` runs it
over events that arrive so many seconds long at each of these rates. Each prints its steps, and what it measured last,
as JSON, a line each.

A first run writes the results to be compared, and is the warm-up, as in `production_run`; the second one is measured.
The state's files are those of the first run, which brings them to their least size after each batch.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import nexmark_bytewax
from .nexmark_queries import QUERIES, Query
from .nexmark_rates import at_rates
from .processes import CpuClock
from .production_run import (
    Source,
    by_batch,
    last_changes,
    report,
    streamed,
    streaming_session,
    used_since_now,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

OPERATORS, SPARKS, BYTEWAX = "operators", "spark", "bytewax"
SIZE = "rocksdbSstFileSize"
COMPACT = "spark.sql.streaming.stateStore.rocksdb.compactOnCommit"
"""Else the files hold what later batches have replaced too, until RocksDB finds the time."""


def through(form: str, name: str, folder: Path, batches: int) -> Mapping[str, Any]:
    """Run a query over the events, and return the CPU seconds and the bytes of the state up to each batch's end."""
    query, spark = QUERIES[name], streaming_session({})
    source = Source(spark, folder, query.reads)
    sizes: list[list[int]] = []

    def note_state(ended: StreamingQuery) -> None:
        sizes.append(state_sizes(ended))

    with CpuClock(os.getpid()).running() as clock:
        for result in (folder / f"{name} {form} result", None):
            report(f"{name}, {form}: {'measured' if result is None else 'for its results and its state'}")
            spark.conf.set(COMPACT, str(result is not None).lower())
            inputs, started = source.streaming(spark), time.perf_counter()
            ends = streamed(declared(query, form, inputs), result, used_since_now(clock), note_state)
        taken = time.perf_counter() - started
    report(f"{name}, {form}: its rows")
    write(rows_of(spark, query, form, folder / f"{name} {form} result"), folder / f"{name} {form}")
    return {"used": by_batch(ends, batches), "seconds": taken, "state": sizes[0]}


def declared(query: Query, form: str, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Declare a query in a form over the events' streams."""
    if form == OPERATORS:
        return query.build(inputs)
    assert query.own is not None
    return query.own(inputs)


def rows_of(spark: SparkSession, query: Query, form: str, result: Path) -> DataFrame:
    """Return the query's rows in the end of what its batches have written."""
    written = spark.read.parquet(str(result))
    return query.shown(last_changes(written, query.keys)) if form == OPERATORS else written.drop("batch")


def state_sizes(query: StreamingQuery) -> list[int]:
    """Return the bytes of the files of the state, over all stateful operators, after each batch."""
    return [
        sum(operator.customMetrics[SIZE] for operator in progress.stateOperators) for progress in query.recentProgress
    ]


def _main(job: str, form: str, name: str, *words: str) -> Mapping[str, Any]:
    folder = Path(words[0])
    numbers: Sequence[int] = [int(word) for word in words[1:]]
    if form == BYTEWAX:
        return nexmark_bytewax.through(name, folder, folder / f"{name} {form}")
    if job == "through":
        return through(form, name, folder, *numbers)
    query, spark = QUERIES[name], streaming_session({})
    return at_rates(spark, query, lambda inputs: declared(query, form, inputs), folder, numbers[0], numbers[1:])


if __name__ == "__main__":
    print(json.dumps(_main(*sys.argv[1:])), flush=True)
    from pyspark.sql import SparkSession as Session

    session = Session.getActiveSession()
    if session is not None:
        session.stop()

"""Runs queries of Nexmark in a separate process, and counts the CPU seconds of the process tree.

`python -m benchmarks.nexmark.run through FOLDER BATCHES RUNS QUERY:FORM…` runs each query in a form over the events in
the folder, and writes its rows there. `… at-rates FOLDER SECONDS RATES… QUERY:FORM…` runs it over events that arrive
for this many seconds at each of these rates. Each command prints its steps, and last its measurements, as one JSON
object per line.

A first run writes the results for the comparison, and is the warm-up, as in `production.run`; the second run is
measured. The first run compacts the state's files after each batch, and reports their sizes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..processes import CpuClock
from ..production.run import (
    Source,
    by_batch,
    into,
    last_changes,
    report,
    streamed,
    streaming_session,
    used_since_now,
    write,
)
from . import bytewax as nexmark_bytewax
from . import kafka as nexmark_kafka
from . import merge as nexmark_merge
from . import pandas as nexmark_pandas
from .queries import QUERIES, Query
from .rates import at_rates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

OPERATORS, SPARKS, PANDAS, KAFKA, BYTEWAX = "operators", "spark", "pandas", "kafka", "bytewax"
SIZE = "rocksdbSstFileSize"
COMPACT = "spark.sql.streaming.stateStore.rocksdb.compactOnCommit"
"""The setting that compacts the state's files after each batch, so that they contain no replaced values."""


def through(name: str, form: str, folder: Path, batches: int, runs: int) -> Mapping[str, Any]:
    """Run a query over the events, once or twice; return the CPU seconds and the bytes of the state, batch by batch."""
    if form == BYTEWAX:
        return nexmark_bytewax.through(name, folder, folder / f"{name} {form}")
    if form == KAFKA:
        return nexmark_kafka.through(name, folder, folder / f"{name} {form}", runs)
    query, spark = QUERIES[name], streaming_session({})
    source = Source(spark, folder, query.reads)
    if form in nexmark_merge.TABLES:
        return nexmark_merge.through(spark, name, form, source, folder / f"{name} {form}", batches, runs)
    sizes: list[list[int]] = []

    def note_state(ended: StreamingQuery) -> None:
        sizes.append(state_sizes(ended))

    with CpuClock(os.getpid()).running() as clock:
        for result in (folder / f"{name} {form} result", None)[:runs]:
            report(f"{name}, {form}: {'measured' if result is None else 'for its results and its state'}")
            spark.conf.set(COMPACT, str(result is not None).lower())
            inputs, started = source.streaming(spark), time.perf_counter()
            ends = streamed(declared(name, form, inputs), into(result), used_since_now(clock), ended=note_state)
        taken = time.perf_counter() - started
    report(f"{name}, {form}: its rows")
    write(rows_of(spark, query, form, folder / f"{name} {form} result"), folder / f"{name} {form}")
    return {"used": by_batch(ends, batches), "seconds": taken, "state": sizes[0]}


def declared(name: str, form: str, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Declare a query in a Spark form over the events' streams."""
    query = QUERIES[name]
    declare = {OPERATORS: query.build, SPARKS: query.own, PANDAS: nexmark_pandas.QUERIES.get(name)}[form]
    assert declare is not None
    return declare(inputs)


def rows_of(spark: SparkSession, query: Query, form: str, result: Path) -> DataFrame:
    """Return the query's final rows from the output of its batches."""
    written = spark.read.parquet(str(result))
    return query.shown(last_changes(written, query.keys)) if form == OPERATORS else written.drop("batch")


def state_sizes(query: StreamingQuery) -> list[int]:
    """Return the bytes of the state's files, over all stateful operators, after each batch."""
    return [
        sum(operator.customMetrics[SIZE] for operator in progress.stateOperators) for progress in query.recentProgress
    ]


def _main(job: str, folder: str, *words: str) -> Mapping[str, Any]:
    numbers = [int(word) for word in words if word.isdigit()]
    found: dict[str, Any] = {}
    for word in words:
        name, _, form = word.partition(":")
        if form and job == "through":
            found[word] = through(name, form, Path(folder), *numbers)
        elif form:
            declare = partial(declared, name, form)
            spark = streaming_session({})
            report(f"{name}, {form}: at several rates")
            found[word] = at_rates(spark, QUERIES[name], declare, Path(folder, word), numbers[0], numbers[1:])
    return found


if __name__ == "__main__":
    print(json.dumps(_main(*sys.argv[1:])), flush=True)
    from pyspark.sql import SparkSession as Session

    session = Session.getActiveSession()
    if session is not None:
        session.stop()

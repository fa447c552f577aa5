"""Runs a query of Nexmark over events that arrive at a rate, and measures each event's latency.

A file of events of every kind arrives every quarter of a second: it is renamed into the folder that the query reads.
The query starts a micro-batch every second, or as soon as the previous one is done, with all existing files. An event's
latency lasts from its file's arrival to the end of the micro-batch that processes it. The first quarter of the time
doesn't count. The first file arrives alone, and the others once the query has processed it. The benchmark discards the
query's results.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..production.run import report, write_batches
from .events import events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from .queries import Frames, Query

FILES_A_SECOND = 4
TRIGGER = "1 second"
WAIT_SECONDS = 20
"""The timeout for the remaining events after the arrival of the last file."""
WARM_UP_SECONDS = 15
GROWS = 1.5
"""A query doesn't sustain a rate if the last quarter's latency is more than this many times the second's."""
MOST_SECONDS = 5
"""A query doesn't sustain a rate if the last quarter's latency (s) is larger, because few large batches hide its
growth.
"""
PERCENTILES = (50, 95, 99)


class Batches(NamedTuple):
    """The batches of a query: the number of events of a kind in each, and its end (s)."""

    rows: list[int]
    at: list[float]


def at_rates(
    spark: SparkSession,
    query: Query,
    declare: Callable[[Frames], DataFrame],
    folder: Path,
    seconds: int,
    rates: Sequence[int],
) -> Mapping[int, Any]:
    """Run a query at the middle rate, and then at higher rates up to the first that it doesn't sustain.

    If the query doesn't sustain the middle rate, it runs at lower rates, down to the first rate that it sustains.

    Args:
        spark: The session.
        query: The query.
        declare: A function that declares the query over the events' streams.
        folder: An empty folder.
        seconds: The duration of the arrivals at each rate.
        rates: The events per second, in increasing order.

    Returns:
        The latencies (s) by percentile, and whether the query sustains the rate, by rate.
    """
    middle = (len(rates) - 1) // 2
    report(f"warming up at {rates[middle]:,} events a second")
    _latencies(spark, query, declare, folder / "warm-up", min(seconds, WARM_UP_SECONDS), rates[middle])
    found: dict[int, Any] = {}

    def keeps_up(rate: int) -> bool:
        report(f"{rate:,} events a second, for {seconds} s")
        latencies, weights, done = _latencies(spark, query, declare, folder / str(rate), seconds, rate)
        kept, quarter = done and keeps(latencies, weights), len(latencies) // 4
        found[rate] = {"latency": percentiles(latencies[quarter:], weights[quarter:]), "keeps up": kept}
        return kept

    for rate in rates[middle:]:
        if not keeps_up(rate):
            break
    if not found[rates[middle]]["keeps up"]:
        for rate in reversed(rates[:middle]):
            if keeps_up(rate):
                break
    return dict(sorted(found.items()))


def _latencies(
    spark: SparkSession,
    query: Query,
    declare: Callable[[Frames], DataFrame],
    folder: Path,
    seconds: int,
    rate: int,
) -> tuple[list[float], list[int], bool]:
    """Return the latency (s) and the events of each file of each kind, by arrival, and whether all are done."""
    tables = {kind: table for kind, table in events(rate * seconds, rate=rate)._asdict().items() if kind in query.reads}
    parts = seconds * FILES_A_SECOND
    ends = [rate * seconds * (part + 1) // parts for part in range(parts)]
    write_batches(tables, ends, folder / "to come")
    rows = {kind: _rows(table.column("order").to_numpy(), ends) for kind, table in tables.items()}
    streams = {}
    for kind in tables:
        (folder / kind).mkdir(parents=True)
        schema = spark.read.parquet(str(folder / "to come" / kind)).schema
        streams[kind] = spark.readStream.schema(schema).parquet(str(folder / kind))
    with tempfile.TemporaryDirectory(prefix="streamproof-checkpoint-", ignore_cleanup_errors=True) as checkpoint:
        writer = declare(streams).writeStream.format("noop").option("checkpointLocation", checkpoint)
        running = writer.trigger(processingTime=TRIGGER).start()
        arrived = [_arrive(folder, list(tables), 0)]
        # Wait for the first batch, because it also starts what the query needs, such as Python workers.
        running.processAllAvailable()
        arrived += _feed(folder, list(tables), parts)
        batches = _batches(running, {kind: sum(of_kind) for kind, of_kind in rows.items()})
        running.stop()
    now = time.time()
    latencies, weights = [], []
    for part, at in enumerate(arrived):
        for kind in tables:
            weights.append(rows[kind][part])
            latencies.append(done_at(rows[kind], part, batches[kind], now) - at)
    return latencies, weights, all(sum(batches[kind].rows) == sum(rows[kind]) for kind in tables)


def _rows(orders: np.ndarray[Any, Any], ends: Sequence[int]) -> list[int]:
    counts: list[int] = np.diff([0, *np.searchsorted(orders, ends)]).tolist()
    return counts


def _feed(folder: Path, kinds: Sequence[str], parts: int) -> list[float]:
    """Deliver all files after the first when they are due, and return the time of each arrival (s)."""
    arrived, started = [], time.time()
    for part in range(1, parts):
        due = started + part / FILES_A_SECOND
        time.sleep(max(0.0, due - time.time()))
        arrived.append(_arrive(folder, kinds, part))
    return arrived


def _arrive(folder: Path, kinds: Sequence[str], part: int) -> float:
    for kind in kinds:
        file = folder / "to come" / kind / f"{part:06d}.parquet"
        os.utime(file)
        file.rename(folder / kind / file.name)
    return time.time()


def _batches(query: StreamingQuery, rows: Mapping[str, int]) -> dict[str, Batches]:
    """Wait until a query has processed all rows, up to the timeout; return its batches, by the kind of events."""
    until = time.time() + WAIT_SECONDS
    while True:
        failure = query.exception()
        if failure is not None:
            raise failure
        batches = {kind: _taken(query, kind) for kind in rows}
        if time.time() > until or all(sum(batches[kind].rows) == many for kind, many in rows.items()):
            return batches
        time.sleep(0.2)


def _taken(query: StreamingQuery, kind: str) -> Batches:
    """Return the number of events of a kind in each batch so far, and the batch's end."""
    found = Batches([], [])
    for progress in query.recentProgress:
        started = datetime.fromisoformat(progress.timestamp).timestamp()
        for source in progress.sources:
            if source.description.rstrip("]").endswith(f"/{kind}"):
                found.rows.append(source.numInputRows)
                found.at.append(started + progress.durationMs["triggerExecution"] / 1000)
    return found


def done_at(rows: Sequence[int], file: int, batches: Batches, now: float) -> float:
    """Return the end of the batch that processed a file; batches process whole files, in order of arrival.

    Args:
        rows: The number of events of each file.
        file: The file's number.
        batches: The batches that the query has processed so far.
        now: The current time (s), which counts for a file that no batch has processed.
    """
    wanted = sum(rows[: file + 1])
    taken = accumulate(batches.rows)
    return next((at for many, at in zip(taken, batches.at, strict=True) if many >= wanted), now)


def percentiles(latencies: Sequence[float], weights: Sequence[int]) -> dict[int, float]:
    """Return the largest latency of this percentage of the events, for each of `PERCENTILES`."""
    order = np.argsort(latencies)
    so_far = np.cumsum(np.asarray(weights)[order])
    places = [np.searchsorted(so_far, so_far[-1] * percent / 100) for percent in PERCENTILES]
    return {percent: float(latencies[order[place]]) for percent, place in zip(PERCENTILES, places, strict=True)}


def keeps(latencies: Sequence[float], weights: Sequence[int]) -> bool:
    """Return whether the median latency is stable: low in the last quarter, and hardly above the second quarter's."""
    quarter = len(latencies) // 4

    def median(start: int, end: int) -> float:
        return percentiles(latencies[start:end], weights[start:end])[50]

    return median(3 * quarter, len(latencies)) <= min(MOST_SECONDS, GROWS * median(quarter, 2 * quarter))

"""Runs one operator on a cluster of this machine, and prints the end of each batch as one JSON object per line.

`python -m benchmarks.production.large_run OPERATOR WORKERS FOLDER` reads the folder's `inputs`, which `lay_out` has
written, and continues from its `checkpoint`, if any.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..processes import CpuClock
from .cases import BEHIND_MS, CASES, START_MS, STEP_MS, TODAY, skewed
from .run import Source, with_plain_hadoop, write, write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS, RIGHT_KEYS = 1_000_000, 100_000
MEGABYTES = 3072
"""The memory of a worker's only executor."""


def inputs_of(operator: str, batch: int, rows: int, keys: int) -> Mapping[str, pa.Table]:
    """Return the records of a batch, by input; each call returns the same records, with the columns of `production`'s
    cases.
    """
    numbers = np.random.default_rng([7, batch])
    order = np.arange(batch * rows, (batch + 1) * rows)
    behind = np.where(numbers.random(rows) < 0.1, numbers.integers(0, BEHIND_MS, rows), 0)
    key = skewed(numbers, rows, keys)
    columns = {
        "order": order,
        "time": START_MS + BEHIND_MS + STEP_MS * order - behind,
        "amount": numbers.integers(0, 1000, rows),
    }
    if operator == "session_windows":
        return {"events": pa.table({**columns, "key": _named("k", key)})}
    is_right = numbers.random(rows) < 0.02
    right_keys = max(1, keys * RIGHT_KEYS // KEYS)
    # 9 rows in 10 refer to the usual right row of their key, 1 in 10 to a random right row.
    refers = np.where(numbers.random(rows) < 0.1, skewed(numbers, rows, right_keys), key * right_keys // keys)
    columns["deleted"] = numbers.random(rows) < 0.05
    left = {name: column[~is_right] for name, column in columns.items()}
    right = {name: column[is_right] for name, column in columns.items()}
    changed = numbers.integers(0, right_keys, int(is_right.sum()))
    return {
        "left": pa.table({**left, "key": _named("k", key[~is_right]), "refers": _named("r", refers[~is_right])}),
        "right": pa.table({**right, "key": _named("r", changed)}),
    }


def _named(prefix: str, numbers: np.ndarray[Any, Any]) -> pa.Array:
    used, places = np.unique(numbers, return_inverse=True)
    return pa.array([f"{prefix}{number:07d}" for number in used]).take(pa.array(places.reshape(-1)))


def lay_out(operator: str, folder: Path, records: int, batches: int) -> None:
    """Write the inputs: a folder per input, with a file per batch."""
    keys = max(100, min(KEYS, records // 100))
    for batch in range(batches):
        for name, table in inputs_of(operator, batch, records // batches, keys).items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            write_file(table, folder / name, batch)


def run(operator: str, workers: int, folder: Path) -> None:
    """Run the operator until the end of its inputs."""
    from streamproof.properties.witnesses.spark.session import spark_session

    # Wait for all workers before the first task, so that each batch runs on all of them.
    together = {
        "spark.scheduler.minRegisteredResourcesRatio": "1",
        "spark.executor.memory": f"{MEGABYTES * 2 // 3}m",
        "spark.sql.streaming.metricsEnabled": "false",
    }
    spark = spark_session(master=f"local-cluster[{workers},1,{MEGABYTES}]", settings=together)
    with_plain_hadoop(spark)
    source = Source(spark, folder / "inputs", [input.name for input in (folder / "inputs").iterdir()])
    result = CASES[operator]().build(source.streaming(spark), TODAY).drop("place")
    with CpuClock(os.getpid()).running() as clock:

        def write_batch(rows: DataFrame, batch: int) -> None:
            write(rows, None)
            _print({"batch": batch, "at": time.time(), "cpu": sum(clock.read().values())})

        _print({"started": time.time(), "cpu": sum(clock.read().values())})
        writer = result.writeStream.foreachBatch(write_batch).option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = query.lastProgress
        assert progress is not None
        used = sum(each["customMetrics"]["rocksdbSstFileSize"] for each in progress["stateOperators"])
        _print({"ended": time.time(), "cpu": sum(clock.read().values()), "state": used})
    spark.stop()


def _print(message: Mapping[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    operator, workers, folder = sys.argv[1:]
    run(operator, int(workers), Path(folder))

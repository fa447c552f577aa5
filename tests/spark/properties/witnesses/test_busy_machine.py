"""A machine that fails a query, by a Python worker that starts too late or is lost: the query is run once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from streamproof.properties.witnesses.spark.failures import QueryFailed
from streamproof.properties.witnesses.spark.typed import run_batch


def add_up(spark: SparkSession, marker: Path, endings: int) -> int:
    """Add three numbers up on Spark, in a Python worker that ends without a word the first times."""
    # A path, for a worker has its own copy of all else.
    marks = str(marker)

    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        with open(marks, "a") as file:
            file.write(".")
        if os.path.getsize(marks) <= endings:
            os._exit(7)
        yield from batches

    numbers = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
    ((_, rows),) = run_batch(spark, numbers, lambda frame: frame.mapInArrow(pass_on, "n bigint")).batches
    return sum(rows["n"].to_pylist())


def test_a_query_whose_worker_is_lost_once_is_run_once_more(spark: SparkSession, tmp_path: Path) -> None:
    assert add_up(spark, tmp_path / "marks", endings=1) == 6
    assert (tmp_path / "marks").read_text() == ".."


def test_a_query_whose_worker_is_lost_twice_fails_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(QueryFailed, match=r"^the Spark query failed: a Python worker ended without .*, twice"):
        add_up(spark, tmp_path / "marks", endings=9)
    assert (tmp_path / "marks").read_text() == ".."

"""A query leaves no connection of Spark's behind: each has a file descriptor and a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest
from foreign_key_schedules import EXAMPLE
from notation import history_of
from pyspark.sql import DataFrame, SparkSession
from streamproof.properties.witnesses.run_options import BETWEEN, Crash, RunOptions
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.properties.witnesses.spark.staged import play_staged


def as_it_is(frame: DataFrame) -> DataFrame:
    return frame


def of_a_query_that_dies(spark: SparkSession) -> None:
    batches = [pa.table({"n": pa.array([number], pa.int64())}) for number in range(2)]
    died = RunOptions(crash_in=(Crash(0, True, BETWEEN),))
    assert len(run_stream(spark, batches, as_it_is, died).batches) == 2


def of_three_queries(spark: SparkSession) -> None:
    play_staged([history_of(EXAMPLE, "foreign_key_join", delivery="manual")])


@pytest.mark.parametrize("run", [of_a_query_that_dies, of_three_queries])
def test_no_query_leaves_a_thread_of_its_own(spark: SparkSession, run: Callable[[SparkSession], None]) -> None:
    run(spark)  # what it starts for the whole session
    before = {*threading.enumerate()}
    run(spark)
    for thread in {*threading.enumerate()} - before:
        thread.join(60)
        assert not thread.is_alive(), thread

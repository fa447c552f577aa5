"""How a local session's workers start: this process's Python, without the copies of its packages that Spark brings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession


def test_workers_of_a_session_start_by_that_script_and_speak_over_a_socket(spark: SparkSession) -> None:
    assert Path(spark.sparkContext.pythonExec).read_text().startswith("#!/bin/sh")
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"

    def worker(part: object) -> list[tuple[str, str, int]]:
        import pyspark

        return [(sys.executable, pyspark.__file__, os.getpid())]

    ((executable, package, process),) = spark.sparkContext.parallelize([0], 1).mapPartitions(worker).collect()
    assert (executable, package) == (sys.executable, pyspark.__file__)
    assert process != os.getpid()

"""What a query's checkpoint tells of it, on any file system that Spark knows."""

from __future__ import annotations

import json

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession


def query_of(spark: SparkSession, checkpoint: str) -> str | None:
    """Give the identity that a checkpoint's query keeps over restarts; None where there is no checkpoint yet."""
    described = text_of(spark, f"{checkpoint}/metadata")
    return None if described is None else str(json.loads(described)["id"])


def text_of(spark: SparkSession, path: str) -> str | None:
    """Read a small file; None where there is none."""
    try:
        row = spark.read.text(path, wholetext=True).first()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    return None if row is None else str(row[0])

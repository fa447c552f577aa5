"""What a query's checkpoint tells of it, on any file system that Spark knows."""

from __future__ import annotations

import json

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from ..reference.errors import BadInput


def query_of(spark: SparkSession, checkpoint: str) -> str | None:
    """Give the identity that a checkpoint's query keeps over restarts; None where there is no checkpoint yet.

    Raises:
        BadInput: The checkpoint's file `metadata` is damaged.
    """
    described = text_of(spark, f"{checkpoint}/metadata")
    try:
        return None if described is None else str(json.loads(described)["id"])
    except (ValueError, KeyError, TypeError):
        raise BadInput(
            f"checkpoint: {checkpoint} is damaged: its file metadata doesn't hold the query's id: restore that file "
            "from a copy, or give the query a new checkpointLocation and its target an empty place"
        ) from None


def text_of(spark: SparkSession, path: str) -> str | None:
    """Read a small file; None where there is none."""
    try:
        row = spark.read.text(path, wholetext=True).first()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    return None if row is None else str(row[0])

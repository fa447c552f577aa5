"""Read a query's checkpoint, on any file system that Spark knows."""

from __future__ import annotations

import json

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from ...reference.core.errors import BadInput
from .failures import file_system_reason

RESTORE = "restore that file from a copy, or start with a new checkpointLocation and an empty target"


def query_of(spark: SparkSession, checkpoint: str) -> str | None:
    """Return the query id in a checkpoint, which stays the same after restarts; None if there is no checkpoint yet.

    Raises:
        BadInput: The checkpoint's file `metadata` is damaged.
    """
    described = text_of(spark, f"{checkpoint}/metadata")
    if described is None:
        return None
    try:
        query = json.loads(described)["id"]
    except (ValueError, KeyError, TypeError):
        query = None
    if not isinstance(query, str):
        raise BadInput(
            f"checkpoint: {checkpoint} is damaged: its file metadata doesn't contain the query's id: {RESTORE}"
        )
    return query


def text_of(spark: SparkSession, path: str) -> str | None:
    """Return the text of a small file of a checkpoint; None if there is no file.

    Raises:
        BadInput: The file exists, but is unreadable.
    """
    try:
        row = spark.read.text(path, wholetext=True).first()
    except (PySparkException, Py4JJavaError) as error:
        if isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND":
            return None
        reason = file_system_reason(error)
        if reason is None:
            raise
        raise BadInput(f"checkpoint: {path} is damaged ({reason}): {RESTORE}") from None
    return "" if row is None else str(row[0])

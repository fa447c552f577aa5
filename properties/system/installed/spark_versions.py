"""The differences between the PySpark versions for users' jobs; no other module checks the version.

These functions hide the differences, so that all other code is the same for each version.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .requirements import installed, release

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_STREAMING = "org.apache.spark.sql.execution.streaming"


@cache
def spark_version() -> tuple[int, ...]:
    """Return the version of the installed PySpark, as (4, 1, 3); empty if it isn't installed."""
    return release(installed("pyspark"))


def checkpoint_file_manager() -> str:
    """Return the class of the checkpoint file manager that doesn't start a process for each file."""
    package = f"{_STREAMING}.checkpointing" if spark_version() >= (4, 1) else _STREAMING  # SPARK-52787
    return f"{package}.FileSystemBasedCheckpointFileManager"


def has_unix_sockets() -> bool:
    """Return whether the JVM and its Python workers can use Unix sockets (SPARK-51156, 4.1)."""
    return spark_version() >= (4, 1)


def condition_of(error: PySparkException) -> str | None:
    """Return the name of a PySpark error's condition."""
    ask = getattr(error, "getCondition", None) or error.getErrorClass  # renamed in 4.0
    named: str | None = ask()
    return named


def frame_class() -> Any:
    """Return the class of DataFrames whose methods are called: since 4.0 `DataFrame` is only their base class."""
    from pyspark.sql import DataFrame

    if spark_version() < (4, 0):
        return DataFrame
    from pyspark.sql.classic import dataframe as classic

    return classic.DataFrame


def arrow_type_of(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a Spark type, timestamps in UTC.

    Raises:
        PySparkException: Arrow has no such type.
    """
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(kind, timezone="UTC") if spark_version() >= (4, 2) else to_arrow_type(kind)


def struct_of_arrow(schema: pa.Schema) -> StructType:
    """Return Spark's schema for an Arrow schema; timestamps without a time zone stay so.

    Raises:
        PySparkException: Spark has no type for a column.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_table_of(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame as an Arrow table, timestamps in UTC."""
    if spark_version() >= (4, 0):
        return frame.toArrow()
    schema = pa.schema([pa.field(field.name, arrow_type_of(field.dataType)) for field in frame.schema])
    batches: Any = frame._collect_as_arrow()  # type: ignore[operator]
    if not batches:
        return schema.empty_table()
    # Take columns by position, because two may have the same name here; another module refuses that.
    columns = pa.Table.from_batches(batches).columns
    return pa.Table.from_arrays(
        [one.cast(field.type) for one, field in zip(columns, schema, strict=True)], schema=schema
    )


def frame_of_arrow(spark: SparkSession, table: pa.Table, path: Path) -> DataFrame:
    """Return a frame with the rows of an Arrow table; before 4.0, through a parquet file at `path`."""
    if spark_version() >= (4, 0):
        return spark.createDataFrame(table)
    pq.write_table(table, path)
    return spark.read.parquet(str(path))


@contextlib.contextmanager
def no_log_of_refusals() -> Iterator[None]:
    """Keep PySpark (4.0 and later) from printing each refused query with Java's stack trace."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        yield
        return
    # not logging.getLogger, which would create a logger of another class
    logger = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)

"""The rows that a query has written, by micro-batch if the sink's own log contains it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from ....reference.core.errors import BadInput
from ...generators.columns.forms.rows import Row
from ...system.installed.spark_versions import arrow_table_of
from ..job.contract import called
from ..job.rows import rows_of
from .checkpoint import Checkpoint, entries, last_compact
from .delta_log import LOG, DeltaLog, changing
from .files import Files, numbered
from .reading import format_of, in_order, reported_reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

OutputTarget: TypeAlias = "str | Callable[[SparkSession], DataFrame]"
"""The folder of a sink's files or of a Delta table; or a function that reads the final table."""
SINK_LOG = "_spark_metadata"
_TYPED = ("parquet", "orc", "avro")
"""File formats with typed columns."""


@dataclass(frozen=True)
class Written:
    """The rows that a query has written.

    Attributes:
        rows: The rows; if the sink's log contains each row's batch, the rows of uncommitted batches are left out.
        batches: The id of each row's micro-batch (None if unknown).
        about: Whether the batch ids are estimates from the files' times, which may be wrong by one batch.
    """

    rows: Sequence[Row]
    batches: Sequence[int | None]
    about: bool = False

    @property
    def has_batches(self) -> bool:
        """Return whether each row's micro-batch is known, and not an estimate."""
        return not self.about and None not in self.batches


def read_output(
    spark: SparkSession, target: OutputTarget, checkpoint: Checkpoint, schema: StructType | None
) -> Written:
    """Read the rows that a query has written.

    Args:
        spark: The session.
        target: The folder, or the function that reads the table.
        checkpoint: The query's checkpoint.
        schema: The columns of the job's result, for formats without types (None if unknown).

    Raises:
        BadInput: The target is neither a folder of Spark's file sink nor a Delta table, or is unreadable.
    """
    if not isinstance(target, str):
        table = rows_of(called(target, [spark], []))
        return Written(table, [None] * len(table))
    files = Files(spark, target)
    logs = [log for log in (SINK_LOG, LOG) if files.names(log)]
    if not logs:
        raise BadInput(
            f"{files.where()} has neither {SINK_LOG}, the log of Spark's file sink, nor {LOG}: give "
            "output= a function that reads the table, such as lambda spark: spark.table(…)"
        )
    last = checkpoint.batches[-1].number
    if logs == [LOG]:
        found = _of_delta(files, checkpoint.query)
        if found is None:
            with reported_reading(files.where()):
                table = rows_of(arrow_table_of(spark.read.format("delta").load(target)))
            return Written(table, [None] * len(table))
        about = False
    else:
        found, about = _of_sink(files, checkpoint)
    given = {path: batch for path, batch in found.items() if batch is None or batch <= last}
    rows, paths = _rows_of_files(spark, files, [*given], schema)
    return Written(rows, [given[path] for path in paths], about)


def _of_sink(files: Files, checkpoint: Checkpoint) -> tuple[dict[str, int | None], bool]:
    """Return the files in the file sink's log, with their batches, and whether the batches are estimated from times.

    Every tenth log entry contains all earlier files, without their batches.
    """
    found: dict[str, int | None] = {}
    names = files.names(SINK_LOG)
    compact = last_compact(names)
    for number in numbered(names):
        for entry in entries(files, f"{SINK_LOG}/{number}"):
            found[entry["path"]] = number
    about = False
    if compact > checkpoint.batches[-1].number:
        raise BadInput(
            f"{files.where()}: batch {compact:,} has written files but isn't committed, and the sink's log doesn't "
            "identify its files: judge again once the query has continued or ended"
        )
    if compact >= 0:
        for entry in entries(files, f"{SINK_LOG}/{compact}.compact"):
            if entry["path"] in found or entry.get("action", "add") != "add":
                continue
            about = True
            started = [batch for batch in checkpoint.batches if batch.started_ms <= entry["modificationTime"] + 999]
            found[entry["path"]] = min(compact, started[-1].number) if started else checkpoint.batches[0].number - 1
    return found, about


def _of_delta(files: Files, query: str) -> dict[str, int | None] | None:
    """Return the files that a query has appended to a Delta table, with their batches (None if the table's log doesn't
    show them).

    The log doesn't show the files if rows were changed or deleted, other programs wrote to the table, or the log's
    beginning was deleted.
    """
    log = DeltaLog(files)
    if not log.versions or log.versions[0] != 0:
        return None
    found: dict[str, int | None] = {}
    for version in log.versions:
        actions = log.actions(version)
        if changing(actions, "remove"):
            return None
        added = changing(actions, "add")
        batch = next(
            (action["txn"]["version"] for action in actions if action.get("txn", {}).get("appId") == query), None
        )
        if added and (batch is None or any(add.get("deletionVector") for add in added)):
            return None
        found |= {f"{files.address}/{add['path']}": batch for add in added}
    return found


def _rows_of_files(
    spark: SparkSession, files: Files, paths: Sequence[str], schema: StructType | None
) -> tuple[list[Row], list[str]]:
    """Return the rows of files, each with the path of its file."""
    if not paths:
        return [], []
    form = format_of(files.where(), "output", paths)
    reader = spark.read.format(form).option("basePath", files.root)
    if form in _TYPED:
        reader = reader.option("mergeSchema", "true")
    elif schema is not None:
        reader = reader.schema(schema)
    with reported_reading(files.where()):
        table, order = in_order(reader.load([unquote(path) for path in paths]), paths)
    return [*rows_of(table)], order

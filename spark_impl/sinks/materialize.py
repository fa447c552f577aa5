"""Sinks: fold an operator's changelog into a table, each batch exactly once.

After a crash Spark repeats a batch that was written, but not committed in the checkpoint. A target therefore writes a
batch's rows and number in one atomic step, and recognizes a repeated batch by its number. Batch numbers belong to one
checkpoint, so a target also stores the query's id and a digest of the batch's source offsets. A target refuses the
batches of another query, or of an older copy of the checkpoint, because batches would be lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args, runtime_checkable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StreamingQuery

from ...reference.core.errors import BadInput, StreamproofError
from ..runtime.checkpoints import RESTORE, query_of, text_of
from ..runtime.failures import file_system_reason
from ..runtime.logic import DROPPED, TOMBSTONE, UPDATE

ResultKind = Literal["table", "stream"]
BatchFunction: TypeAlias = "Callable[[DataFrame, int], object]"

NEEDED = ("window", "value", "timestamp", "change", "ordinal")
KNOWN = (*NEEDED, "reason", "cause", "place")
ANEW = "materialize into a new table from an empty checkpoint"


class Included(NamedTuple):
    """The content of a target.

    Attributes:
        query: The id of the query that writes to the target; the id is the same after restarts.
        batch: The newest batch in the target, which also contains all earlier batches.
        offsets: A digest of the newest batch's source offsets.
        result: `table` or `stream`.
        keys: The key's columns.
        schema: The columns and their types.
    """

    query: str
    batch: int
    offsets: str
    result: str
    keys: tuple[str, ...]
    schema: T.StructType

    def to_json(self) -> dict[str, Any]:
        """Return the fields for JSON, which `from_json` reads."""
        return {**self._asdict(), "keys": list(self.keys), "schema": self.schema.jsonValue()}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Included:
        """Undo `to_json`.

        Raises:
            ValueError: A field is missing or wrong; the message names it.
        """
        kinds = {"query": str, "batch": int, "offsets": str, "result": str, "keys": list, "schema": dict}
        if not isinstance(fields, dict) or fields.keys() != kinds.keys():
            raise ValueError(f"it lacks the fields {', '.join(kinds)}")
        for name, kind in kinds.items():
            if not isinstance(fields[name], kind):
                raise ValueError(f"{name} is {fields[name]!r}")
        try:
            schema = T.StructType.fromJson(fields["schema"])
        except Exception as error:  # any error, because Spark raises many types
            raise ValueError(f"schema isn't a Spark schema: {error}") from None
        return cls(**{**fields, "keys": tuple(fields["keys"]), "schema": schema})


@runtime_checkable
class Target(Protocol):
    """A target: any class with these two methods. `materialize` writes each batch to the target exactly once.

    If the target has a method `require_writable()`, `materialize` calls it before the query starts; the method may
    raise `BadInput`.
    """

    def content(self) -> Included | None:
        """Return the target's content, or None if nothing was written yet.

        Raises:
            BadInput: The target contains data that `materialize` didn't write.
        """

    def commit(self, rows: DataFrame, content: Included) -> None:
        """Write a batch's rows and `content` in one atomic step.

        For a table, `rows` has the table's columns and `change`, one row per key and window. An `update` replaces or
        adds the row; a `tombstone` removes the row, if it exists. For a stream, all rows are added.
        """


def materialize(
    changelog: DataFrame,
    *,
    to: Target | BatchFunction,
    checkpoint: str | Path,
    result: ResultKind = "table",
    **trigger: Any,
) -> StreamingQuery:
    """Start a query that folds a changelog into a table, exactly once across crashes and restarts.

    `ParquetTable` and `DuckDBTable` of `spark_impl.sinks.tables` are ready-made targets. A function can write to any
    other system. `materialize` calls the function with a batch's changes and number, and again with the same changes if
    Spark crashed before it committed the batch. The function must therefore be idempotent: it writes by key and window,
    as in the examples, or stores the batch's number in the transaction of its rows and skips a stored number.

        def to_postgres(changes, batch):
            rows = changes.select("user", "window.start", "window.end", "value", "change")
            rows.write.mode("overwrite").jdbc(url, "totals_changes")
            with psycopg.connect(dsn) as connection:  # one transaction
                connection.execute('''
                    MERGE INTO totals t USING totals_changes c ON (t."user", t."start") = (c."user", c."start")
                      AND t."end" = c."end"
                    WHEN MATCHED AND c.change = 'tombstone' THEN DELETE
                    WHEN MATCHED THEN UPDATE SET value = c.value
                    WHEN NOT MATCHED AND c.change = 'update' THEN INSERT VALUES (c."user", c."start", c."end", c.value)
                ''')

        def to_delta(changes, batch):
            (
                DeltaTable.forName(changes.sparkSession, "totals").alias("t")
                .merge(changes.alias("c"), "t.user = c.user AND t.window <=> c.window")
                .whenMatchedDelete("c.change = 'tombstone'")
                .whenMatchedUpdate(None, {"value": "c.value", "timestamp": "c.timestamp"})
                .whenNotMatchedInsert(
                    "c.change = 'update'",
                    {name: f"c.{name}" for name in ("user", "window", "value", "timestamp")},
                )
                .execute()
            )

    The ready-made targets refuse batches after another query has written to the target, or if batches are missing; a
    function must detect both itself.

    Args:
        changelog: The result of an operator, streaming.
        to: A `ParquetTable`, a `DuckDBTable`, any other `Target`, or a function of a DataFrame and a batch's number.
        checkpoint: The folder of the query's checkpoint. The checkpoint belongs to the target: to start over, delete
            both.
        result: `table` stores the last change of each key and window, and a tombstone removes the row. `stream` stores
            every change. Use `stream` for joins of streams: their results have no unique key, so a table would contain
            only a key's last result.
        trigger: The trigger, as in Spark's `DataStreamWriter.trigger`, such as `availableNow=True`; by default Spark's
            default trigger.

    Returns:
        The running query. The table has the key's columns, `window` (null without windows), `value` and `timestamp`; a
        stream has `change` (`update`, `tombstone`), `batch bigint` and `ordinal` too: sort by these two for the order
        of a key's rows. Neither contains dropped rows. A function gets the same columns and, for a table, `change`; a
        table's changes are one row per key and window.

    Raises:
        BadInput: The frame isn't a streaming changelog, the target isn't valid, or it contains other data: another
            query's rows, other columns, or a stream instead of a table. Also raised if the target or the checkpoint is
            damaged or not writable. The running query fails in the same way if the target is behind or ahead of the
            checkpoint. The query fails with Spark's error if a change of a table has a key of nulls only, two changes
            of a key and window have the same ordinal, or a change isn't `update`, `tombstone` or `dropped`.
    """
    keys = changelog_keys(changelog)
    if not changelog.isStreaming:
        raise BadInput("changelog: it is a batch DataFrame, which needs no query: write folded(changelog) yourself")
    if result not in get_args(ResultKind):
        raise BadInput(f"result is {result!r}: choose table or stream")
    if not isinstance(to, Target) and not callable(to):
        raise BadInput(f"to is {to!r}: give a ParquetTable, a DuckDBTable, or a function of a DataFrame and a number")
    sink = Materializer(to, str(checkpoint), result, keys)
    sink.require_own_target(changelog)
    require_writable = getattr(to, "require_writable", None)
    if require_writable is not None:
        require_writable()
    writer = changelog.writeStream.foreachBatch(sink.write).option("checkpointLocation", sink.checkpoint)
    try:
        return (writer.trigger(**trigger) if trigger else writer).start()
    except (Py4JJavaError, PySparkException) as error:
        reason = file_system_reason(error)
        if reason is None:
            raise
        raise BadInput(
            f"checkpoint: {sink.checkpoint} can't be written ({reason}): name a writable folder with free space"
        ) from None


def folded(changelog: DataFrame) -> DataFrame:
    """Return the table that results from all changes of a batch changelog, such as the result of an operator on batch
    inputs.

    Returns:
        The key's columns, `window`, `value` and `timestamp`.

    Raises:
        BadInput: The frame isn't a changelog, or is streaming.
    """
    keys = changelog_keys(changelog)
    if changelog.isStreaming:
        raise BadInput("changelog: it is streaming, and its table needs a query: use materialize")
    return last_changes(changelog, keys).filter(F.col("change") == UPDATE).drop("change")


def changelog_keys(changelog: DataFrame) -> tuple[str, ...]:
    """Return the key columns of a changelog: the columns before `window`.

    Raises:
        BadInput: The frame isn't a changelog; the message names the columns.
    """
    columns = changelog.columns
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        raise BadInput(
            f"changelog: it has the columns {', '.join(columns)}, but lacks {', '.join(missing)}: give an operator's "
            "result with all its columns"
        )
    lower = [name.lower() for name in columns]
    # `batch` is reserved, because a stream result stores the batch numbers in this column.
    taken = [name for name in columns if lower.count(name.lower()) > 1 or name.lower() == "batch"]
    if taken:
        raise BadInput(f"changelog: the column name {taken[0]!r} is reserved: give the key another name, with an alias")
    index = columns.index("window")
    unknown = [name for name in columns[index:] if name not in KNOWN]
    if unknown:
        raise BadInput(
            f"changelog: {', '.join(unknown)} would be in no table: drop the column, or move it into the value"
        )
    if not index:
        raise BadInput("changelog: no column before window, so it has no key: give an operator's result")
    return tuple(columns[:index])


def last_changes(changelog: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Return the last change of each key and window in a batch: the key, `window`, `value`, `timestamp`, `change`."""
    # Only some of the key's columns may be null: a one-to-many join's row without a foreign key still has a left key.
    named = reduce(or_, (column(name).isNotNull() for name in keys))
    message = F.lit("changelog: the key of a change is null, so no table can store it: use result='stream'")
    by = [column(name) for name in (*keys, "window")]
    changes = _checked(changelog).filter(_required(named, message)).groupBy(*by)
    last = F.max_by(F.struct("value", "timestamp", "change"), "ordinal").alias("last")
    emitted = changes.agg(last, F.collect_list("ordinal").alias("ordinals"))
    ordered = F.size(F.array_distinct("ordinals")) == F.size("ordinals")
    message = F.lit(
        "changelog: two changes of a key have the same ordinal, so neither is the last: materialize one changelog"
    )
    return emitted.filter(_required(ordered, message)).select(*by, "last.*")


def all_changes(changelog: DataFrame, keys: tuple[str, ...], batch: int) -> DataFrame:
    """Return every change in a batch: the key, `window`, `value`, `timestamp`, `change`, `batch`, `ordinal`.

    Args:
        changelog: The batch's changelog.
        keys: The key's columns.
        batch: The batch's number.
    """
    names = (*keys, "window", "value", "timestamp", "change")
    numbered = F.lit(batch).cast("bigint").alias("batch")
    return _checked(changelog).select(*map(column, names), numbered, "ordinal")


def follows(before: Included | None, now: Included) -> bool:
    """Return whether a target with the content `before` needs a batch; False if the target already contains the batch.

    Raises:
        BadInput: Batches would be lost or written twice; the message says which, and the remedy.
    """
    if before is None:
        if now.batch:
            raise BadInput(
                f"to: the target is empty, though the checkpoint's query has reached batch {now.batch}: "
                f"restore the table as it was, or {ANEW}"
            )
        return True
    _require_same(before, now)
    if before.batch + 1 == now.batch:
        return True
    if before.batch != now.batch:
        raise BadInput(
            f"to: the table contains all batches up to {before.batch}, and the checkpoint's query continues with "
            f"{now.batch}: the table or the checkpoint is an older copy; restore both from the same backup, or {ANEW}"
        )
    if before.offsets != now.offsets:
        raise BadInput(
            f"to: the table already contains another batch {now.batch}: the checkpoint is an "
            f"older copy, or its newest batch was removed from it; restore it, or {ANEW}"
        )
    return False


class Materializer:
    """Writes batches of a changelog to a target."""

    def __init__(self, to: Target | BatchFunction, checkpoint: str, result: str, keys: tuple[str, ...]) -> None:
        self.to = to
        self.checkpoint = checkpoint
        self.result = result
        self.keys = keys
        self.known_query: str | None = None

    def write(self, changelog: DataFrame, batch: int) -> None:
        """Write a batch to the target, unless the target already contains the batch."""
        rows = self.rows(changelog, batch).persist()
        try:
            # Run every partition, even if the target reads no rows, because an operator saves its state only when it
            # runs.
            rows.count()
            if isinstance(self.to, Target):
                content = self.content(rows, batch)
                if follows(self.to.content(), content):
                    self.to.commit(rows, content)
            else:
                self.to(rows, batch)
        finally:
            rows.unpersist()

    def rows(self, changelog: DataFrame, batch: int) -> DataFrame:
        """Return the rows of a batch as they are written to the target."""
        if self.result == "stream":
            return all_changes(changelog, self.keys, batch)
        return last_changes(changelog, self.keys)

    def content(self, rows: DataFrame, batch: int) -> Included:
        """Return the content of the target after a batch."""
        spark = rows.sparkSession
        query, offsets = self.query(spark), text_of(spark, f"{self.checkpoint}/offsets/{batch}")
        if query is None or offsets is None:
            raise StreamproofError(f"checkpoint: {self.checkpoint} can't be read: does its path contain a pattern?")
        if not offsets:
            raise BadInput(f"checkpoint: {self.checkpoint} is damaged: its file offsets/{batch} is empty: {RESTORE}")
        digest = hashlib.sha256(offsets.encode()).hexdigest()
        return Included(query, batch, digest, self.result, self.keys, self.schema(rows))

    def schema(self, rows: DataFrame) -> T.StructType:
        """Return the columns of the target."""
        return (rows if self.result == "stream" else rows.drop("change")).schema

    def query(self, spark: SparkSession) -> str | None:
        """Return the id of the checkpoint's query; None if there is no checkpoint yet."""
        if self.known_query is None:
            self.known_query = query_of(spark, self.checkpoint)
        return self.known_query

    def require_own_target(self, changelog: DataFrame) -> None:
        """Refuse a target of another query or changelog, and a damaged checkpoint, before the query starts.

        Raises:
            BadInput: The message names the difference and the remedy.
        """
        query = self.query(changelog.sparkSession) or "a new one"
        if not isinstance(self.to, Target):
            return
        held = self.to.content()
        if held is not None:
            schema = self.schema(self.rows(changelog, 0))
            _require_same(held, Included(query, 0, "", self.result, self.keys, schema))


def _require_same(before: Included, now: Included) -> None:
    if before.result != now.result:
        raise BadInput(f"to: it contains a {before.result}, but result is {now.result!r}: {ANEW}")
    # Compare without nullability, because no target stores it.
    ours, theirs = ((*one.keys, one.schema.simpleString()) for one in (now, before))
    if ours != theirs:
        raise BadInput(
            f"to: it contains {before.schema.simpleString()} by {', '.join(before.keys)}, but the changelog has "
            f"{now.schema.simpleString()} by {', '.join(now.keys)}: {ANEW}"
        )
    if before.query != now.query:
        raise BadInput(
            f"to: it was written by the query {before.query}, but the checkpoint's query is {now.query}, with other "
            f"batches: give the first query's checkpoint, or {ANEW}"
        )


def _checked(changelog: DataFrame) -> DataFrame:
    """Return the rows without dropped rows; the query fails on a row that isn't part of a changelog."""
    change = F.coalesce("change", F.lit("null"))
    known = change.isin(UPDATE, TOMBSTONE) & F.col("ordinal").isNotNull()
    message = F.concat(F.lit("changelog: a row's change is "), change, F.lit(", or its ordinal is null: fix that row"))
    return changelog.filter(F.when(change == DROPPED, F.lit(False)).otherwise(_required(known, message)))


def _required(condition: Column, message: Column) -> Column:
    return F.when(condition, F.lit(True)).otherwise(F.raise_error(message))


def column(name: str) -> Column:
    """Return a column by a name that may contain dots."""
    return F.col("`{}`".format(name.replace("`", "``")))

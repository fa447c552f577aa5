"""The known causes of lost, doubled or torn rows in sinks, each with the document or source file that states
the cause.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from .contracts import GUIDE, SinkContract
from .judging import SinkVerdict

APPENDS = ("append", "sqlite-append", "sqlite-by-row", "jdbc", "foreach", "delta-append", "iceberg-append")
FILES = ("file-parquet", "file-json")
NUMBERED = ("guard-after", "guard-before", "transaction", "delta-txn", "iceberg-batch")
UPSERTS = ("sqlite-upsert", "duckdb-upsert")
REPEATS = (
    *("death-before-write", "death-within-write", "death-in-commit", "death-before-commit"),
    *("death-between-writes", "repeated-batch", "lost-connection", "full-disk"),
)
CHECKPOINTS = ("old-checkpoint", "deleted-checkpoint", "deleted-checkpoint-latest")
_SINK = "https://github.com/apache/spark/blob/master/sql/core/src/main/scala/org/apache/spark/sql/execution/streaming"
_FILE_SINK = f"{_SINK}/sinks/FileStreamSink.scala"
_RECOVERY = f"{GUIDE}#recovering-from-failures-with-checkpointing"
_FOR_EACH_BATCH = f"{GUIDE}#foreachbatch"


class Cause(NamedTuple):
    """The cause of a verdict on some sinks under some faults.

    Attributes:
        sinks: The names of the affected sinks.
        faults: The faults.
        verdict: The verdict.
        says: The cause, in one sentence.
        source: The address of the document or source file that states the cause.
    """

    sinks: Collection[str]
    faults: Collection[str]
    verdict: SinkVerdict
    says: str
    source: str


CAUSES: Sequence[Cause] = (
    Cause(
        ("append",),
        ("death-within-write",),
        "doubled",
        "a killed job leaves its finished tasks in _temporary/0, and the repeated job commits them with its own tasks: "
        "commitJobInternal merges all that getAllCommittedTaskPaths lists; after an exception, abortJob deletes them",
        "https://github.com/apache/hadoop/blob/trunk/hadoop-mapreduce-project/hadoop-mapreduce-client/"
        "hadoop-mapreduce-client-core/src/main/java/org/apache/hadoop/mapreduce/lib/output/FileOutputCommitter.java",
    ),
    Cause(
        APPENDS,
        (*REPEATS, "old-checkpoint", "deleted-checkpoint"),
        "doubled",
        "Spark runs the batch again, and the sink doesn't know that its rows are already written",
        _FOR_EACH_BATCH,
    ),
    Cause(
        APPENDS,
        ("zombie",),
        "doubled",
        "the old query and its successor both append the batch; Spark's commit log refuses the old query too late",
        _FOR_EACH_BATCH,
    ),
    Cause(
        ("sqlite-by-row", "jdbc", "foreach", "append"),
        REPEATS,
        "torn",
        "each partition or statement has its own transaction",
        "https://spark.apache.org/docs/latest/sql-data-sources-jdbc.html",
    ),
    Cause(
        ("memory",),
        (*REPEATS, "old-checkpoint"),
        "stuck",
        "Spark restarts no append-mode query with a memory sink from a checkpoint, because the table is lost",
        f"{GUIDE}#output-sinks",
    ),
    Cause(
        ("memory",),
        ("deleted-checkpoint-latest",),
        "lost",
        "the new query creates an empty table in memory",
        f"{GUIDE}#output-sinks",
    ),
    Cause(
        ("guard-before",),
        REPEATS,
        "lost",
        "the batch is recorded before its rows are written, so the repeated batch is skipped",
        _FOR_EACH_BATCH,
    ),
    Cause(
        ("guard-after",),
        REPEATS,
        "doubled",
        "the rows are committed before the batch is recorded, so the repeated batch is written again",
        _FOR_EACH_BATCH,
    ),
    Cause(
        ("delta-txn",),
        ("zombie",),
        "doubled",
        "the old query reads the version before its successor writes it, and delta-rs lets both commit the same "
        "version",
        "https://github.com/delta-io/delta/blob/master/PROTOCOL.md#transaction-identifiers",
    ),
    Cause(
        (*NUMBERED, "overwrite"),
        ("zombie",),
        "doubled",
        "the old query reads the guard before its successor writes the batch",
        _FOR_EACH_BATCH,
    ),
    Cause(
        FILES,
        ("two-queries", *CHECKPOINTS),
        "lost",
        "the sink skips a batch whose number is in its log, even from another query or with other rows: "
        "FileStreamSink.addBatch",
        _FILE_SINK,
    ),
    Cause(
        NUMBERED,
        ("two-queries",),
        "lost",
        "both queries count batches from 0, and the target identifies a batch by its number only",
        "https://docs.delta.io/latest/delta-streaming.html#idempotent-table-writes-in-foreachbatch",
    ),
    Cause(
        NUMBERED,
        CHECKPOINTS,
        "lost",
        "the query counts batches from 0 again, so new rows in a batch with a known number are skipped",
        _RECOVERY,
    ),
    Cause(
        ("overwrite",),
        ("two-queries", "deleted-checkpoint-latest"),
        "lost",
        "another batch with the same number overwrites the folder",
        _FOR_EACH_BATCH,
    ),
    Cause(
        ("overwrite",),
        ("old-checkpoint", "deleted-checkpoint"),
        "doubled",
        "one new batch repeats the rows of several old batches, whose folders stay",
        _RECOVERY,
    ),
    Cause(
        UPSERTS,
        ("deleted-checkpoint-latest",),
        "lost",
        "the totals were in the state, which is now empty",
        _RECOVERY,
    ),
    Cause(
        UPSERTS,
        ("zombie",),
        "lost",
        "the old query's totals overwrite newer totals, because the upsert compares no batch numbers",
        "https://sqlite.org/lang_upsert.html",
    ),
    Cause(
        FILES,
        ("retention",),
        "stuck",
        "the sink's log still names the removed files, or has lost the entry that its next entry is made from",
        f"{_SINK}/sinks/CompactibleFileStreamLog.scala",
    ),
    Cause(
        ("delta-append", "delta-txn"),
        ("retention",),
        "stuck",
        "the table's log has lost its first entry, and no checkpoint of the log replaces it",
        "https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries",
    ),
    Cause(
        ("iceberg-append", "iceberg-batch"),
        ("retention",),
        "stuck",
        "the newest snapshot still names the removed files and manifests",
        "https://iceberg.apache.org/docs/latest/maintenance/",
    ),
)


REPORTS: Mapping[tuple[str, str], str] = {
    ("append", "death-within-write"): "https://issues.apache.org/jira/browse/SPARK-29037",
    ("file-parquet", "two-queries"): "https://issues.apache.org/jira/browse/SPARK-43152",
    ("delta-txn", "old-checkpoint"): "https://github.com/delta-io/delta/issues/1813",
}
"""Public reports of the same defects, by the names of sink and fault."""

DIFFERENCES: Mapping[tuple[str, str], str] = {
    ("append", "death-within-write"): (
        "an exception lets Spark abort the job, which deletes the job's finished tasks; SIGKILL leaves them"
    ),
    ("jdbc", "zombie"): "Derby is embedded: the old process has the database open, so no other process can",
}
"""The reasons why a simulated and a real fault have different verdicts, by the names of sink and fault."""


def cause_of(sink: SinkContract, fault: str, verdict: SinkVerdict) -> tuple[str, str]:
    """Return the cause of a verdict and its source; return two empty texts for an unknown cause."""
    for cause in CAUSES:
        if sink.name in cause.sinks and fault in cause.faults and verdict == cause.verdict:
            return cause.says, cause.source
    return "", ""

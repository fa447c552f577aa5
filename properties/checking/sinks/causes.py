"""The reason why a sink loses, doubles, tears or stops under a fault, with the document or source of the reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    """The cause of a verdict.

    Attributes:
        sinks: The affected sinks.
        faults: The faults.
        verdict: The verdict.
        says: The cause, in one sentence.
        source: The document or the source of the sentence.
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
        "a killed job leaves its finished tasks in _temporary/0, and the commit of its repetition takes them along",
        "https://github.com/apache/hadoop/blob/trunk/hadoop-mapreduce-project/hadoop-mapreduce-client/"
        "hadoop-mapreduce-client-core/src/main/java/org/apache/hadoop/mapreduce/lib/output/FileOutputCommitter.java",
    ),
    Cause(
        APPENDS,
        (*REPEATS, "old-checkpoint", "deleted-checkpoint"),
        "doubled",
        "Spark runs the batch again, and the sink can't know that it has its rows",
        _FOR_EACH_BATCH,
    ),
    Cause(
        APPENDS,
        ("zombie",),
        "doubled",
        "the old query and its successor both append the batch; Spark's commit log refuses the old one too late",
        _FOR_EACH_BATCH,
    ),
    Cause(
        ("sqlite-by-row", "jdbc", "foreach", "append"),
        REPEATS,
        "torn",
        "each partition, or statement, commits by itself",
        "https://spark.apache.org/docs/latest/sql-data-sources-jdbc.html",
    ),
    Cause(
        ("memory",),
        (*REPEATS, "old-checkpoint"),
        "stuck",
        "a query in append mode whose sink is memory goes on from no checkpoint, for its table is gone",
        f"{GUIDE}#output-sinks",
    ),
    Cause(
        ("memory",),
        ("deleted-checkpoint-latest",),
        "lost",
        "the table in memory is made anew with the query",
        f"{GUIDE}#output-sinks",
    ),
    Cause(
        ("guard-before",),
        REPEATS,
        "lost",
        "the batch is noted before its rows are there, so its repetition is skipped",
        _FOR_EACH_BATCH,
    ),
    Cause(
        ("guard-after",),
        REPEATS,
        "doubled",
        "the rows are committed before the batch is noted, so its repetition isn't skipped",
        _FOR_EACH_BATCH,
    ),
    Cause(
        ("delta-txn",),
        ("zombie",),
        "doubled",
        "the old query has looked for the version before its successor wrote it, and delta-rs lets it commit the same",
        "https://github.com/delta-io/delta/blob/master/PROTOCOL.md#transaction-identifiers",
    ),
    Cause(
        (*NUMBERED, "overwrite"),
        ("zombie",),
        "doubled",
        "the old query has looked for the batch before its successor wrote it",
        _FOR_EACH_BATCH,
    ),
    Cause(
        FILES,
        ("two-queries", *CHECKPOINTS),
        "lost",
        "the sink skips a batch whose number is in its log, whichever query and rows it was: FileStreamSink.addBatch",
        _FILE_SINK,
    ),
    Cause(
        NUMBERED,
        ("two-queries",),
        "lost",
        "both queries count their batches from 0, and the target knows a batch by its number alone",
        "https://docs.delta.io/latest/delta-streaming.html#idempotent-table-writes-in-foreachbatch",
    ),
    Cause(
        NUMBERED,
        CHECKPOINTS,
        "lost",
        "the query counts its batches anew, and new rows in a batch with a known number are skipped",
        _RECOVERY,
    ),
    Cause(
        ("overwrite",),
        ("two-queries", "deleted-checkpoint-latest"),
        "lost",
        "another batch of the same number overwrites the folder",
        _FOR_EACH_BATCH,
    ),
    Cause(
        ("overwrite",),
        ("old-checkpoint", "deleted-checkpoint"),
        "doubled",
        "the rows of several batches come again in one, and the folders of the others stay",
        _RECOVERY,
    ),
    Cause(
        UPSERTS,
        ("deleted-checkpoint-latest",),
        "lost",
        "the totals were in the state, which has begun anew",
        _RECOVERY,
    ),
    Cause(
        UPSERTS,
        ("zombie",),
        "lost",
        "the old query's totals overwrite newer ones: the upsert compares no batch",
        "https://sqlite.org/lang_upsert.html",
    ),
    Cause(
        FILES,
        ("retention",),
        "stuck",
        "the sink's log still names the files, or has lost the entry that its next one is made of",
        f"{_SINK}/sinks/CompactibleFileStreamLog.scala",
    ),
    Cause(
        ("delta-append", "delta-txn"),
        ("retention",),
        "stuck",
        "the table's log has lost its first entry, and no checkpoint of the log stands in for it",
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


def cause_of(sink: SinkContract, fault: str, verdict: SinkVerdict) -> tuple[str, str]:
    """Return the cause of a verdict and its source; both are empty if unknown."""
    for cause in CAUSES:
        if sink.name in cause.sinks and fault in cause.faults and verdict == cause.verdict:
            return cause.says, cause.source
    return "", ""

"""A user's sink under the faults that no crash shows: a wrong one is found by each, and a right one withstands all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from check_job_setup import CLICKS, but_for
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from sqlite_sinks import by_key, checked_before, noted_in_memory, numbered, sqlite_sink, swallowing
from streamproof import JobReport, Sink, Violated, invariants
from streamproof.properties.laws.metamorphic.sink_fault import SINK_FAULTS

pytestmark = pytest.mark.weekly("each fault restarts several queries")


def in_files(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    return clicks.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(target)


def overwritten(clicks: DataFrame, target: str, checkpoint: str) -> StreamingQuery:
    def write(rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").parquet(f"{target}/batch={batch}")

    return clicks.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint).start()


def checked(sink: Sink, faults: Sequence[str]) -> JobReport:
    return invariants(sink, CLICKS, histories=20, without=but_for("a restart"), faults=faults, seconds=300)


WRONG = [
    ("lost-connection", sqlite_sink(noted_in_memory), "lost"),
    ("full-disk", sqlite_sink(swallowing), "lost"),
    ("zombie", sqlite_sink(checked_before), "doubled"),
    ("two-queries", sqlite_sink(numbered), "lost"),
    ("retention", Sink.parquet(in_files), "stuck"),
    ("old-checkpoint", sqlite_sink(numbered), "lost"),
    ("deleted-checkpoint", Sink.parquet(overwritten, without=["batch"]), "doubled"),
    ("deleted-checkpoint-latest", sqlite_sink(numbered), "lost"),
]


@pytest.mark.parametrize(("fault", "sink", "verdict"), WRONG, ids=[one[0] for one in WRONG])
def test_a_wrong_sink_is_found_by_each_fault(fault: str, sink: Sink, verdict: str) -> None:
    with pytest.raises(Violated, match=rf"(?s)violated: under the fault {fault} .*Its rows: [a-z, ]*{verdict}"):
        checked(sink, [fault])


def test_a_right_sink_withstands_all_faults_that_it_can_undergo() -> None:
    report = checked(sqlite_sink(by_key, "keyed"), ["all"])
    played = [name for name, law in SINK_FAULTS.items() if law.of_jobs in report.laws]
    assert played == [name for name in SINK_FAULTS if name != "retention"]
    assert "the fault retention: each of its files is also written by later batches" in report.not_checked


def test_files_of_each_batch_outlive_the_removal_of_older_ones() -> None:
    report = checked(Sink.parquet(overwritten, without=["batch"]), ["retention", "lost-connection"])
    assert "the fault retention" in report.laws

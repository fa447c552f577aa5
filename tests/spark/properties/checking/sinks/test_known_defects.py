"""Public defects of sinks, found again by the table, and a real death of several queries at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.checking.sinks import table
from streamproof.properties.checking.sinks.sinks import SINKS
from streamproof.properties.checking.sinks.table import Asked, Cell, fault_named

pytestmark = pytest.mark.usefixtures("spark")


def by_hand(sink: str, fault: str, histories: int = 20) -> Cell:
    asked = Asked([SINKS[sink]], [fault_named(fault)], histories)
    return Cell(asked.sinks[0], asked.faults[0], table._by_hand(asked, asked.sinks[0], asked.faults[0]))


@pytest.mark.parametrize("sink", ["delta-append", "iceberg-append"])
def test_a_repeated_batch_is_appended_twice_without_its_number(sink: str) -> None:
    # Delta: "Idempotent table writes in foreachBatch"; the same was reported of paimon's sink.
    cell = by_hand(sink, "repeated-batch")
    assert cell.verdicts == ("doubled",)
    assert cell.played.smallest == {"doubled": "batch 1: a"}
    assert "Spark runs the batch again" in cell.cause[0]


def test_a_repeated_batch_is_skipped_by_its_version_of_the_application() -> None:
    assert by_hand("delta-txn", "repeated-batch").verdicts == ("kept",)


def test_sparks_file_sink_loses_the_rows_of_a_second_query_on_its_path() -> None:
    cell = by_hand("file-parquet", "two-queries")
    assert cell.verdicts == ("lost",)
    assert cell.played.smallest == {"lost": "batch 0: a"}
    assert not cell.is_broken, "no document promises it"
    assert "FileStreamSink.addBatch" in cell.cause[0]


@pytest.mark.parametrize("sink", ["transaction", "delta-txn"])
def test_a_guard_by_the_batchs_number_drops_rows_after_its_checkpoint_was_deleted(sink: str) -> None:
    cell = by_hand(sink, "deleted-checkpoint-latest")
    assert cell.verdicts == ("lost",)
    assert cell.played.smallest == {"lost": "batch 3: a"}


def test_queries_that_are_killed_in_one_process_go_on_in_another(spark: SparkSession) -> None:
    sinks: Sequence[str] = ("sqlite-by-row", "transaction", "guard-before")
    found: list[Cell] = []
    for sink, fault in zip(sinks, ("within-write", "before-commit", "between-writes"), strict=True):
        found.append(Cell(SINKS[sink], fault_named(f"death-{fault}")))
    asked = Asked([SINKS[sink] for sink in sinks], [cell.fault for cell in found], 20)
    ways = table._killed(asked, found)
    assert [way.verdicts for way in ways] == [("doubled", "torn"), ("kept",), ("lost",)]
    assert ways[0].smallest == {"doubled": "batch 1: a", "torn": "batch 1: a b"}
    assert ways[2].smallest == {"lost": "batch 1: a"}

"""The whole table of sinks and faults is the one in the documentation, and the command leaves no process behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faults import Running, end_processes, processes_left, processes_of
from paths import ROOT
from pyspark.sql import SparkSession
from streamproof.properties.checking.sinks import table
from streamproof.properties.checking.sinks.sinks import SINKS
from streamproof.properties.checking.sinks.table import Asked, Cell

pytestmark = pytest.mark.weekly("the whole table takes some minutes, and a dozen JVMs")
RIGHT = ("transaction", "sqlite-upsert", "duckdb-upsert", "overwrite", "delta-txn", "iceberg-batch", "file-parquet")
"""The sinks that promise each row once."""


def test_each_cell_is_as_the_page_says(spark: SparkSession) -> None:
    saved = json.loads((ROOT / "benchmarks" / "sinks.json").read_text())
    found: list[Cell] = []
    sinks = [SINKS[name] for name in saved["sinks"]]
    table.play(Asked(sinks, histories=saved["histories"], seed=saved["seed"]), found, lambda step: None)
    now = {(cell.sink.name, cell.fault.name): [*cell.verdicts] for cell in found}
    assert now == {(cell["sink"], cell["fault"]): cell["verdicts"] for cell in saved["cells"]}
    assert [cell.command for cell in found if cell.is_broken or (cell.differs and not cell.difference)] == []
    # On two quiet cores a cell takes less time than its processes' CPU time, and a JVM that starts takes 6 s of it.
    assert [cell.command for cell in found if cell.played.cpu_seconds > 50] == []


def test_right_sinks_keep_500_histories_whatever_their_process_dies_of(spark: SparkSession) -> None:
    asked = Asked([SINKS[name] for name in RIGHT], [fault for fault in Asked().faults if fault.is_of_process], 500, 7)
    found: list[Cell] = []
    table.play(asked, found, lambda step: None)
    bad = {cell.command: cell.verdicts for cell in found if {*cell.verdicts} - {"kept", "refused", "not played"}}
    assert bad == {}


@pytest.mark.parametrize("step", ["a process dies", "SIGKILL at the n-th"])
def test_an_interrupted_command_leaves_no_process(step: str, tmp_path: Path) -> None:
    running = Running(["sinks", "sqlite-append"], tmp_path)
    try:
        running.wait_until(lambda one: any(step in line for line in one.err) and len(processes_of(one.mark)) > 3)
        running.process.send_signal(2)
        running.ended()
        assert processes_left(running.mark) == [], running.printed()
    finally:
        end_processes(running.mark)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.figures import Setting
from benchmarks.nexmark import nexmark
from benchmarks.nexmark.events import events as events_of
from benchmarks.nexmark.kafka import EVENTS, QUERIES, lines, table_of
from benchmarks.nexmark.merge import DUCKDB, TABLES, LastBidsInDelta
from benchmarks.nexmark.pandas import merged
from benchmarks.nexmark.queries import AUCTION, BID
from benchmarks.nexmark.sql import compared, load
from benchmarks.production.run import write_batches

COUNT, BATCHES = 3000, 3
ORDER = (0, 1, 1, 2, 0)
"""In which batches are merged: some come again."""


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A folder of events in a few batches; a second has 50, so that sessions end within them."""
    ends = [*(COUNT * batch // BATCHES for batch in range(1, BATCHES)), COUNT + 3]
    write_batches(events_of(COUNT, rate=50, closing=True)._asdict(), ends, tmp_path / "events")
    return tmp_path / "events"


def differing(events: Path, query: str, rows: Path) -> int:
    """Return how many rows differ from DuckDB's, of which there are some."""
    with duckdb.connect(":memory:") as connection:
        load(connection, str(events))
        found = compared(connection, query, str(rows))
    assert found.rows > 1
    return found.differing


def test_sessions_that_bids_out_of_order_bring_together_are_merged() -> None:
    starts, lasts = np.array([0, 30_000, 100_000, 20_000, 10_000]), np.array([0, 35_000, 100_000, 20_000, 10_000])
    found = merged(starts, lasts, np.array([1, 2, 1, 1, 1]))
    assert [part.tolist() for part in found] == [[0, 100_000], [35_000, 100_000], [5, 1]]


class Batch:
    """The rows of a micro-batch, as a merge into DuckDB reads them."""

    def __init__(self, rows: pa.Table) -> None:
        self.toArrow = lambda: rows


def batches(events: Path, query: str) -> list[pa.Table]:
    """Return the batches that a query's merge gets from Spark."""
    read = {kind: [pq.read_table(file) for file in sorted((events / kind).iterdir())] for kind in ("bid", "auction")}
    if query == "q18":
        return [rows.select([*BID, "order"]) for rows in read["bid"]]
    found = []
    for bids, auctions in zip(read["bid"], read["auction"], strict=True):
        ours = [row for row in auctions.select(AUCTION).to_pylist() if row["category"] == 10]
        theirs = pa.array(bids.select(BID).to_pylist())
        there = [*theirs.to_pylist(), *[None] * len(ours)]
        found.append(pa.table({"bid": there, "auction": [*[None] * len(theirs), *ours]}))
    return found


def merged_rows(events: Path, query: str, folder: Path) -> Path:
    """Merge batches into tables of DuckDB; return the file of the rows."""
    rows = batches(events, query)
    with closing(TABLES[DUCKDB][query](folder)) as tables:
        for batch in ORDER:
            tables.write_batch(Batch(rows[batch]), batch)  # type: ignore[arg-type]
        tables.write_rows(folder / "rows.parquet")
    assert tables.sizes[-1] >= tables.sizes[0] > 0
    return folder / "rows.parquet"


@pytest.mark.parametrize("query", ["q18", "q20"])
def test_a_merge_into_duckdb_has_the_rows_of_duckdb_even_if_batches_come_again(
    query: str, events: Path, tmp_path: Path
) -> None:
    assert differing(events, query, merged_rows(events, query, tmp_path / "tables")) == 0


def delta_rows(events: Path, folder: Path) -> Path:
    """Merge the last bids of batches into a table of Delta; return the file of the rows."""
    tables, found = LastBidsInDelta(folder / "table"), batches(events, "q18")
    last = 'FROM rows QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY time DESC, "order" DESC) = 1'
    for batch in ORDER:
        rows = found[batch]
        assert rows is not None  # which DuckDB finds by its name
        tables.merge(duckdb.sql(last).to_arrow_table(), batch)
    tables.write_rows(folder / "rows.parquet")
    return folder / "rows.parquet"


def test_a_merge_into_delta_has_the_rows_of_duckdb_even_if_batches_come_again(events: Path, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the benchmark merges into Delta where deltalake is installed")
    assert differing(events, "q18", delta_rows(events, tmp_path / "right")) == 0
    assert deltalake.DeltaTable(tmp_path / "right" / "table").version() == BATCHES


def test_events_and_rows_of_kafka_keep_each_field(events: Path) -> None:
    made = lines(events / "bid", EVENTS["bid"])
    first, last = (line.split("\t") for line in (made[0], made[-1]))
    assert (len(made), len(first), first[0], last[1]) == (COUNT * 46 // 50 + 1, len(EVENTS["bid"]), "4", "-1")
    rows = ["7\t2\t10\t20", "-1\t1\t30\t30", "8\t1\t40\t40"]
    assert table_of(rows, QUERIES["q11"]).to_pydict() == {
        "bidder": [7, 8],
        "bids": [2, 1],
        "start": [10, 40],
        "last": [20, 40],
    }
    assert table_of(['1\t2\t3\tnan\t\t4\t"x'], QUERIES["q18"]).to_pylist() == [
        {"auction": 1, "bidder": 2, "price": 3, "channel": "nan", "url": "", "time": 4, "extra": '"x'}
    ]


def test_forms_that_can_not_run_here_are_left_out_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nexmark.nexmark_kafka, "why_not", lambda: "there is no javac")
    monkeypatch.setattr(nexmark.nexmark_merge, "is_installed", lambda: False)
    monkeypatch.setattr(nexmark.nexmark_bytewax, "is_installed", lambda: True)
    nexmark._why_not_kafka.cache_clear()
    told: list[str] = []
    forms: Mapping[str, Sequence[str]] = {
        query: nexmark._forms(Setting(True, None, told.append), query) for query in ("q4", "q11", "q18", "q20")
    }
    nexmark._why_not_kafka.cache_clear()
    assert forms == {
        "q4": ["operators"],
        "q11": ["operators", "spark", "pandas", "bytewax"],
        "q18": ["operators", "spark", "pandas", "merge"],
        "q20": ["operators", "spark", "merge"],
    }
    assert told == [
        "q11: without Kafka Streams: there is no javac",
        "q18: without a merge into Delta: deltalake isn't installed",
        "q18: without Kafka Streams: there is no javac",
        "q20: without Kafka Streams: there is no javac",
    ]

"""Runs queries of Nexmark with `foreachBatch`, which merges each micro-batch into DuckDB or Delta tables on disk.

A batch is one transaction, which also stores the batch's id. So a repeated batch after a crash changes nothing.
The tables keep all rows for ever, as in the published SQL: no window closes, and no watermark is needed.
"""

from __future__ import annotations

import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq

from ..processes import CpuClock
from ..production.run import Source, by_batch, report, streamed, used_since_now
from .queries import AUCTION, BID, CATEGORY, Frames

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

DUCKDB, DELTA = "merge", "delta"
TEXTS = ("item_name", "description", "channel", "url", "extra")
LAST = (*BID, "order")


def is_installed() -> bool:
    """Return whether deltalake can be imported."""
    return find_spec("deltalake") is not None


class Tables(ABC):
    """The tables of a query, in a folder.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.sizes: list[int] = []

    @abstractmethod
    def arriving(self, inputs: Frames) -> DataFrame:
        """Return the stream whose batches the query merges."""

    @abstractmethod
    def merge_batch(self, rows: DataFrame, batch: int) -> None:
        """Merge a batch, unless it has already been merged."""

    @abstractmethod
    def write_rows(self, file: Path) -> None:
        """Write the query's rows to a file."""

    def close(self) -> None:
        """Close the tables."""
        return

    def write_batch(self, rows: DataFrame, batch: int) -> None:
        """Merge a batch, and record the size (bytes) of all files."""
        self.merge_batch(rows, batch)
        self.sizes.append(sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file()))


class DuckdbTables(Tables):
    """Tables in a DuckDB file."""

    tables: Mapping[str, str]
    """The columns of each table."""
    statements: Sequence[str]
    """Merge the table `arrived`."""
    result: str
    """Selects the query's rows."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.connection = duckdb.connect(folder / "tables.duckdb")
        for name, columns in {"merged": "batch BIGINT", **self.tables}.items():
            self.connection.execute(f"CREATE TABLE {name} ({columns})")

    def merge_batch(self, rows: DataFrame, batch: int) -> None:
        self.connection.begin()
        try:
            if not self.is_merged(batch):
                self.connection.register("arrived", rows.toArrow())
                for statement in self.statements:
                    self.connection.execute(statement)
                self.connection.execute("INSERT INTO merged VALUES (?)", [batch])
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise

    def is_merged(self, batch: int) -> bool:
        """Return whether a batch has already been merged."""
        return bool(self.connection.execute("FROM merged WHERE batch >= ?", [batch]).fetchall())

    def close(self) -> None:
        self.connection.close()

    def write_rows(self, file: Path) -> None:
        self.connection.execute(f"COPY ({self.result}) TO '{file}' (FORMAT parquet)")


def _columns(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(f'"{prefix}{name}" {"VARCHAR" if name in TEXTS else "BIGINT"}' for name in names)


def _names(names: Sequence[str], of: str) -> str:
    return ", ".join(f'{of}."{name}"' for name in names)


class LastBids(DuckdbTables):
    """The last bid of each bidder for each auction (q18)."""

    tables: Mapping[str, str] = {"last": f"{_columns(LAST)}, PRIMARY KEY (bidder, auction)"}
    statements = (
        f"""
        INSERT INTO last SELECT {_names(LAST, "arrived")} FROM arrived
        QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY time DESC, "order" DESC) = 1
        ON CONFLICT DO UPDATE SET {", ".join(f'"{name}" = excluded."{name}"' for name in LAST[2:])}
        WHERE (excluded.time, excluded."order") > (last.time, last."order")
        """,
    )
    result = f"SELECT {_names(BID, 'last')} FROM last WHERE auction >= 0"

    def arriving(self, inputs: Frames) -> DataFrame:
        return inputs["bid"].select(*LAST)


class Pairs(DuckdbTables):
    """Each bid for an auction of a category, with the auction (q20): the new pairs of each batch."""

    tables: Mapping[str, str] = {
        "bid": _columns(BID),
        "auction": _columns(AUCTION),
        "pair": f"{_columns(BID)}, {_columns(AUCTION, 'auction_')}",
    }
    statements = (
        "CREATE OR REPLACE TEMP TABLE new_bid AS SELECT unnest(bid) FROM arrived WHERE bid IS NOT NULL",
        "CREATE OR REPLACE TEMP TABLE new_auction AS SELECT unnest(auction) FROM arrived WHERE auction IS NOT NULL",
        f"""
        INSERT INTO pair SELECT {_names(BID, "one")}, {_names(AUCTION, "other")}
        FROM new_bid AS one JOIN (FROM auction UNION ALL FROM new_auction) AS other ON one.auction = id
        UNION ALL SELECT {_names(BID, "one")}, {_names(AUCTION, "other")}
        FROM bid AS one JOIN new_auction AS other ON one.auction = id
        """,
        "INSERT INTO bid FROM new_bid",
        "INSERT INTO auction FROM new_auction",
    )
    result = "FROM pair"

    def arriving(self, inputs: Frames) -> DataFrame:
        from pyspark.sql import functions as F

        bids = inputs["bid"].select(F.struct(*BID).alias("bid"))
        auctions = inputs["auction"].filter(CATEGORY).select(F.struct(*AUCTION).alias("auction"))
        return bids.unionByName(auctions, allowMissingColumns=True)


class LastBidsInDelta(Tables):
    """The last bid of each bidder for each auction (q18), in a Delta table."""

    APPLICATION = "q18"

    def arriving(self, inputs: Frames) -> DataFrame:
        return inputs["bid"].select(*LAST)

    def merge_batch(self, rows: DataFrame, batch: int) -> None:
        from pyspark.sql import functions as F

        # Keep the last bid of each key, because a merge accepts only one row per key.
        last = rows.groupBy("bidder", "auction").agg(F.max_by(F.struct(*LAST), F.struct("time", "order")).alias("row"))
        self.merge(last.select("row.*").toArrow(), batch)

    def merge(self, last: pa.Table, batch: int) -> None:
        """Merge the last bids of a batch, unless the batch has already been merged."""
        from deltalake import CommitProperties, DeltaTable, Transaction

        table = DeltaTable.create(self.folder, last.schema, mode="ignore")
        merged = table.transaction_version(self.APPLICATION)
        if merged is not None and merged >= batch:
            return
        merging = table.merge(
            last,
            "old.bidder = new.bidder AND old.auction = new.auction",
            source_alias="new",
            target_alias="old",
            commit_properties=CommitProperties(app_transactions=[Transaction(self.APPLICATION, batch)]),
        )
        later = 'new.time > old.time OR (new.time = old.time AND new."order" > old."order")'
        merging.when_matched_update_all(later).when_not_matched_insert_all().execute()

    def write_rows(self, file: Path) -> None:
        from deltalake import DeltaTable

        rows = DeltaTable(self.folder).to_pyarrow_table(columns=list(BID), filters=[("auction", ">=", 0)])
        pq.write_table(rows, file)


TABLES: Mapping[str, Mapping[str, Callable[[Path], Tables]]] = {
    DUCKDB: {"q18": LastBids, "q20": Pairs},
    DELTA: {"q18": LastBidsInDelta},
}
"""The tables of each form, by query."""


def through(
    spark: SparkSession, name: str, form: str, source: Source, result: Path, batches: int, runs: int
) -> Mapping[str, Any]:
    """Run a query once or twice, each time into separate tables; write its rows after the first run.

    Args:
        spark: The session.
        name: The query.
        form: The path of the tables: `DUCKDB` or `DELTA`.
        source: The events.
        result: The folder of the query's rows, which also contains the tables.
        batches: The number of batches in which the events arrive.
        runs: How many runs.
    """
    sizes: list[list[int]] = []
    shutil.rmtree(result, ignore_errors=True)
    with CpuClock(os.getpid()).running() as clock:
        for run in range(runs):
            report(f"{name}, {form}: {'measured' if run else 'for its results'}")
            with closing(TABLES[form][name](result / str(run))) as tables:
                stream, started = tables.arriving(source.streaming(spark)), time.perf_counter()
                ends = streamed(stream, tables.write_batch, used_since_now(clock))
                taken = time.perf_counter() - started
                sizes.append(tables.sizes)
                if not run:
                    tables.write_rows(result / "rows.parquet")
    return {"used": by_batch(ends, batches), "seconds": taken, "state": sizes[0]}

"""Sinks whose `foreachBatch` function commits to a Delta or Iceberg table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...generators.columns.forms.rows import Row
from ...witnesses.job.sinks.delta import DeltaTable
from ...witnesses.job.sinks.iceberg import IcebergTable
from .contracts import SinkContract, table_of
from .places import AFTER, BEFORE, CHECKED, Places

APPLICATION = "payments"
"""The application id in the transactions of a Delta table."""
_BATCH = "streaming.batch"
_DELTA_BATCHES = "https://docs.delta.io/latest/delta-streaming.html#idempotent-table-writes-in-foreachbatch"


def delta_append(rows: Any, batch: int, target: str, at: Places) -> None:
    """Append a micro-batch to a Delta table."""
    from deltalake import write_deltalake

    write_deltalake(target, table_of(rows), mode="append")


def delta_transaction(rows: Any, batch: int, target: str, at: Places) -> None:
    """Append a micro-batch to a Delta table in a transaction with the batch's number, unless the table already has that
    transaction.
    """
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    if DeltaTable.is_deltatable(target):
        done = DeltaTable(target).transaction_version(APPLICATION)
        if done is not None and done >= batch:
            return
    at.reach(CHECKED, batch)
    properties = CommitProperties(app_transactions=[Transaction(APPLICATION, batch)])
    write_deltalake(target, table_of(rows), mode="append", commit_properties=properties)


def _iceberg(target: str, schema: Any) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("sinks", uri=f"sqlite:///{target}/catalog.db", warehouse=f"file://{target}")
    catalog.create_namespace_if_not_exists("sinks")
    return catalog.create_table_if_not_exists("sinks.result", schema=schema)


def iceberg_append(rows: Any, batch: int, target: str, at: Places) -> None:
    """Append a micro-batch to an Iceberg table."""
    table = table_of(rows)
    _iceberg(target, table.schema).append(table)


def iceberg_batch(rows: Any, batch: int, target: str, at: Places) -> None:
    """Append a micro-batch to an Iceberg table and write its number into the snapshot, unless a snapshot already
    contains the number.
    """
    table = table_of(rows)
    found = _iceberg(target, table.schema)
    if any(snapshot.summary and snapshot.summary[_BATCH] == str(batch) for snapshot in found.snapshots()):
        return
    at.reach(CHECKED, batch)
    found.append(table, snapshot_properties={_BATCH: str(batch)})


def rows_of_delta(target: str) -> list[Row]:
    """Return the rows of a Delta table."""
    return DeltaTable().rows(target)


def rows_of_iceberg(target: str) -> list[Row]:
    """Return the rows of an Iceberg table."""
    return IcebergTable(table="result").rows(target) if Path(target).is_dir() else []


SINKS = [
    SinkContract(
        "delta-append",
        "foreachBatch appends to a Delta table by delta-rs",
        "at least once",
        _DELTA_BATCHES,
        rows_of_delta,
        delta_append,
        library="deltalake",
        extra="delta",
    ),
    SinkContract(
        "delta-txn",
        "foreachBatch appends to a Delta table by delta-rs, with the batch's number as the transaction's version",
        "exactly once",
        _DELTA_BATCHES,
        rows_of_delta,
        delta_transaction,
        places=(BEFORE, CHECKED, AFTER),
        library="deltalake",
        extra="delta",
    ),
    SinkContract(
        "iceberg-append",
        "foreachBatch appends to an Iceberg table by pyiceberg",
        "at least once",
        "https://iceberg.apache.org/docs/latest/spark-structured-streaming/",
        rows_of_iceberg,
        iceberg_append,
        library="pyiceberg",
        extra="iceberg",
    ),
    SinkContract(
        "iceberg-batch",
        "foreachBatch appends to an Iceberg table by pyiceberg, unless a snapshot already names the batch",
        "exactly once",
        "https://py.iceberg.apache.org/api/#snapshot-properties",
        rows_of_iceberg,
        iceberg_batch,
        places=(BEFORE, CHECKED, AFTER),
        library="pyiceberg",
        extra="iceberg",
    ),
]

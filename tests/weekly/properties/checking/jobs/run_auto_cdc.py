"""Spark's own AutoCDC as a sink under test, in a process whose Spark has a catalog that takes MERGE.

It runs the classes that a flow of `create_auto_cdc_flow` runs for each batch, in their order: the handlers as they are,
or step by step, so that a query can die between the two MERGEs. `python run_auto_cdc.py STEP` prints what came of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery
from streamproof import Input, Sink, check_job, invariants, scd1, scd2
from streamproof.properties.laws.all import invariants as laws_of_jobs

EVENTS = Input(
    "id string, at timestamp, seq int NOT NULL, op string, name string",
    key="id",
    values={"seq": [1, 2, 3, 4, 5], "op": ["I", "U", "D"], "name": ["x", "y", "z"]},
)
GIVEN: Any = {"keys": "id", "sequence_by": "seq", "deletes": "op = 'D'", "columns": "name"}
RULES = {1: scd1(**GIVEN), 2: scd2(**GIVEN, start="__START_AT", end="__END_AT")}
COLUMNS = {1: ("id", "name"), 2: ("id", "name", "__START_AT", "__END_AT")}
OTHERS = [law.of_jobs for law in laws_of_jobs() if law.of_jobs != "a crash"]


class Flow:
    """A flow of type 1 or 2 into a table of its own, whose events have the columns of `EVENTS`."""

    def __init__(self, kind: int, name: str) -> None:
        self.spark: Any = SparkSession.getActiveSession()
        self.spark.conf.set("spark.sql.catalog.merges", "MergeCatalog")
        jvm = self.spark._jvm
        cdc = jvm.org.apache.spark.sql.pipelines.autocdc
        columns, option = jvm.PythonUtils.toSeq, jvm.scala.Option
        left_out = columns([cdc.UnqualifiedColumnName(column) for column in ("at", "seq", "op")])
        arguments = cdc.ChangeArgs(
            columns([cdc.UnqualifiedColumnName("id")]),
            F.col("seq")._jc,
            self.of(cdc, f"ScdType$Type{kind}"),
            option.apply(F.expr("op = 'D'")._jc),
            option.apply(getattr(cdc, "ColumnSelection$ExcludeColumns")(left_out)),
            option.empty(),
        )
        integer = jvm.org.apache.spark.sql.types.DataType.fromDDL("seq int").apply(0).dataType()
        self.processor = getattr(cdc, f"Scd{kind}BatchProcessor")(arguments, integer)
        names = self.of(cdc, f"Scd{kind}BatchProcessor")
        self.target, self.auxiliary = (
            jvm.org.apache.spark.sql.catalyst.TableIdentifier(
                f"{name}_{table}", option.apply("d"), option.apply("merges")
            )
            for table in ("target", "auxiliary")
        )
        metadata = (
            f"{cdc.AutoCdcReservedNames.cdcMetadataColName()} {names.cdcMetadataColSchema(integer).catalogString()}"
        )
        tables = {self.target: f"id string, name string, {metadata}", self.auxiliary: f"id string, {metadata}"}
        if kind == 2:
            rows = f"id string, name string, {names.startAtColName()} int, {names.endAtColName()} int, {metadata}"
            tables = {self.target: rows, self.auxiliary: f"{rows}, {names.deletedByBatchIdColName()} bigint"}
        for table, schema in tables.items():
            if not self.spark.catalog.tableExists(table.quotedString()):
                self.spark.sql(f"CREATE TABLE {table.quotedString()} ({schema})")
        self.handler = getattr(cdc, f"Scd{kind}ForeachBatchHandler")(self.processor, self.auxiliary, self.target)

    @staticmethod
    def of(package: Any, name: str) -> Any:
        """Return an object of Scala's."""
        return getattr(getattr(package, f"{name}$"), "MODULE$")

    def table(self, table: Any) -> DataFrame:
        return self.spark.table(table.quotedString())  # type: ignore[no-any-return]


Write = Callable[[Flow, DataFrame, int], None]


def whole(flow: Flow, batch: DataFrame, number: int) -> None:
    flow.handler.execute(batch._jdf, number)


def steps_of_type_1(flow: Flow, batch: DataFrame, number: int) -> None:
    rows = flow.processor.reconcileMicrobatch(batch._jdf, flow.table(flow.auxiliary)._jdf)
    flow.processor.mergeMicrobatchOntoAuxiliaryTable(rows, flow.auxiliary)
    flow.processor.mergeMicrobatchOntoTarget(rows, flow.target)


def steps_of_type_2(flow: Flow, batch: DataFrame, number: int) -> None:
    found = flow.handler.reconcileMicrobatch(batch._jdf, number)
    rows, of_auxiliary = found.reconciledAndRoutedDf(), found.affectedRowsFromAuxiliaryTable()
    flow.processor.mergeRowsIntoAuxiliaryTable(rows, of_auxiliary, flow.auxiliary, number)
    flow.processor.mergeRowsIntoTargetTable(rows, found.affectedRowsFromTargetTable(), flow.target)


def sink(kind: int, write: Write) -> Sink:
    def name_of(folder: Path) -> str:
        return f"t{str(folder).encode().hex()}"

    def start(events: DataFrame, folder: Path) -> StreamingQuery:
        flow = Flow(kind, name_of(folder))  # not in a batch, which is to die between its MERGEs

        def of_batch(batch: DataFrame, number: int) -> None:
            write(flow, batch, number)

        writer = events.writeStream.foreachBatch(of_batch)
        return writer.option("checkpointLocation", str(folder / "checkpoint")).start()

    def read(folder: Path) -> list[dict[str, Any]]:
        flow = Flow(kind, name_of(folder))
        return [row.asDict() for row in flow.table(flow.target).select(*COLUMNS[kind]).collect()]

    return Sink(start, read)


def of_ties(kind: int, *batches: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names that the table has after batches of events of one key and sequence: (op, name)."""
    flow = Flow(kind, f"ties{kind}{batches!r}".encode().hex())
    for number, events in enumerate(batches):
        rows = [("a", None, 5, op, name) for op, name in events]
        whole(
            flow, flow.spark.createDataFrame(rows, "id string, at timestamp, seq int, op string, name string"), number
        )
    return [row["name"] for row in flow.table(flow.target).collect()]


def main(step: str) -> None:
    kind = int(step[-1])
    if step.startswith("agrees"):
        print(check_job(sink(kind, whole), EVENTS, expect=RULES[kind], histories=50, seconds=1200))
    elif step.startswith("dies"):
        write = steps_of_type_1 if kind == 1 else steps_of_type_2
        print(invariants(sink(kind, write), EVENTS, histories=10, without=OTHERS, seconds=1200))
    else:
        from streamproof.properties.witnesses.spark.session import spark_session

        spark_session(cores=2)
        one, other, delete = ("U", "x"), ("U", "y"), ("D", "x")
        print([of_ties(kind, [first], [then]) for first, then in ((one, delete), (delete, one), (one, other))])


if __name__ == "__main__":
    main(sys.argv[1])

"""Sinks whose rows Spark's tasks write: the file sink, `foreach`, the memory sink, and `foreachBatch` functions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...generators.columns.forms.rows import Row
from ...witnesses.job.rows import rows_of
from ...witnesses.job.sinks.files import JsonFiles, ParquetFiles
from ...witnesses.spark.session import spark_session
from .contracts import GUIDE, Own, SinkContract
from .places import AFTER, BEFORE, SETTLES_S, WITHIN, DyingPlace, Places

if TYPE_CHECKING:
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

_SINKS = f"{GUIDE}#output-sinks"
_DERBY = "org.apache.derby.iapi.jdbc.AutoloadedDriver"


def _files(form: str) -> Own:
    def start(writer: DataStreamWriter, target: str, at: Places) -> StreamingQuery:
        return writer.format(form).option("path", target).start()

    return start


def append(rows: Any, batch: int, target: str, at: Places) -> None:
    """Append a micro-batch to a folder of parquet files."""
    at.frame(rows).write.mode("append").parquet(target)


def overwrite(rows: Any, batch: int, target: str, at: Places) -> None:
    """Overwrite the folder that is named after a micro-batch."""
    at.frame(rows).write.mode("overwrite").parquet(f"{target}/batch={batch}")


def jdbc(rows: Any, batch: int, target: str, at: Places) -> None:
    """Append a micro-batch to a table of Derby, Spark's bundled database."""
    _quiet_derby()
    frame = at.frame(rows).withColumnRenamed("key", "name")
    frame.write.option("createTableColumnTypes", "name VARCHAR(9)").jdbc(
        _url(target), "result", "append", {"driver": _DERBY}
    )


def _quiet_derby() -> None:
    """Keep Derby from writing a log into the working directory."""
    java: Any = spark_session(any_provider=True)._jvm
    java.java.lang.System.setProperty("derby.stream.error.file", "/dev/null")


def _url(target: str) -> str:
    return f"jdbc:derby:{target};create=true"


def rows_of_derby(target: str) -> list[Row]:
    """Return the rows of the table `result`; return no rows if there is no database."""
    if not Path(target).is_dir():
        return []
    _quiet_derby()
    frame = spark_session(any_provider=True).read.jdbc(_url(target), "result", properties={"driver": _DERBY})
    return [{name.lower(): value for name, value in row.items()} for row in rows_of(frame)]


def for_each(writer: DataStreamWriter, target: str, at: Places) -> StreamingQuery:
    """Start a query with a `foreach` writer, which appends each row to a file of its partition."""
    Path(target).mkdir(exist_ok=True)

    class OfRows:  # a nested class, which Spark pickles by value
        def open(self, partition_id: int, epoch_id: int) -> bool:
            self.partition, self.batch, self.count = partition_id, epoch_id, 0
            self.file = Path(target, f"{partition_id}.json").open("a", encoding="utf-8")  # noqa: SIM115
            at.reach(BEFORE, epoch_id)
            return True

        def process(self, row: Any) -> None:
            if self.count == 1:
                self.settle(WITHIN)
            self.file.write(json.dumps(row.asDict()) + "\n")
            self.file.flush()
            self.count += 1

        def close(self, error: Any) -> None:
            self.file.close()
            if error is None:
                self.settle(AFTER)

        def settle(self, place: DyingPlace) -> None:
            if self.partition and (place, self.batch) == (at.place, at.batch):
                time.sleep(SETTLES_S * (not at.is_met))  # let the other partition's task end first
                at.reach(place, self.batch)

    return writer.foreach(OfRows()).start()


def memory(writer: DataStreamWriter, target: str, at: Places) -> StreamingQuery:
    """Start a query with Spark's memory sink, whose table is in the driver's memory."""
    return writer.format("memory").queryName(_table(target)).start()


def rows_of_memory(target: str) -> list[Row]:
    """Return the rows of the memory sink's table."""
    session = spark_session(any_provider=True)
    return [*rows_of(session.table(_table(target)))] if session.catalog.tableExists(_table(target)) else []


def _table(target: str) -> str:
    return f"sink_{abs(hash(target))}"


def rows_of_parquet(target: str) -> list[Row]:
    """Return the rows of Parquet files; if a file sink's log exists, read only the files that the log names."""
    return ParquetFiles().rows(target)


def rows_of_json(target: str) -> list[Row]:
    """Return the rows of JSON files; if a file sink's log exists, read only the files that the log names."""
    return JsonFiles().rows(target)


SINKS = [
    SinkContract(
        "file-parquet",
        "Spark's file sink, parquet",
        "exactly once",
        _SINKS,
        rows_of_parquet,
        own=_files("parquet"),
        places=(BEFORE, WITHIN, AFTER),
        writer="spark",
    ),
    SinkContract(
        "file-json",
        "Spark's file sink, JSON, with a log that is compacted every second batch",
        "exactly once",
        _SINKS,
        rows_of_json,
        own=_files("json"),
        places=(BEFORE, WITHIN, AFTER),
        writer="spark",
        settings=(("spark.sql.streaming.fileSink.log.compactInterval", "2"),),
    ),
    SinkContract(
        "append",
        "foreachBatch appends parquet files",
        "at least once",
        f"{GUIDE}#foreachbatch",
        rows_of_parquet,
        append,
        places=(BEFORE, WITHIN, AFTER),
        writer="spark",
    ),
    SinkContract(
        "overwrite",
        "foreachBatch overwrites a folder that is named after the batch",
        "exactly once",
        f"{GUIDE}#foreachbatch",
        rows_of_parquet,
        overwrite,
        places=(BEFORE, WITHIN, AFTER),
        writer="spark",
    ),
    SinkContract(
        "jdbc",
        "foreachBatch appends to Derby by Spark's JDBC writer",
        "at least once",
        "https://spark.apache.org/docs/latest/sql-data-sources-jdbc.html",
        rows_of_derby,
        jdbc,
        places=(BEFORE, WITHIN, AFTER),
        writer="spark",
    ),
    SinkContract(
        "foreach",
        "foreach appends each row to a file of its partition",
        "at least once",
        f"{GUIDE}#foreach",
        rows_of_json,
        own=for_each,
        places=(BEFORE, WITHIN, AFTER),
        writer="spark",
    ),
    SinkContract(
        "memory",
        "Spark's memory sink",
        "nothing",
        _SINKS,
        rows_of_memory,
        own=memory,
        places=(BEFORE, WITHIN),
        writer="spark",
        memory=True,
    ),
]

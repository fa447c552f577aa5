"""Spark without a JVM: PySpark's own classes, over frames of Python rows and queries that keep Spark's checkpoints.

A frame's plan is that of `given_plans`, as Spark analyzes it. A query runs each file of its sources as a micro-batch;
it writes offsets before it and a commit behind it, keeps a version of its state for each, repeats a micro-batch without
a commit, and runs one without data once the watermark has moved.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import traceback
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.errors.utils
from given_plans import Expression, Operator, alias, column, literal, project, watermark
from pyspark import SparkContext
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as T
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming import DataStreamWriter
from streamproof.properties.generators.columns.schemas import _of_ddl
from streamproof.properties.witnesses.spark import session as session_module

Rows = list[dict[str, Any]]
PARTITIONS = 2
TIME = ""
"""The name under which a row keeps the event time of its watermark."""
_numbers = itertools.count(1)


@dataclass
class Run:
    """A micro-batch that runs: the rows of its files, the watermark, and the state that it finds and leaves."""

    rows: Mapping[int, Rows]
    watermark_us: int | None
    state: dict[str, Any]
    dropped: int = 0
    latest_us: int | None = None
    least_us: int | None = None


@dataclass(frozen=True)
class JColumn:
    """A column of Spark's JVM: the expression that it is of a frame, once the frame is known."""

    of: Callable[[JFrame], Expression]
    name: str = ""
    kind: T.DataType | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "as":
            return lambda called: JColumn(
                lambda frame: alias(self.of(frame), called, next(_numbers)), called, self.kind
            )
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *others: called(name, self, *others)

    def cast(self, kind: Any) -> JColumn:
        kind = _of_ddl(f"x {kind}")["x"].dataType if isinstance(kind, str) else kind
        made = lambda frame: Expression("Cast", self.of(frame), dataType=kind.typeName(), child=0)  # noqa: E731
        return JColumn(made, self.name, kind)


def called(name: str, *given: Any) -> JColumn:
    """Return the column that a function of Spark's makes."""
    if name == "col":
        return JColumn(lambda frame: frame.column(given[0]), given[0].strip("`"))
    if name == "lit":
        return JColumn(lambda frame: constant(given[0]), str(given[0]), KINDS.get(type(given[0]), T.StringType()))
    kind = CLASSES.get(name, name[0].upper() + name[1:])
    given = tuple(given[0]) if given and isinstance(given[0], list) else given  # a sequence of columns
    below = [one if isinstance(one, JColumn) else called("lit", one) for one in given]
    return JColumn(lambda frame: Expression(kind, *(one.of(frame) for one in below)), name)


def constant(value: Any) -> Expression:
    made = literal(value, KINDS.get(type(value), T.StringType()).typeName())
    made.constant = value
    return made


KINDS: dict[type, T.DataType] = {bool: T.BooleanType(), int: T.IntegerType(), float: T.DoubleType()}
CLASSES = {
    "lt": "LessThan",
    "gt": "GreaterThan",
    "spark_partition_id": "SparkPartitionID",
    "element_at": "ElementAt",
}
VALUES: dict[str, Callable[..., Any]] = {
    "Alias": lambda value: value,
    "Cast": lambda value: value,
    "Not": lambda value: not value,
    "Or": lambda one, other: one or other,
    "And": lambda one, other: one and other,
    "LessThan": lambda one, other: one < other,
    "GreaterThan": lambda one, other: one > other,
    "EqualTo": lambda one, other: one == other,
    "SparkPartitionID": lambda: 0,
    "Plus": lambda one, other: one + other,
    "Pmod": lambda one, other: one % other,
    "Array": lambda *values: [*values],
    "ElementAt": lambda values, number: values[number - 1],
}


def value_of(expression: Expression, row: Mapping[str, Any]) -> Any:
    if expression.kind == "AttributeReference":
        return row[expression.node["name"]]
    if expression.kind == "Literal":
        return expression.constant
    return VALUES[expression.kind](*(value_of(one, row) for one in expression.below))


@dataclass(frozen=True)
class JFrame:
    """A frame of Spark's JVM.

    Attributes:
        spark: Its session.
        kinds: The types of its columns.
        plan: Its analyzed plan.
        rows: Its rows in a micro-batch.
        sources: The folders of its streaming sources, by the number of each read.
        state: Whether it has state.
    """

    spark: Session
    kinds: T.StructType
    plan: Operator
    rows: Callable[[Run], Rows]
    sources: Mapping[int, Path] = field(default_factory=dict)
    state: bool = False

    def schema(self) -> Any:
        return SimpleNamespace(json=self.kinds.json)

    def isStreaming(self) -> bool:
        return bool(self.sources)

    def queryExecution(self) -> Any:
        return SimpleNamespace(analyzed=lambda: self.plan, optimizedPlan=lambda: self.plan)

    def column(self, name: str) -> Expression:
        """Return the column of a name.

        Raises:
            AnalysisException: There is none.
        """
        wanted = name.strip("`").rpartition(".")[2].casefold()
        for one in self.plan.columns:
            if one.name().casefold() == wanted:
                return column(one.name(), one.exprId().id())
        said = ", ".join(f"`{one}`" for one in self.kinds.names)
        raise AnalysisException(
            f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `{name}` cannot "
            f"be resolved. Did you mean one of the following? [{said}].",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            {"objectName": f"`{name}`", "suggestion": said},
        )

    def apply(self, name: str) -> JColumn:
        return called("col", name)

    def kind_of(self, given: JColumn, expression: Expression) -> T.DataType:
        while expression.kind == "Alias":
            expression = expression.below[0]
        if expression.kind == "AttributeReference":
            return self.kinds[expression.node["name"]].dataType
        return given.kind or (T.StringType() if expression.kind == "ElementAt" else T.BooleanType())

    def select(self, columns: Sequence[JColumn]) -> JFrame:
        made = [one.of(self) for one in columns]
        kinds = T.StructType(
            [T.StructField(one.node["name"], self.kind_of(jc, one)) for jc, one in zip(columns, made, strict=True)]
        )

        def rows(run: Run) -> Rows:
            return [
                {one: row[one] for one in (TIME,) if one in row}
                | {one.node["name"]: value_of(one, row) for one in made}
                for row in self.rows(run)
            ]

        return replace(self, kinds=kinds, plan=project(self.plan, *made), rows=rows)

    def withColumn(self, name: str, column: JColumn) -> JFrame:
        others = [called("col", one) for one in self.kinds.names if one != name]
        return self.select([*others, getattr(column, "as")(name)])

    def withColumnRenamed(self, name: str, other: str) -> JFrame:
        columns = [called("col", one) for one in self.kinds.names]
        return self.select([getattr(one, "as")(other) if one.name == name else one for one in columns])

    def drop(self, names: Sequence[str]) -> JFrame:
        return self.select([called("col", one) for one in self.kinds.names if one not in names])

    def filter(self, condition: JColumn) -> JFrame:
        made = condition.of(self)
        plan = Operator("Filter", self.plan, expressions=[made], condition=made)
        return replace(self, plan=plan, rows=lambda run: [row for row in self.rows(run) if value_of(made, row)])

    def unionByName(self, other: JFrame, missing: bool) -> JFrame:
        names = self.kinds.names
        plan = Operator("Union", self.plan, other.plan)
        sources = {**self.sources, **other.sources}
        rows = lambda run: [{name: row.get(name) for name in names} for one in (self, other) for row in one.rows(run)]  # noqa: E731
        return replace(self, plan=plan, rows=rows, sources=sources, state=self.state or other.state)

    def join(self, other: JFrame, *_: Any) -> JFrame:
        """Join two frames as far as their columns: no row is computed."""
        columns = [*self.plan.columns, *other.plan.columns]
        plan = Operator("Join", self.plan, other.plan, output=columns)
        kinds = T.StructType([*self.kinds, *other.kinds])
        return replace(self, kinds=kinds, plan=plan, sources={**self.sources, **other.sources})

    def withWatermark(self, name: str, delay: str) -> JFrame:
        number, unit = delay.split()
        delay_us = int(number) * {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}[unit.rstrip("s")]

        def rows(run: Run) -> Rows:
            found = self.rows(run)
            times = [us_of(row[name]) for row in found if row[name] is not None]
            if times:
                run.latest_us = max(times) - delay_us if run.latest_us is None else run.latest_us
                run.least_us = min([*times, *[run.least_us] * (run.least_us is not None)])
            return [{**row, TIME: us_of(row[name])} for row in found]

        return replace(self, plan=watermark(self.plan, self.column(name), delay_us // 1_000), rows=rows)

    def dropDuplicates(self, names: Sequence[str]) -> JFrame:
        """Keep the first row of each key; keys of the state are spread over partitions."""

        def rows(run: Run) -> Rows:
            kept = []
            for row in self.rows(run):
                key = repr([row[name] for name in names])
                if run.watermark_us is not None and row.get(TIME, 0) <= run.watermark_us:
                    run.dropped += 1
                elif key not in run.state:
                    run.state[key] = True
                    kept.append(row)
            return kept

        keys = [self.column(name) for name in names]
        plan = Operator("Deduplicate", self.plan, expressions=keys, keys=keys)
        return replace(self, plan=plan, rows=rows, state=True)

    def createOrReplaceTempView(self, name: str) -> None:
        self.spark.views[name] = self

    def isEmpty(self) -> bool:
        return not self.rows(NO_RUN)

    def __getattr__(self, name: str) -> Any:
        if name != "as":
            raise AttributeError(name)
        return lambda called: replace(self, plan=Operator("SubqueryAlias", self.plan, name=called))

    def writeStream(self) -> JWriter:
        return JWriter(self)

    def write(self) -> JBatchWriter:
        return JBatchWriter(self.spark)

    def arrow(self) -> pa.Table:
        """Return its rows, timestamps in UTC."""
        rows = [{name: row[name] for name in self.kinds.names} for row in self.rows(NO_RUN)]
        return pa.Table.from_pylist(rows, to_arrow_schema(self.kinds, timezone="UTC"))


NO_RUN = Run({}, None, {})


def us_of(time: datetime | None) -> int:
    return 0 if time is None else round(time.replace(tzinfo=UTC).timestamp() * 1_000_000)


def time_of(us: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


@dataclass
class JReader:
    """A reader of Spark's JVM."""

    spark: Session
    streams: bool
    said: dict[str, str] = field(default_factory=dict)
    kinds: T.StructType | None = None

    def format(self, name: str) -> JReader:
        self.said["format"] = name
        return self

    def option(self, key: str, value: str) -> JReader:
        self.said[key] = value
        return self

    def schema(self, kinds: Any) -> JReader:
        self.kinds = _of_ddl(kinds) if isinstance(kinds, str) else kinds
        return self

    def parquet(self, path: Any) -> JFrame:
        return self.format("parquet").load(path)

    def load(self, path: Any = None) -> JFrame:
        target = Path(path if isinstance(path, str) else path[0]) if path is not None else None
        if not self.streams:
            if target is None or not target.exists():
                raise AnalysisException(f"[PATH_NOT_FOUND] Path does not exist: {path}.", "PATH_NOT_FOUND", {})
            return self.spark.of_table(pq.read_table(target, partitioning=None))
        if self.kinds is None:
            raise AnalysisException(f"[NO_SCHEMA] {self.said.get('format')} has no schema", "NO_SCHEMA", {})
        number, kinds = next(_numbers), self.kinds
        columns = [column(name, next(_numbers)) for name in kinds.names]
        path_of = SimpleNamespace(isDefined=lambda: target is not None, get=lambda: str(target))
        self.spark.most_files[number] = int(self.said.get("maxFilesPerTrigger", 1))
        source = SimpleNamespace(options=lambda: SimpleNamespace(get=lambda name: path_of))
        plan = Operator("StreamingRelation", output=columns, streams=True, dataSource=source)
        return JFrame(self.spark, kinds, plan, lambda run: run.rows.get(number, []), {number: target or Path()})

    def table(self, name: str) -> JFrame:
        return self.spark.table_of(name)


@dataclass
class JWriter:
    """A streaming writer of Spark's JVM."""

    frame: JFrame
    said: dict[str, Any] = field(default_factory=lambda: {"outputMode": "append", "trigger": "ProcessingTime"})

    def __getattr__(self, name: str) -> Any:
        if name not in ("format", "outputMode", "queryName", "option", "trigger", "function", "of_rows", "partitionBy"):
            raise AttributeError(name)

        def say(*given: Any) -> JWriter:
            self.said[given[0] if name == "option" else name] = given[-1]
            return self

        return say

    def start(self, path: str | None = None) -> JQuery:
        if path is not None:
            self.said["path"] = path
        query = JQuery(self.frame, self.said)
        self.frame.spark.started.append(query)
        return query

    toTable = start


@dataclass
class JBatchWriter:
    """A batch writer of Spark's JVM, which notes what it would write in `Session.wrote`."""

    spark: Session
    said: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def say(*given: Any) -> JBatchWriter:
            if name in ("save", "parquet", "saveAsTable", "insertInto"):
                self.spark.wrote.append((name, given[0] if given else self.said.get("path"), self.said))
            self.said[given[0] if name == "option" else name] = given[-1] if given else None
            return self

        return say


class JQuery:
    """A query of Spark's JVM, which runs while its end is awaited."""

    def __init__(self, frame: JFrame, said: Mapping[str, Any]) -> None:
        self.frame, self.said, self.is_active = frame, said, True
        root = said.get("checkpointLocation") or str(frame.spark.folder / f"temporary-{next(_numbers)}")
        self.checkpoint, self.number = Path(str(root).removeprefix("file:")), next(_numbers)
        for name in ("offsets", "commits", "state"):
            (self.checkpoint / name).mkdir(parents=True, exist_ok=True)
        self.said_of: list[dict[str, Any]] = []
        self.watermark_us = self.watermark_kept()

    def id(self) -> Any:
        return SimpleNamespace(toString=lambda: str(self.number))

    def streamingQuery(self) -> JQuery:
        return self

    def analyzedPlan(self) -> Operator:
        return self.frame.plan

    def resolvedCheckpointRoot(self) -> str:
        return f"file:{self.checkpoint}"

    def trigger(self) -> Any:
        return SimpleNamespace(toString=lambda: self.said["trigger"])

    def outputMode(self) -> Any:
        return SimpleNamespace(toString=lambda: str(self.said.get("outputMode", "append")).title())

    def isActive(self) -> bool:
        return self.is_active

    def stop(self) -> None:
        self.is_active = False

    def recentProgress(self) -> list[Any]:
        return [SimpleNamespace(json=lambda one=one: json.dumps(one)) for one in self.said_of]

    def awaitTermination(self, *ms: int) -> None:
        try:
            while (files := self.next_files()) is not None:
                self.micro_batch(files)
        except BaseException:
            self.is_active = False
            said = traceback.format_exc()
            raise StreamingQueryException(f"[STREAM_FAILED] Query terminated with exception: {said}") from None

    processAllAvailable = awaitTermination

    @property
    def last(self) -> int:
        return max((int(path.name) for path in (self.checkpoint / "commits").glob("[0-9]*")), default=-1)

    def offsets(self, number: int) -> Path:
        return self.checkpoint / "offsets" / str(number)

    def watermark_kept(self) -> int | None:
        path = self.checkpoint / "commits" / str(self.last)
        return json.loads(path.read_text())["watermark_us"] if path.exists() else None

    def next_files(self) -> list[list[str]] | None:
        """Return the files of each source in the next micro-batch; None: there is none."""
        number = self.last + 1
        if (logged := self.offsets(number)).exists():
            return json.loads(logged.read_text())["files"]  # type: ignore[no-any-return]
        before = [json.loads(self.offsets(one).read_text()) for one in range(number)]
        files: list[list[str]] = []
        for index, (source, folder) in enumerate(self.frame.sources.items()):
            taken = {name for one in before for name in one["files"][index]}
            there = sorted(folder.glob("*.parquet"), key=lambda path: (path.stat().st_mtime, path.name))
            files.append([path.name for path in there if path.name not in taken][: self.frame.spark.most_files[source]])
        moved = self.frame.state and bool(before) and before[-1]["watermark_us"] != self.watermark_us
        return files if any(files) or moved else None

    def micro_batch(self, files: list[list[str]]) -> None:
        number, sources = self.last + 1, self.frame.sources
        self.offsets(number).write_text(json.dumps({"files": files, "watermark_us": self.watermark_us}))
        rows = {
            source: [row for name in names for row in pq.read_table(folder / name).to_pylist()]
            for (source, folder), names in zip(sources.items(), files, strict=True)
        }
        run = Run(rows, self.watermark_us, self.state_at(number))
        emitted = self.frame.rows(run)
        self.write(emitted, number)
        if self.frame.state:
            self.keep(run.state, number + 1)
        if run.latest_us is not None:
            self.watermark_us = max(run.latest_us, self.watermark_us or 0)
        (self.checkpoint / "commits" / str(number)).write_text(json.dumps({"watermark_us": self.watermark_us}))
        times = {} if run.watermark_us is None else {"watermark": time_of(run.watermark_us)}
        times |= {} if run.least_us is None else {"min": time_of(run.least_us)}
        of_state = [{"numRowsTotal": len(run.state), "numRowsDroppedByWatermark": run.dropped}] * self.frame.state
        said = {"batchId": number, "timestamp": time_of(0), "eventTime": times, "stateOperators": of_state}
        self.said_of.append(said)

    def of_partition(self, partition: int, version: int) -> Path:
        return self.checkpoint / "state" / "0" / str(partition) / f"{version}.delta"

    def state_at(self, version: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for partition in range(PARTITIONS) if self.frame.state and version else ():
            found |= json.loads(self.of_partition(partition, version).read_text())
        return found

    def keep(self, state: Mapping[str, Any], version: int) -> None:
        for partition in range(PARTITIONS):
            path = self.of_partition(partition, version)
            path.parent.mkdir(parents=True, exist_ok=True)
            own = {key: value for key, value in state.items() if partition_of(key) == partition}
            path.write_text(json.dumps(own))

    def write(self, rows: Rows, number: int) -> None:
        if (function := self.said.get("function")) is not None:
            kinds, spark = self.frame.kinds, self.frame.spark
            table = pa.Table.from_pylist(
                [{name: row[name] for name in kinds.names} for row in rows], to_arrow_schema(kinds, timezone="UTC")
            )
            function(DataFrame(spark.of_table(table), spark), number)
        elif (writer := self.said.get("of_rows")) is not None:
            for partition in range(PARTITIONS):
                own = [row for row in rows if partition_of(repr([*row.values()])) == partition]
                self.write_rows(
                    writer, [Row(**{k: v for k, v in row.items() if k != TIME}) for row in own], partition, number
                )
        elif (path := self.said.get("path")) is not None:
            self.write_files(Path(path), rows, number)

    def write_rows(self, writer: Any, rows: Sequence[Row], partition: int, number: int) -> None:
        if not hasattr(writer, "process"):
            for row in rows:
                writer(row)
            return
        error: BaseException | None = None
        try:
            if getattr(writer, "open", lambda *_: True)(partition, number):
                for row in rows:
                    writer.process(row)
        except Exception as raised:
            error = raised
        getattr(writer, "close", lambda error: None)(error)
        if error is not None:
            raise error

    def write_files(self, path: Path, rows: Rows, number: int) -> None:
        log = path / "_spark_metadata" / str(number)
        if log.exists():
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        plain = [{name: value for name, value in row.items() if name != TIME} for row in rows]
        made = path / f"part-{number}-{next(_numbers)}.parquet"
        pq.write_table(pa.Table.from_pylist(plain, to_arrow_schema(self.frame.kinds, timezone="UTC")), made)
        log.write_text("v1\n" + json.dumps({"path": made.as_uri(), "action": "add", "size": 1}))


def partition_of(key: str) -> int:
    return zlib.crc32(key.encode()) % PARTITIONS


class Conf:
    """The settings of a session of Spark's JVM."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.fixed: set[str] = set()

    def get(self, name: str, *default: Any) -> Any:
        return self.values.get(name, *default)

    def set(self, name: str, value: Any) -> None:
        self.values[name] = str(value)

    def unset(self, name: str) -> None:
        self.values.pop(name, None)

    def isModifiable(self, name: str) -> bool:
        return name not in self.fixed

    def settings(self) -> dict[str, str]:
        return self.values

    def clone(self) -> Conf:
        copied = Conf()
        copied.values = {**self.values}
        return copied


class Jvm:
    """The parts of Spark's JVM that PySpark asks for by name."""

    PythonUtils = SimpleNamespace(toSeq=list, toArray=list)
    classes: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name in ("functions", "org.apache.spark.sql.functions"):
            return _Functions()
        if name.endswith(".Trigger"):
            return _Triggers()
        if name == "java":
            handle = SimpleNamespace(current=lambda: SimpleNamespace(pid=os.getpid))
            return SimpleNamespace(lang=SimpleNamespace(ProcessHandle=handle))
        if name == "org":
            loadable = SimpleNamespace(classIsLoadable=lambda text: text in self.classes)
            util = SimpleNamespace(Utils=loadable)
            return SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(util=util)))
        raise AttributeError(name)


class _Functions:
    def __getattr__(self, name: str) -> Callable[..., JColumn]:
        return lambda *given: called(name, *given)


class _Triggers:
    def __getattr__(self, name: str) -> Callable[..., str]:
        return lambda *given: f"{name}Trigger"


_READS = re.compile(r"\b(?:from|join)\s+(stream\s+)?([\w.`]+)", re.IGNORECASE)


class Session(SparkSession):
    """A session without a JVM.

    Attributes:
        views: The frames of its views and tables, by name.
        started: The queries that it has started.
        most_files: The number of files that a micro-batch takes of a source, by the number of each read.
        wrote: The batch writes: the method, the target and what else the writer was told.
        folder: Where its queries have temporary checkpoints.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.views, self.started, self.settings = folder, dict[str, JFrame](), list[JQuery](), Conf()
        self.wrote: list[tuple[str, str | None, dict[str, Any]]] = []
        self.most_files: dict[int, int] = {}
        self._jvm = Jvm()
        stopped = SimpleNamespace(isStopped=lambda: False)
        self._jsc = SimpleNamespace(sc=lambda: stopped)
        self._sc: Any = Context(self)
        parser = SimpleNamespace(parsePlan=self.parsed)
        optimizer = SimpleNamespace(execute=lambda plan: plan)
        state = SimpleNamespace(conf=lambda: self.settings, sqlParser=lambda: parser, optimizer=lambda: optimizer)
        catalog = SimpleNamespace(dropTempView=self.views.pop, tableExists=lambda name: name in self.views)
        self._jsparkSession: Any = SimpleNamespace(
            conf=lambda: self.settings,
            sessionState=lambda: state,
            catalog=lambda: catalog,
            readStream=lambda: JReader(self, True),
            read=lambda: JReader(self, False),
            table=self.table_of,
            sql=lambda text, arguments: self.ran(text),
            version=lambda: "4.3.0",
            parseDataType=lambda text: T._parse_datatype_json_string(text),
            streams=lambda: SimpleNamespace(active=lambda: [one for one in self.started if one.is_active]),
        )

    def createDataFrame(self, data: Any, schema: Any = None, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        if not isinstance(data, pa.Table):
            kinds = _of_ddl(schema) if isinstance(schema, str) else schema
            data = pa.Table.from_pylist([*data], to_arrow_schema(kinds, timezone="UTC"))
        return DataFrame(self.of_table(data), self)

    def of_table(self, table: pa.Table) -> JFrame:
        kinds = from_arrow_schema(table.schema)
        columns = [column(name, next(_numbers)) for name in kinds.names]
        plan = Operator("LocalRelation", output=columns, streams=False)
        return JFrame(self, kinds, plan, lambda run: table.to_pylist())

    def table_of(self, name: str) -> JFrame:
        found = self.views.get(name.replace("`", ""))
        if found is None:
            said = f"[TABLE_OR_VIEW_NOT_FOUND] The table or view `{name}` cannot be found."
            raise AnalysisException(said, "TABLE_OR_VIEW_NOT_FOUND", {"relationName": f"`{name}`"})
        return found

    def parsed(self, text: str) -> Operator:
        """Return a statement's plan, as Spark's parser makes it, of the tables that it reads."""

        def relation(found: re.Match[str]) -> Operator:
            known = lambda at: SimpleNamespace(isDefined=lambda: True, get=lambda: at)  # noqa: E731
            origin = SimpleNamespace(
                startIndex=lambda: known(found.start(2)), stopIndex=lambda: known(found.end(2) - 1)
            )
            parts = [part.strip("`") for part in found[2].split(".")]
            streams = found[1] is not None
            given: Any = {"origin": origin, "multipartIdentifier": parts, "innerChildren": []}
            return Operator("UnresolvedRelation", output=[], streams=streams, **given)

        return Operator("Project", *map(relation, _READS.finditer(text)), output=[], innerChildren=[])

    def ran(self, text: str) -> JFrame:
        """Return the frame of a statement: all rows of the tables that it reads."""
        frames = [self.table_of(found[2].replace("`", "")) for found in _READS.finditer(text)]
        if not frames:
            return self.of_table(pa.table({"1": pa.array([], pa.int32())}))
        first, *others = frames
        for other in others:
            first = first.unionByName(other, True)
        return first


class Context(SparkContext):
    """The context of a session without a JVM."""

    def __init__(self, session: Session) -> None:
        self._jvm, self._jsc, self.session = session._jvm, session._jsc, session  # type: ignore[assignment]

    def getConf(self) -> Any:
        return SimpleNamespace(contains=lambda name: False, getAll=list)

    def _parse_ddl(self, text: str) -> T.DataType:
        try:
            return _of_ddl(text)
        except Exception:
            return _of_ddl(f"x {text}")["x"].dataType  # type: ignore[index]


def _for_each_batch(writer: DataStreamWriter, func: Callable[..., None]) -> DataStreamWriter:
    writer._jwrite.function(func)
    return writer


def _for_each(writer: DataStreamWriter, f: Any) -> DataStreamWriter:
    writer._jwrite.of_rows(f)
    return writer


@contextlib.contextmanager
def memory_session(folder: Path) -> Iterator[Session]:
    """Give a session without a JVM, which is PySpark's active one within the block."""
    session = Session(folder)

    def active(*_: Any, **__: Any) -> Session:
        return session

    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (SparkSession, "_instantiatedSession", session),
            (SparkSession, "getActiveSession", active),
            (SparkSession, "_getActiveSessionOrCreate", active),
            (SparkContext, "_active_spark_context", session._sc),
            (DataFrame, "toArrow", lambda frame: frame._jdf.arrow()),
            (DataFrame, "collect", lambda frame: [Row(**row) for row in frame._jdf.arrow().to_pylist()]),
            (DataFrame, "dropDuplicates", lambda frame, keys: DataFrame(frame._jdf.dropDuplicates(keys), session)),
            (DataStreamWriter, "foreachBatch", _for_each_batch),
            (DataStreamWriter, "foreach", _for_each),
            (session_module, "spark_session", active),
            (pyspark.errors.utils, "is_debugging_enabled", lambda: False),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield session

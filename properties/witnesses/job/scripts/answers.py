"""The methods of PySpark's classes that the check replaces while a script runs."""

from __future__ import annotations

import builtins
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

from py4j.java_gateway import JavaPackage
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.streaming import StreamingContext

from ....system.visible import visible
from ...spark.platform.connect import classes
from .avro import avro_as_json
from .lifting import Lift, WaitsForQueries
from .notebooks import display
from .reads import FILES, Read
from .statements import CHANGES, SETTING, VIEW
from .writes import Idle, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Methods = dict[str, Any]
"""The replaced methods of a class, by name."""

TABLES = ("saveAsTable", "insertInto")
SAVES = ("save", "jdbc", *TABLES, *FILES)
SAVES_V2 = ("append", "create", "createOrReplace", "overwrite", "overwritePartitions", "replace")
CATALOG = ("createDatabase", "createExternalTable", "createTable", "dropDatabase", "dropTable", "truncateTable")
REFRESHING = ("recoverPartitions", "refreshByPath", "refreshTable", "setCurrentCatalog", "setCurrentDatabase")
WRITER = ["foreach", "foreachBatch", "format", "option", "outputMode", "queryName", "start", "toTable", "trigger"]
_OWN = f"{__name__.partition('.')[0]}.properties."


def answers(lift: Lift) -> Iterator[tuple[Any, Methods]]:
    """Yield the classes whose methods the check replaces while the script runs, each class with the new methods."""
    seen, nothing = classes(), _returning(None)
    yield seen.stream_reader, _reader(lift, seen.stream_reader, lift.stream)
    yield seen.reader, _reader(lift, seen.reader, lift.table)
    yield DataStreamWriter, _Writer(lift).methods()
    if lift.asked is None:
        yield seen.writer, {name: _skipping(lift, name) for name in SAVES if hasattr(seen.writer, name)}
        yield seen.writer_v2, {name: _skipping(lift, name) for name in SAVES_V2}
    else:
        yield seen.writer, _guards(lift, seen.writer)
    for builder in {SparkSession.Builder, seen.session.Builder}:
        yield builder, {"getOrCreate": lambda builder: lift.configured(builder._options)}
    of_session = {"stop": nothing, "newSession": _returning(lift.spark), **_session(lift, seen.session)}
    yield seen.session, {name: method for name, method in of_session.items() if hasattr(seen.session, name)}
    if seen.session is SparkSession:
        context = vars(lift.spark.sparkContext)
        yield JavaPackage, {"__call__": _of_jvm}
        adding = {name: lambda _, path, *more, **named: lift.add_file(path) for name in ("addFile", "addPyFile")}
        quiet = dict.fromkeys(("setCheckpointDir", "setLogLevel", "stop"), nothing)
        begin = {"__init__": lambda own, *_, **__: own.__dict__.update(context)}
        yield SparkContext, {**begin, **quiet, **adding}
    yield seen.settings, {"set": lambda conf, key, value: lift.set(key, value)}
    ending = {"awaitTermination": _returning(True), "processAllAvailable": nothing, "stop": nothing}
    yield StreamingQuery, ending
    yield seen.queries, {"awaitAnyTermination": _returning(True), "addListener": nothing}
    yield seen.frame, _views(lift, seen.frame)
    yield seen.catalog, _catalog(lift, seen.catalog)
    yield time, {"sleep": _sleeping(lift, time.sleep)}
    yield builtins, {"input": _asking(lift)}
    yield StreamingContext, {"__init__": _of_dstreams(lift)}
    yield from avro_as_json(lift)
    # only if the script has imported it, because the import takes half a second
    if "pyspark.ml.util" in sys.modules or lift.source.mentions("pyspark.ml"):
        yield from _models(lift)


def _of_jvm(package: Any, *arguments: Any) -> Any:
    """Return the result of a call of a missing Java class: a function that encrypts a text returns the text
    unchanged.
    """
    if package._fqn.endswith("EventHubsUtils.encrypt"):
        return arguments[0]
    raise TypeError(f"Spark has no class for {package._fqn} here")


def _asking(lift: Lift) -> Callable[..., str]:
    def ask(prompt: object = "", /) -> str:
        said = f", {visible(str(prompt).strip())!r}" if prompt else ""
        raise lift.refuse(
            f"line {lift.line} of {lift.source.where} asks for input{said}: make the script read an argument or an "
            "environment variable instead"
        )

    return ask


def _of_dstreams(lift: Lift) -> Callable[..., None]:
    def begin(*_: Any, **__: Any) -> None:
        raise lift.refuse(
            f"line {lift.line} of {lift.source.where} creates a StreamingContext: a check runs queries of "
            "spark.readStream, and no DStreams"
        )

    return begin


def _returning(value: Any) -> Callable[..., Any]:
    def method(*arguments: Any, **named: Any) -> Any:
        return value

    return method


def _reader(lift: Lift, owner: Any, answer: Callable[[Read], DataFrame | None]) -> Methods:
    """Return the methods of a reader class that record each read, and return the check's rows on `load`."""

    def read_of(reader: Any) -> Read:
        read: Read = reader.__dict__.setdefault("_streamproof_read", Read())
        return read

    def format(reader: Any, source: str, *, original: Any = owner.format) -> Any:
        read_of(reader).format = source.casefold()
        return original(reader, source)

    def schema(reader: Any, schema: Any, *, original: Any = owner.schema) -> Any:
        read_of(reader).schema = schema
        return original(reader, schema)

    def option(reader: Any, key: str, value: Any, *, original: Any = owner.option) -> Any:
        read_of(reader).options[key.casefold()] = str(value)
        return original(reader, key, value)

    def options(reader: Any, **options: Any) -> Any:
        for key, value in options.items():
            option(reader, key, value)
        return reader

    def loading(name: str) -> Callable[..., Any]:
        original = getattr(owner, name)

        def load(reader: Any, target: Any = None, *arguments: Any, **named: Any) -> Any:
            given = [target] * (target is not None)
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.startswith(_OWN) and caller != __name__:  # a read by streamproof's own code isn't the script's
                return original(reader, *given, *arguments, **named)
            read = read_of(reader)
            read.line, read.where = lift.line, lift.source.where
            read.load(name, target, arguments, named)
            if (frame := answer(read)) is not None:
                return frame
            if name != "table":
                given = [lift.instead_of(str(one)) or lift.beside(one) for one in given]
            return lift.batch(read, partial(original, reader, *given, *arguments, **named))

        return load

    loads = [name for name in ("load", "table", "changes", "jdbc", *FILES) if hasattr(owner, name)]
    own = {"format": format, "schema": schema, "option": option, "options": options}
    return {**own, **{name: loading(name) for name in loads}}


class _Writer:
    """The methods of the streaming writer class that record each write and its target."""

    def __init__(self, lift: Lift) -> None:
        self.lift = lift
        self.own: Methods = {name: getattr(DataStreamWriter, name) for name in ("__init__", *WRITER)}

    def methods(self) -> Methods:
        lift, own = self.lift, self.own

        def options(writer: Any, **options: Any) -> Any:
            for key, value in options.items():
                writer.option(key, value)
            return writer

        def option(writer: Any, key: str, value: Any) -> Any:
            if key.casefold() == "path":
                self.write_of(writer).target = str(value)
                return writer  # `start` gets the path as its argument
            return own["option"](writer, key, value)

        def foreach_batch(writer: Any, func: Callable[..., Any]) -> Any:
            self.write_of(writer).function = func
            return writer if lift.asked is None else own["foreachBatch"](writer, _guarded(lift, func))

        def foreach(writer: Any, f: Any) -> Any:
            self.write_of(writer).of_rows = f
            return writer if lift.asked is None else own["foreach"](writer, f)

        def start(writer: Any, path: str | None = None, format: str | None = None, **named: Any) -> StreamingQuery:
            return self.begin(writer, "start", path, {"format": format, **named})

        def to_table(writer: Any, tableName: str, **named: Any) -> StreamingQuery:
            return self.begin(writer, "toTable", tableName, named)

        def trigger(writer: Any, **named: Any) -> Any:
            self.write_of(writer).trigger = ", ".join(f"{name}={value!r}" for name, value in named.items())
            return writer

        noting = {"outputMode": "mode", "queryName": "name", "format": "format"}
        return {
            "__init__": self.init,
            **{name: self.noting(name, attribute) for name, attribute in noting.items()},
            **{"option": option, "options": options, "trigger": trigger},
            **{"foreach": foreach, "foreachBatch": foreach_batch, "start": start},
            **dict.fromkeys(("toTable", "table"), to_table),  # `table` is Databricks' older name
        }

    def write_of(self, writer: Any) -> Write:
        write: Write = writer.__dict__.setdefault("_streamproof_write", Write(writer._df))
        return write

    @property
    def init(self) -> Callable[..., None]:
        def init(writer: Any, df: DataFrame) -> None:
            if df.isStreaming:
                self.own["__init__"](writer, df)
            else:
                writer.__dict__.update(_spark=df.sparkSession, _jwrite=Idle())
            writer._df = df

        return init

    def noting(self, name: str, attribute: str) -> Callable[..., Any]:
        def noted(writer: Any, value: Any) -> Any:
            setattr(self.write_of(writer), attribute, value)
            return self.own[name](writer, value)

        return noted

    def begin(self, writer: Any, how: str, target: str | None, named: Methods) -> StreamingQuery:
        """Record a query that `start` or `toTable` starts."""
        write = self.write_of(writer)
        for name in ("outputMode", "queryName", "format", "partitionBy"):
            if (value := named.pop(name, None)) is not None:
                getattr(writer, name)(value)
        writer.options(**named)
        write.target = target if target is not None else write.target
        write.format = write.format or ("table" if how == "toTable" else "")

        def start() -> StreamingQuery:
            self.own["option"](writer, "checkpointLocation", str(self.lift.folder / "checkpoint"))
            self.own["trigger"](writer, availableNow=True)
            instead = self.lift.instead_of(write.target)
            if instead is not None and write.format in ("", "table"):
                self.own["format"](writer, "parquet")
            query: StreamingQuery = self.own[how if instead is None else "start"](writer, instead or write.target)
            return query

        return self.lift.begun(write, start)


def _guarded(lift: Lift, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `foreachBatch` function that runs with the script's arguments, and writes only to the run's folder."""

    def guarded(*arguments: Any) -> Any:
        writer = classes().writer
        with contextlib.ExitStack() as stack:
            stack.enter_context(lift.source.surroundings())
            stack.enter_context(lift.around())
            stack.enter_context(mock.patch.multiple(writer, **_guards(lift, writer)))
            if lift.source.targets:
                stack.enter_context(
                    mock.patch.multiple(classes().reader, **_readers_of_targets(lift, classes().reader))
                )
            return function(*arguments)

    return guarded


def _readers_of_targets(lift: Lift, owner: Any) -> Methods:
    """Return the methods of the reader class that let a function read its own writes again."""

    def reading(name: str) -> Callable[..., Any]:
        original = getattr(owner, name)

        def load(reader: Any, target: Any = None, *arguments: Any, **named: Any) -> Any:
            instead = lift.instead_of(target if isinstance(target, str) else None)
            if instead is not None and name == "table":
                return reader.format("parquet").load(instead)
            return original(reader, *[instead or target] * (target is not None), *arguments, **named)

        return load

    return {name: reading(name) for name in ("load", "table", *FILES) if hasattr(owner, name)}


def _guards(lift: Lift, owner: Any) -> Methods:
    """Return the methods of the batch writer class, which refuse to write outside the run's folder."""

    def guarding(name: str) -> Callable[..., Any]:
        original = getattr(owner, name)

        def save(writer: Any, target: Any = None, *arguments: Any, **named: Any) -> Any:
            names = [key for key in ("path", "name", "tableName", "url") if key in named]
            given = target if target is not None else next((named.pop(key) for key in names), None)
            if given is None:
                given = writer.__dict__.get("_streamproof_path")
            instead = lift.instead_of(None if given is None else str(given))
            if instead is not None and name in TABLES:
                for key in ("format", "mode", "partitionBy"):
                    if named.get(key) is not None:
                        getattr(writer, key)(named[key])
                if name == "insertInto":
                    writer.mode("overwrite" if named.get("overwrite") else "append")
                return owner_save(writer, instead)
            outside = given is not None and (name in TABLES or not lift.is_inside(str(given)))
            if outside and instead is None and name != "jdbc":
                raise lift.refuse_target(str(given))
            return original(writer, *[instead or given] * (given is not None), *arguments, **named)

        return save

    owner_save, own_option = owner.save, owner.option

    def option(writer: Any, key: str, value: Any) -> Any:
        if key.casefold() == "path":
            writer.__dict__["_streamproof_path"] = str(value)
        return own_option(writer, key, lift.instead_of(str(value)) or value)

    def options(writer: Any, **options: Any) -> Any:
        for key, value in options.items():
            option(writer, key, value)
        return writer

    saves = {name: guarding(name) for name in SAVES if hasattr(owner, name)}
    return {**saves, "option": option, "options": options}


def _skipping(lift: Lift, name: str) -> Callable[..., None]:
    def skip(writer: Any, *arguments: Any, **named: Any) -> None:
        lift.note(f"{name}(…) isn't run")

    return skip


def _session(lift: Lift, owner: Any) -> Methods:
    original = owner.sql

    def sql(spark: Any, sqlQuery: str, *arguments: Any, **named: Any) -> Any:
        if lift.asked is None and CHANGES.match(sqlQuery):
            lift.skip(sqlQuery)
        elif setting := SETTING.fullmatch(sqlQuery):
            lift.set(*setting.groups())
        else:
            lift.views += VIEW.findall(sqlQuery)
            statement, unanswered = lift.statement(sqlQuery)
            return lift.batch(unanswered, lambda: original(spark, statement, *arguments, **named))
        return original(spark, "SELECT 1 WHERE false")

    return {"sql": sql, "table": lambda spark, name: spark.read.table(name)}


def _catalog(lift: Lift, owner: Any) -> Methods:
    """Return the methods of the catalog class, which report the script's tables as existing, and ignore changes."""

    def exists(catalog: Any, tableName: str, dbName: str | None = None, *, original: Any = owner.tableExists) -> bool:
        name = tableName if dbName is None else f"{dbName}.{tableName}"
        if any(frames.has(Read(target=name)) for frames in (lift.tables, lift.inputs)):
            return True
        with contextlib.suppress(PySparkException):  # this session may lack the script's catalog
            return bool(original(catalog, name))
        return False

    def database(catalog: Any, dbName: str, *, original: Any = owner.databaseExists) -> bool:
        if any(
            f".{dbName}.".casefold() in f".{name}".casefold() for name in (*lift.tables.frames, *lift.inputs.frames)
        ):
            return True
        with contextlib.suppress(PySparkException):
            return bool(original(catalog, dbName))
        return False

    skipped = {name: _skipping(lift, f"catalog.{name}") for name in CATALOG if hasattr(owner, name)}
    refreshing = {name: _returning(None) for name in REFRESHING}
    return {"tableExists": exists, "databaseExists": database, **(skipped if lift.asked is None else {}), **refreshing}


def _views(lift: Lift, owner: Any) -> Methods:
    """Return the methods of the DataFrame class that record temporary views, or show the frame."""

    def making(name: str) -> Callable[..., Any]:
        original = getattr(owner, name)

        def make(frame: Any, view: str) -> Any:
            lift.views.append(view)
            lift.answering.discard(view)
            return original(frame, view)

        return make

    def uniting(name: str) -> Callable[..., Any]:
        original = getattr(owner, name)

        def unite(frame: Any, other: Any, *arguments: Any, **named: Any) -> Any:
            lift.uniting(frame, other)
            return original(frame, other, *arguments, **named)

        return unite

    views = {name: making(name) for name in ("createOrReplaceTempView", "createTempView", "registerTempTable")}
    unions = {name: uniting(name) for name in ("union", "unionAll", "unionByName")}
    return {**views, **unions, "display": lambda frame, *arguments, **named: display(lift, frame, *arguments, **named)}


def _models(lift: Lift) -> Iterator[tuple[Any, Methods]]:
    """Yield the classes that load and save models: as files beside the script, and in the run's folder."""
    from pyspark.ml.pipeline import PipelineModelReader, PipelineReader
    from pyspark.ml.util import JavaMLReader, JavaMLWriter, MLWriter

    def loading(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda reader, path: original(reader, lift.models.get(path) or lift.beside(path))

    def saving(original: Callable[..., Any]) -> Callable[..., Any]:
        def save(writer: Any, path: str) -> None:
            lift.note(f"the model {visible(path)} is saved in the check's folder")
            number = len(lift.models)
            lift.models[path] = str(lift.folder / f"model{number}")
            original(writer, lift.models[path])

        return save

    for reader in (JavaMLReader, PipelineModelReader, PipelineReader):
        yield reader, {"load": loading(reader.load)}
    for writer in (JavaMLWriter, MLWriter):
        yield writer, {"save": saving(writer.save)}


MOST_SLEEPS = 2
"""The number of sleeps of a line after a query has started; at the next sleep, the script waits for the query."""

LONGEST_SLEEP = 0.1
"""The number of seconds that a line sleeps before a query has started."""


def _sleeping(lift: Lift, original: Callable[[float], None]) -> Callable[[float], None]:
    """Return the replacement of `time.sleep`: a script that sleeps in a loop after starting a query waits for the
    query.
    """
    slept: Counter[int] = Counter()

    def sleep(seconds: float) -> None:
        caller = sys._getframe(1)
        if caller.f_code.co_filename != lift.source.file:
            original(seconds)
        elif not lift.writes:
            original(min(seconds, LONGEST_SLEEP))
        else:
            slept[caller.f_lineno] += 1
            if slept[caller.f_lineno] > MOST_SLEEPS:
                raise WaitsForQueries

    return sleep

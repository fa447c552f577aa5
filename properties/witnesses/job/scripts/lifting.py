"""One run of a script: its reads and their rows, its writes, its settings and the parts that aren't checked."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from pyspark.sql import SparkSession

from .....reference.core.errors import BadInput, StreamproofError
from ....generators.columns.forms.envelopes import ENVELOPES
from ....system.ipynb import line_in
from ....system.visible import first_line, visible, visible_path
from ...spark.engine import NO_LIMIT
from ...spark.platform.connect import server_session
from ..plan.plans import operators_of
from ..users_code import is_users_file
from .beside import beside, files, finding, folders_of, modules
from .pipelines import TABLE, VIEW, Pipeline
from .reads import Frames, Read, as_declared, of_topics, renewed, union
from .remedies import IN_TEST, Remedies
from .statements import relations_of, renamed, streamed_call, without_streams
from .writes import EndedQuery, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

_REMOVING = ((os, "remove"), (os, "unlink"), (os, "rmdir"), (os, "system"), (shutil, "rmtree"))
"""Functions by which a script removes files, such as its checkpoint, or runs commands."""
CHECKS_OWN = ("spark.sql.shuffle.partitions", "spark.sql.streaming.checkpointLocation", "spark.default.parallelism")
"""Settings of a script that the check ignores, because the check has its own values."""


_OF_CLASS = re.compile(r"spark\.sql\.catalog\.\w+|spark\..*[cC]lass")
"""Settings whose value is a class name."""


_GUARD = os.path.join(os.path.dirname(__file__), "answers.py")
"""The file whose functions call a script's sink functions."""
ROW_BY_ROW = {
    *("Filter", "Generate", "LogicalRelation", "LocalRelation", "Project", "StreamingRelation", "StreamingRelationV2"),
    *("SubqueryAlias", "Union", "View"),
}
"""Operators that compute each row from a single row."""
FORMS = {"aws-kinesis": "kinesis", "socket": "text"}
"""The format of an `Input` for a source with another name."""
SCHEMA_OF = "streamproof_columns_"
"""The name prefix of a frame with an input's columns and no rows."""


@dataclass(frozen=True)
class ScriptSource:
    """A script, or a function that starts its own queries.

    Attributes:
        code: The path of the script, or the function.
        args: The command-line arguments.
        env: The environment variables.
        names: The additional global names of the script.
        text: The script's text, if it differs from the file's text (None: the file's text).
        widgets: The values of a notebook's widgets.
        targets: The replacements of the script's targets: paths in the run's folder, or URLs for JDBC.
        remedies: The wording of the remedies in errors.
    """

    code: Path | Callable[..., Any]
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    widgets: Mapping[str, Any] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    remedies: Remedies = IN_TEST

    @property
    def file(self) -> str:
        """The path of the file with the script's code."""
        if isinstance(self.code, Path):
            return str(self.code)
        return str(getattr(getattr(inspect.unwrap(self.code), "__code__", None), "co_filename", ""))

    @property
    def where(self) -> str:
        """The script's name in messages."""
        name = visible_path(self.file)
        return name if isinstance(self.code, Path) else f"{getattr(self.code, '__name__', 'a function')} ({name})"

    def mentions(self, name: str) -> bool:
        """Return whether the text of the script's file contains a name."""
        path = Path(self.file)
        return path.is_file() and name.encode() in path.read_bytes()

    @contextlib.contextmanager
    def surroundings(self) -> Iterator[None]:
        """Set the script's arguments and environment within the block."""
        argv = [self.file, *self.args]
        with mock.patch.dict(os.environ, {**self.env}), mock.patch.object(sys, "argv", argv):
            yield


class WaitsForQueries(BaseException):
    """Ends the run of a script that waits for its queries."""


@dataclass
class Lift:
    """One run of a script.

    Attributes:
        source: The script.
        spark: The session of the run.
        inputs: The frames for the streaming reads.
        tables: The frames for the batch reads.
        folder: The run's folder.
        asked: The index of the query to start with its own sink (None: no query starts, and nothing is written).
        writes: The queries that the script has started.
        settings: The session settings that the script asks for.
        notes: The script's actions that the check leaves out, each with its line.
        views: The temporary views of the script, including its tables' views.
        text: The executed text, as Python.
        missing: The missing notebooks that the script runs.
        schemas: The batch reads that returned only the columns of an input.
        answering: The names of the views that still refer to the given tables.
        query: The started query.
        error: The first error that the run raised in the script, which the script may have caught.
        unfinished: The error that ended the script before all of its queries had started (None: no such error).
        raised: The exception that ended the script (None: the script ended normally).
        failed: The last exception in another file of the script, with that file, and the line if the file isn't Python.
        seconds: The time limit of the script (s).
        change: Changes a setting of the session.
        pipeline: The declared datasets and flows.
        models: The path of each model that the script has saved, by the script's path.
        declared: The current line of a declaration that isn't Python.
        is_elsewhere: Whether the current line belongs to another file of the script.
    """

    source: ScriptSource
    spark: SparkSession
    inputs: Frames
    tables: Frames
    folder: Path
    asked: int | None = None
    writes: list[Write] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    views: list[str] = field(default_factory=list)
    text: str = ""
    missing: list[str] = field(default_factory=list)
    schemas: list[Read] = field(default_factory=list)
    answering: set[str] = field(default_factory=set)
    query: StreamingQuery | None = None
    error: StreamproofError | None = None
    unfinished: BadInput | None = None
    raised: Exception | None = None
    failed: tuple[Exception, ScriptSource, int] | None = None
    seconds: float = NO_LIMIT
    change: Callable[[str, str], None] = field(init=False)
    pipeline: Pipeline = field(init=False)
    models: dict[str, str] = field(default_factory=dict)
    declared: int = 0
    is_elsewhere: bool = False
    _earlier: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pipeline = Pipeline(self)

    def undo(self) -> None:
        """Restore the session's settings, and drop the temporary views."""
        for name, earlier in self._earlier.items():
            self.spark.conf.unset(name) if earlier is None else self.spark.conf.set(name, earlier)
        for name in dict.fromkeys(self.views):
            self.spark.catalog.dropTempView(name)

    @property
    def line(self) -> int:
        """The script's current line; 0 outside the script."""
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_filename != self.source.file:
            frame = frame.f_back  # type: ignore[assignment]
        return line_in(self.source.file, frame.f_lineno) if frame is not None else self.declared

    @contextlib.contextmanager
    def within(self, file: Path, line: int = 0) -> Iterator[None]:
        """Attribute the actions within the block to another file of the script, and to a line if the file isn't
        Python.
        """
        before = self.source, self.declared, self.is_elsewhere
        self.source, self.declared, self.is_elsewhere = replace(self.source, code=file, text=None), line, True
        try:
            yield
        except Exception as error:
            if self.failed is None or self.failed[0] is not error:  # keep the innermost file, which raised it
                self.failed = error, self.source, line
            raise
        finally:
            self.source, self.declared, self.is_elsewhere = before

    def refuse(self, message: str) -> BadInput:
        """Record an error, which the script may catch, and return it."""
        error = BadInput(message)
        self.error = self.error or error
        return error

    def note(self, text: str) -> None:
        """Record an action that the check leaves out, at the current line."""
        if (noted := f"line {self.line} of {self.source.where}: {text}") not in self.notes:
            self.notes.append(noted)

    def skip(self, statement: str) -> None:
        """Record a statement that changes a table, and that the check doesn't run."""
        self.note(f"the statement {visible(first_line(statement))!r} isn't run")

    def note_line(self, number: int, line: str) -> None:
        """Record a line of a notebook that the check doesn't run."""
        at = line_in(self.source.file, number)
        self.notes.append(f"line {at} of {self.source.where}: {visible(line)} isn't run")

    def stream(self, read: Read) -> DataFrame:
        """Return the rows for a streaming read.

        Raises:
            BadInput: No input is given for the read, or the input doesn't fit.
        """
        dataset = self.pipeline.dataset_of(read.target)
        if dataset is not None and (frame := self.of_dataset(read, dataset)) is not None:
            return frame
        if writes := self.writers_of(read):
            return self.handed_on(read, writes)
        answers = self.inputs.answer(read, in_order=True)
        if not answers:
            given = ", ".join(self.inputs.frames)
            name = read.names[0] if read.names else "events"
            raise self.refuse(
                f"line {read.line} of {self.source.where} reads {read}, and {self.source.remedies.given} gives only "
                f"{given}: add {self.source.remedies.input_of(name)}"
            )
        topics = {name: read.topics_of(name) if answers.keys() - {name} else read.topics for name in answers}
        frames = [self._as_read(read, name, frame, topics[name]) for name, frame in answers.items()]
        return union(frames)

    def writers_of(self, read: Read) -> list[Write]:
        """Return the script's own queries that write the source of a read; no queries if an input provides the rows."""
        for name in read.chosen(self.inputs.frames):
            if name not in self.inputs.taken or name.casefold() == (read.target or "").casefold():
                return []
        named = [(write, [name for name in (write.target, write.name) if name]) for write in self.writes]
        chosen = {name.casefold() for name in read.chosen([name for _, names in named for name in names])}
        return [write for write, names in named if chosen & {*map(str.casefold, names)}]

    def of_dataset(self, read: Read, dataset: str) -> DataFrame | None:
        """Return a pipeline dataset's rows for a flow that streams from it (None: an input provides the rows).

        Raises:
            BadInput: The dataset has no flow, or one of its flows has state, so its output depends on more than single
                rows.
        """
        kind, frame = self.pipeline.kinds[dataset], self.pipeline.rows(dataset)
        if frame is None:
            raise self.refuse(f"line {read.line} of {self.source.where} reads {read}, and no flow writes it")
        if kind == VIEW or (kind == TABLE and of_single_rows(frame)):
            return frame
        return None if read.chosen(self.inputs.frames) else self.by_itself(read, frame, f"flow of {visible(dataset)}")

    def handed_on(self, read: Read, writes: Sequence[Write]) -> DataFrame:
        """Return the rows that the script's queries write, for another query that reads them.

        Raises:
            BadInput: A query has state or its own sink, so its output depends on more than single rows.
        """
        frame = renewed(union([write.frame for write in writes]))
        lines = " and ".join(str(write.line) for write in writes)
        writer = f"query in line {lines}" if len(writes) == 1 else f"queries in lines {lines}"
        for write in writes:
            is_plain = write.function is None and write.of_rows is None and write.mode in (None, "append")
            if not is_plain or not of_single_rows(write.frame):
                return self.by_itself(read, frame, writer)
        self.note(f"the rows of {read} come directly from the {writer}, and not through its sink")
        return frame

    def by_itself(self, read: Read, frame: DataFrame, writer: str) -> DataFrame:
        """Refuse a read of another query's output, because the rows depend on that query's state."""
        raise self.refuse(
            f"line {read.line} of {self.source.where} reads {read}, which its {writer} writes: give these rows as "
            f"another Input, {self.source.remedies.input_of(read.names[0])}"
        )

    def _as_read(self, read: Read, name: str, frame: DataFrame, topics: Sequence[str]) -> DataFrame:
        """Return the frame of an input for a streaming read, with the read's topics in its records."""
        where = self.source.where
        form = FORMS.get(read.format, read.format)
        wanted = {"text": ("value", "string"), **{name: (one.payload, "binary") for name, one in ENVELOPES.items()}}
        if form in wanted and wanted[form] not in frame.dtypes:
            column, kind = wanted[form]
            raise self.refuse(
                f"line {read.line} of {where} reads {read} as the source {read.format} gives it, with a column "
                f"{column} ({kind}), and reads[{name!r}] has {', '.join(frame.columns)}: give it as "
                f'Input(…, format="{form}")'
            )
        if read.format == "aws-kinesis":
            frame = frame.withColumnRenamed("stream", "streamName").drop("shardId")
        if topics and topics != [self.inputs.topics.get(name, name)] and "topic" in frame.columns:
            frame = of_topics(frame, topics)
        try:
            return as_declared(frame, read, name, where)
        except BadInput as error:
            raise self.refuse(error.message) from None

    def table(self, read: Read) -> DataFrame | None:
        """Return the rows for a batch read (None: the read has no rows)."""
        for name, frame in self.tables.answer(read, in_order=False).items():
            return as_declared(frame, read, name, self.source.where, cast=True)
        dataset = self.pipeline.dataset_of(read.target)
        return self.pipeline.rows(dataset) if dataset is not None and self.pipeline.kinds[dataset] == VIEW else None

    def schema_of(self, read: Read) -> DataFrame | None:
        """Return an empty frame with the columns of the input or query that a batch read names (None: no match)."""
        if writes := self.writers_of(read):
            return self._without_rows(read, union([write.frame for write in writes]))
        for name in read.chosen(self.inputs.frames):
            frame = as_declared(self.inputs.frames[name], read, name, self.source.where, cast=True)
            return self._without_rows(read, frame)
        return None

    def _without_rows(self, read: Read, frame: DataFrame) -> DataFrame:
        self.schemas.append(read)
        return self.spark.createDataFrame([], frame.schema).alias(f"{SCHEMA_OF}{len(self.schemas)}")

    def add_file(self, path: Any) -> None:
        """Let a module or archive that the script adds be imported by the driver and by Spark's workers."""
        found = os.path.abspath(self.beside(str(path)))
        if not os.path.exists(found):
            self.note(f"{visible(path)} isn't added, because there is no such file")
        elif (folder := found if found.endswith((".egg", ".zip")) else os.path.dirname(found)) not in sys.path:
            sys.path.insert(1, folder)

    def batch(self, read: Read | None, original: Callable[[], DataFrame]) -> DataFrame:
        """Read a source without a given table, as the script would (None: a part of the source is missing)."""
        try:
            return original()
        except Exception as error:
            if read is not None and (columns := self.schema_of(read)) is not None:
                return columns
            if not self.writes and read is not None:
                name = next(iter(read.names), "table")
                self.refuse(
                    f"line {read.line} of {self.source.where} reads {read}, which can't be read here: "
                    f"{first_line(error).rstrip('.')}; give its rows, {self.source.remedies.table_of(name)}"
                )
            raise

    @contextlib.contextmanager
    def around(self, *, anew: bool = False) -> Iterator[None]:
        """Within the block, let code find modules and files as the script does; with `anew`, import the user's modules
        again.
        """
        file, skip = self.source.file, None
        if self.asked is None:

            def skip(name: str) -> None:
                self.note(f"{name}(…) isn't run")

        connect: Callable[..., sqlite3.Connection] = sqlite3.connect

        def connected(database: Any, *arguments: Any, **named: Any) -> sqlite3.Connection:
            return connect(self.instead_of(str(database)) or database, *arguments, **named)

        with contextlib.ExitStack() as stack:
            stack.enter_context((modules if anew else finding)(file, skip))
            stack.enter_context(files(file, self.wrote, self.instead_of))
            if self.source.targets:
                stack.enter_context(mock.patch.object(sqlite3, "connect", connected))
            for owner, name in _REMOVING:
                stack.enter_context(mock.patch.object(owner, name, self._unless_users(getattr(owner, name))))
            yield

    def _unless_users(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that removes files and runs commands only for libraries, or in the run's folder."""

        def act(*arguments: Any, **named: Any) -> Any:
            given = arguments[0] if arguments else named.get("path", named.get("command"))
            frame: Any = sys._getframe(1)
            while frame is not None and "pathlib" in frame.f_code.co_filename:
                frame = frame.f_back
            of_user = frame is not None and is_users_file(frame.f_code.co_filename)
            if not of_user or (isinstance(given, (str, os.PathLike)) and self.is_inside(str(given))):
                return original(*arguments, **named)
            self.note(f"{original.__name__}({visible(str(given))!r}) isn't run")
            return 0 if original.__name__ == "system" else None

        return act

    def wrote(self, path: str) -> None:
        """Record a file that is opened for writing."""
        frame: Any = sys._getframe()
        while frame is not None and frame.f_code.co_filename not in (self.source.file, _GUARD):
            if frame.f_globals.get("__name__", "").startswith(("pyspark.", "py4j.")):
                return
            frame = frame.f_back
        if frame is None or path == os.devnull or self.is_inside(path):
            return
        self.note(f"open({visible(path)!r}) writes outside the check's folder in every check")

    def beside(self, path: Any) -> Any:
        """Return a path that the script reads, resolved by `beside.beside` if the path is relative."""
        if isinstance(path, list):
            return [self.beside(one) for one in path]
        if not isinstance(path, str) or ":" in path:
            return path
        return str(beside(path, folders_of(self.source.file)))

    def statement(self, text: str) -> tuple[str, Read | None]:
        """Return a statement that reads the given tables, and the first of its tables that isn't given."""
        if (call := streamed_call(text)) is not None:
            raise self.refuse(
                f"line {self.line} of {self.source.where} reads STREAM {visible(call)}(…), a function of its platform: "
                "read the source with spark.readStream, or as a table that reads= gives"
            )
        given = {name.casefold() for name in (*self.inputs.frames, *self.tables.frames, *self.views)}
        text, streamed = (text, frozenset[int]()) if "stream" in given else without_streams(text)
        answers, unanswered = [], None
        own = {view.casefold() for view in self.views} - {view.casefold() for view in self.answering}
        for relation in relations_of(server_session(self.spark), text):
            if relation.name.casefold() in own or relation.name.startswith("global_temp."):
                continue
            read = Read(target=relation.name, line=self.line, where=self.source.where)
            streams = relation.streams or relation.start in streamed
            frame = self.stream(read) if streams else self.table(read) or self.schema_of(read)
            if frame is None:
                unanswered = unanswered or read
                continue
            # a withWatermark call replaces the clause, because the check's clock moves only watermarks of such calls
            if (watermark := relation.watermark) is not None:
                if not watermark.column:
                    raise self.refuse(
                        f"line {self.line} of {self.source.where} has a WATERMARK of {visible(watermark.made)} without "
                        "a name, which Spark refuses: add AS and a name"
                    )
                if watermark.made:
                    frame = frame.alias(relation.last).selectExpr(f"{watermark.made} AS `{watermark.column}`", "*")
                frame = frame.withWatermark(watermark.column, watermark.delay)
            view = f"streamproof_{len(self.views)}"
            frame.createOrReplaceTempView(view)
            answers.append((relation, view))
        return renamed(text, answers), unanswered

    def uniting(self, frame: DataFrame, other: DataFrame) -> None:
        """Do nothing; a run without data overrides this method to learn columns from a union."""

    def begun(self, write: Write, start: Callable[[], StreamingQuery]) -> StreamingQuery:
        """Record a query that the script starts, and start the query if it is the checked query."""
        write.line, write.where, write.is_elsewhere = self.line, self.source.where, self.is_elsewhere
        self.refuse_rows(write.frame)
        self.writes.append(write)
        if len(self.writes) - 1 != self.asked:
            return EndedQuery(write.name)
        outside = write.target is not None and not self.is_inside(write.target)
        if outside and self.instead_of(write.target) is None:
            raise self.refuse_target(str(write.target))
        self.query = start()
        return self.query

    def refuse_rows(self, frame: DataFrame) -> None:
        """Refuse a query that batch-reads the rows of an input's own path or table: only the columns are known."""
        if not self.schemas:
            return
        plan = str(frame._jdf.queryExecution().analyzed().toString())
        for number, read in enumerate(self.schemas, 1):
            if re.search(rf"\b{SCHEMA_OF}{number}\b", plan):
                target = read.target or read.names[0]
                name = target if "/" in target or "." in target else f"tables.{target}"
                raise self.refuse(
                    f"line {read.line} of {self.source.where} reads {read} as a batch, and the check knows it only as "
                    f"a stream: give the rows of this read, too, {self.source.remedies.table_of(name)}"
                )

    def instead_of(self, target: str | None) -> str | None:
        """Return the replacement of the script's target in the run (None: the target has no replacement)."""
        if target is None or self.asked is None:
            return None
        for own, other in self.source.targets.items():
            if target == own or target.rstrip("/").startswith(f"{own.rstrip('/')}/"):
                rest = target[len(own) :] if target != own else ""
                return other + rest if other.startswith("jdbc:") else str(self.folder / other) + rest
        return None

    def is_inside(self, target: str) -> bool:
        """Return whether a path is in the run's folder."""
        path = Path(re.sub("^file:/*", "/", target))
        return path.is_absolute() and path.resolve().is_relative_to(self.folder.resolve())

    def refuse_target(self, target: str) -> BadInput:
        """Record a write to a target outside the run's folder, and return the error."""
        line = f"line {self.line} of " if self.line else "a function of "
        return self.refuse(
            f"{line}{self.source.where} writes to {visible(target)}, outside of the check's folder: say what it "
            f'writes to instead, Script(…, targets={{{visible(target)!r}: "out"}}), or give it the folder by its '
            'arguments, args=["{folder}/out"]'
        )

    def configured(self, options: Mapping[str, Any]) -> SparkSession:
        """Return the session, with the builder's settings that a running session accepts."""
        for name, value in options.items():
            if self.spark.conf.isModifiable(name):
                self.set(name, value)
        return self.spark

    def set(self, name: str, value: Any) -> None:
        """Change a setting of the session until `undo`."""
        if name in CHECKS_OWN:
            self.note(f"the setting {name}, because the check sets its own value")
            return
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if self.spark.conf.get(name, None) == text:
            return
        jvm: Any = getattr(self.spark, "_jvm", None)  # Spark Connect has no such method
        if _OF_CLASS.fullmatch(name) and jvm and not jvm.org.apache.spark.util.Utils.classIsLoadable(text):
            self.note(f"the setting {name}, because Spark has no class {visible(text)} here")
            return
        self._earlier.setdefault(name, self.spark.conf.get(name, None))
        self.change(name, text)
        self.settings[name] = text


def of_single_rows(frame: DataFrame) -> bool:
    """Return whether each row of a frame derives from a single row, or the frame doesn't stream."""
    return not frame.isStreaming or operators_of(frame._jdf.queryExecution().analyzed()) <= ROW_BY_ROW

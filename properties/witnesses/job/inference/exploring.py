"""Runs a script on empty frames, to record its reads and its queries' plans."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from .....reference.core.errors import BadInput
from ....generators.columns.forms.envelopes import ENVELOPES, HEADERS
from ....generators.columns.inputs import Input
from ....generators.columns.resolving import resolve
from ....system.ipynb import SUFFIX, source_of
from ....system.visible import first_line
from ...spark.platform.connect import server_session
from ..scripts.execution import run
from ..scripts.lifting import FORMS, Lift, ScriptSource
from ..scripts.reads import FILES, Frames, Read
from ..scripts.statements import table_made
from ..scripts.writes import Write
from ..users_code import is_users_file
from .learning import KnownColumns, Lacking, lacking

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_RUNS = 60
"""The largest number of runs of a script; each run reveals one more column or argument that the script uses."""
SECONDS = 60.0
"""The time limit of a run (s)."""
_REQUIRED = re.compile(r"following arguments are required: ([^;\n]+)")
_UNPACKED = re.compile(r"(not enough|too many) values to unpack \(expected (\d+)")
_NO_NUMBER = re.compile(
    r"(?:invalid literal for int\(\) with base 10|could not convert string to float|"
    r"invalid (?:int|float) value): '(\w+)'"
)
_NO_CHOICE = re.compile(r"invalid choice: '?([^' ]+)'? \(choose from '?([^',)]+)")
_SAID = re.compile(r"(?i)\busage: .*")
_COUNTED = re.compile(r"len\(sys\.argv\)\s*(!=|<|==|>=|>)\s*(\d+)")
"""A script's test of the number of its arguments, in which the script's own name counts."""
_PLACE = re.compile(r"<([^<>]+)>")
"""The placeholder of an argument in a usage line."""
_NO_WIDGET = re.compile(r"asks for the widget (\S+), which has no default")
_OS = (os.__file__, "<frozen os>")
NUMBER = "10"
"""The placeholder of an argument that the script reads as a number."""


class LearnedColumns(BaseException):
    """Ends a run that has revealed columns of an input, so the script runs again; scripts don't catch a
    BaseException.
    """


@dataclass(frozen=True)
class Explored:
    """A run of a script without data.

    Attributes:
        source: The script, with placeholders for the arguments and the environment that it requires.
        reads: The read of each input, by the input's name.
        columns: The columns of each read, by the input's name.
        tables: The columns of each table that can't be read here, by the table's name.
        learned: The columns that the script uses, for each input or table without a known schema, by name.
        folders: The name of each input, by the name of its frame's folder.
        writes: The started queries.
        unfinished: The error that ended the script before all of its queries had started (None: no such error).
        seconds: The duration of the run (s).
    """

    source: ScriptSource
    reads: Mapping[str, Read]
    columns: Mapping[str, StructType]
    tables: Mapping[str, StructType]
    learned: Mapping[str, KnownColumns]
    folders: Mapping[str, str]
    writes: Sequence[Write]
    unfinished: BadInput | None = None
    seconds: float = 0


@dataclass
class Open(Frames):
    """Returns an empty frame for every streaming read, with the columns of the read's source.

    Attributes:
        spark: The session.
        folder: The folder of the frames' files.
        learned: The known columns of each input without a schema, by its name.
        columns: The columns of each input, by its name.
        folders: The name of each input, by the name of its frame's folder.
    """

    spark: Any = None
    folder: Path = Path()
    learned: dict[str, KnownColumns] = field(default_factory=dict)
    columns: dict[str, StructType] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)

    def answer(self, read: Read, *, in_order: bool) -> dict[str, DataFrame]:
        """Return the frame of a read: the given frame, the frame of an earlier read, or a new frame."""
        return super().answer(read, in_order=False) or self.opened(read, columns_of(read, self.spark))

    def opened(self, read: Read, columns: StructType | None) -> dict[str, DataFrame]:
        """Create the frame of a read with these columns, or by default with the known columns."""
        name = read.name or "events"
        self.columns[name] = columns or learned_of(name, self.learned).schema
        path = self.folder / f"input{len(self.columns)}"
        path.mkdir()
        self.folders[path.name] = name
        frame: DataFrame = self.spark.readStream.schema(self.columns[name]).parquet(str(path))
        self.frames = {**self.frames, name: frame}
        self.taken[name] = [read]
        return {name: frame}

    def has(self, read: Read) -> bool:
        """Return true, because each read gets a frame."""
        return True


@dataclass
class Exploring(Lift):
    """A run whose batch reads return empty frames for missing tables.

    Attributes:
        learned: The known columns of each source without a schema, by the source's name.
        absent: The columns of each missing table, by the table's name.
        made: The columns of each table that a skipped CREATE statement would create, by the table's name.
    """

    learned: dict[str, KnownColumns] = field(default_factory=dict)
    absent: dict[str, StructType] = field(default_factory=dict)
    made: dict[str, StructType] = field(default_factory=dict)

    def skip(self, statement: str) -> None:
        """Record a statement that the check doesn't run, and the columns of the table that the statement creates."""
        super().skip(statement)
        if (made := table_made(server_session(self.spark), statement)) is not None:
            self.made[made[0].casefold()] = made[1]

    def batch(self, read: Read | None, original: Callable[[], DataFrame]) -> DataFrame:
        """Run the script's own batch read; if its source is missing here, return an empty frame."""
        from pyspark.errors import AnalysisException

        try:
            return original()
        except Exception as error:
            if read is None or (isinstance(error, AnalysisException) and lacking(error) is not None):
                raise
            return self.schema_of(read) or self._of_absent(read)

    def table(self, read: Read) -> DataFrame | None:
        """Return the rows for a batch read; if the local catalog lacks the table, return an empty frame."""
        if (given := super().table(read)) is not None:
            return given
        is_table = read.format == "" and read.target is not None and "/" not in read.target
        if not is_table or self.schema_of(read) is not None:
            return None
        return None if self._exists(str(read.target)) else self._of_absent(read)

    def uniting(self, frame: DataFrame, other: DataFrame) -> None:
        """Learn the columns of a source without known columns from the other frame of a union.

        Raises:
            LearnedColumns: The source has these columns in the next run.
        """
        for own, known in ((frame, other), (other, frame)):
            for source in self.learned.values():
                if source.unknown in own.columns and source.unknown not in known.columns:
                    new = [one for one in known.schema if one.name not in own.columns]
                    source.kinds.update({one.name: one.dataType.simpleString() for one in new})
                    raise LearnedColumns

    def _exists(self, table: str) -> bool:
        from pyspark.errors import PySparkException

        # the JVM's catalog, because the run replaces the methods of PySpark's
        catalog: Any = self.spark._jsparkSession.catalog()
        try:
            return bool(catalog.tableExists(table))
        except PySparkException:  # this session lacks the table's catalog
            return False

    def by_itself(self, read: Read, frame: DataFrame, writer: str) -> DataFrame:
        """Return a new input's rows for a read of another query's output, because each query is checked alone."""
        assert isinstance(self.inputs, Open)
        if read.name in self.inputs.columns:  # the user describes an input of this name
            return super().by_itself(read, frame, writer)
        self.note(f"{read}, which the script's {writer} writes, becomes an input: the check runs each query alone")
        (opened,) = self.inputs.opened(read, frame.schema).values()
        return opened

    def _of_absent(self, read: Read) -> DataFrame:
        name = read.name or "table"
        columns = self.made.get(name.casefold()) or self._columns_of_dataset(read) or columns_of(read, self.spark)
        self.absent[name] = columns or learned_of(name, self.learned).schema
        return self.spark.createDataFrame([], self.absent[name])

    def _columns_of_dataset(self, read: Read) -> StructType | None:
        """Return the columns of the pipeline's table or materialized view in a batch read (None: another source)."""
        if (dataset := self.pipeline.dataset_of(read.target)) is None:
            return None
        before = {**self.absent}
        frame = self.pipeline.rows(dataset)
        self.absent = before  # the flow itself doesn't make the reads of the dataset's flows
        return None if frame is None else frame.schema


def empty_frames(spark: SparkSession, inputs: Sequence[Input], folder: Path) -> dict[str, DataFrame]:
    """Return an empty frame for each input, by its name.

    Raises:
        BadInput: The columns of an input can't be read.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    frames = {}
    for one in inputs:
        (folder / one.name).mkdir()
        columns = from_arrow_schema(resolve(one).source.wire_schema)
        frames[one.name] = spark.readStream.schema(columns).parquet(str(folder / one.name))
    return frames


def columns_of(read: Read, spark: SparkSession) -> StructType | None:
    """Return a source's columns from the reader's schema, the format or the files (None: unknown)."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType, _parse_datatype_string

    if read.schema is not None:
        given: Any = _parse_datatype_string(read.schema) if isinstance(read.schema, str) else read.schema
        return StructType([*given])
    form = FORMS.get(read.format, read.format)
    if form in ENVELOPES:
        columns = ENVELOPES[form].columns
        return from_arrow_schema(columns.append(HEADERS) if read.has_headers else columns)
    if form == "text":
        has_time = read.options.get("includetimestamp", "").casefold() == "true"  # the columns of Spark's socket source
        columns = StructType().add("value", "string")
        return columns.add("timestamp", "timestamp") if has_time else columns
    if form in ("rate", "rate-micro-batch"):
        return StructType().add("timestamp", "timestamp").add("value", "long")
    form, path = read.options.get("cloudfiles.format", read.format), read.target or read.options.get("path")
    try:
        if form in FILES and path is not None:
            found: StructType = spark.read.format(form).options(**read.options).load(path).schema
        elif form and form not in FILES:  # an installed source, or a source declared by the script, knows its columns
            found = spark.readStream.format(form).options(**read.options).load(path).schema
        else:
            return None
    except Exception:  # missing or unreadable files: infer the columns from their use
        return None
    return found if len(found) else None


def explored(
    source: ScriptSource, spark: SparkSession, given: Mapping[str, DataFrame], tables: Mapping[str, DataFrame]
) -> Explored:
    """Run a script without data until all arguments, environment variables and columns that it uses are known.

    Args:
        source: The script.
        spark: The session of the runs.
        given: The frames of the inputs that the user describes, by name.
        tables: The frames of the script's tables, by name.

    Raises:
        BadInput: The script fails, or uses a column with an unknown source.
    """
    learned: dict[str, KnownColumns] = {}
    for _ in range(MOST_RUNS):
        with tempfile.TemporaryDirectory() as folder:
            inputs = Open(given, {}, {}, spark, Path(folder), learned)
            lift = Exploring(source, spark, inputs, Frames(tables), Path(folder), seconds=SECONDS, learned=learned)
            failure: BadInput | None = None
            started = time.monotonic()
            asked: list[str] = []
            try:
                with _noting_variables(asked):
                    run(lift)
                failure = lift.unfinished
            except LearnedColumns:
                continue
            except BadInput as error:
                failure = error
            finally:
                lift.undo()
            reads = {name: inputs.taken[name][0] for name in inputs.columns}
            seconds = time.monotonic() - started
            seen = source, reads, inputs.columns, lift.absent, learned, inputs.folders, lift.writes
            if failure is None:
                return Explored(*seen, seconds=seconds)
            if (more := with_arguments(source, failure, lift.raised)) is not None:
                source = more
                continue
            missing = lacking(failure.__cause__ or lift.raised)
            if missing is None or not learn(missing, learned, inputs.columns):
                if asked:
                    source = replace(source, env={**source.env, **{name: _named(name) for name in asked}})
                    continue
                if failure is lift.unfinished:
                    return Explored(*seen, failure, seconds)
                raise _explained(failure, missing, source, reads, learned)
    raise BadInput(f"{source.where} uses more than {MOST_RUNS} columns or arguments: describe its inputs with --input")


@contextlib.contextmanager
def _noting_variables(asked: list[str]) -> Iterator[None]:
    """Record the variables that the user's code reads without a value, and without a default except an empty text."""
    original = os.environ.get

    def get(environ: Any, name: str, default: Any = None) -> Any:
        found = original(name, default)
        caller = sys._getframe(1)
        if caller.f_code.co_filename in _OS and caller.f_back is not None:  # os.getenv
            caller = caller.f_back
        if found in (None, "") and name not in environ and is_users_file(caller.f_code.co_filename):
            asked.append(name)
        return found

    with mock.patch.object(type(os.environ), "get", get):
        yield


def learned_of(name: str, learned: dict[str, KnownColumns]) -> KnownColumns:
    """Return the known columns of a source; at first, no column is known."""
    return learned.setdefault(name, KnownColumns(f"streamproof_unknown_{len(learned)}"))


def learn(missing: Lacking, learned: dict[str, KnownColumns], streams: Mapping[str, object]) -> bool:
    """Add a column, or a better type, to the only source that can have the column; return whether such a source exists.

    By default, a column of a stream and a table counts as the stream's, and a column of several tables as the first
    table's. If Spark's error lists the available columns, this list decides which source lacks the column.
    """
    able = {name: columns for name, columns in learned.items() if columns.can_take(missing)}
    asked = {name: columns for name, columns in able.items() if columns.has_of(missing.beside)}
    able = asked or able
    of_streams = {name: columns for name, columns in able.items() if name in streams}
    chosen = [*(of_streams or able).values()]
    if not chosen or len(of_streams) > 1:
        return False
    chosen[0].take(missing)
    return True


def with_arguments(source: ScriptSource, failure: BadInput, raised: Exception | None) -> ScriptSource | None:
    """Return a script with a placeholder for a required argument or variable (None: nothing is missing)."""
    if (required := _REQUIRED.search(failure.message)) is not None:
        args = [*source.args]
        for name in required[1].split(", "):
            option = name.strip().split("/")[0]
            args += [option, _named(option)] if option.startswith("-") else [_named(option)]
        return replace(source, args=args) if len(args) < MOST_RUNS else None
    if not source.args and (names := _PLACE.findall(_usage(failure.message))):
        more = range(len(names) + 1, _counted(source) + 1)  # for arguments that the usage omits
        return replace(source, args=[*map(_named, names), *(f"argument{number}" for number in more)])
    if (choices := _NO_CHOICE.search(failure.message)) is not None and choices[1] in source.args:
        return replace(source, args=[choices[2] if one == choices[1] else one for one in source.args])
    wrong = _NO_NUMBER.search(failure.message)
    if wrong is not None and wrong[1] in (*source.args, *source.env.values()):
        args = [NUMBER if one == wrong[1] else one for one in source.args]
        return replace(source, args=args, env={k: NUMBER if v == wrong[1] else v for k, v in source.env.items()})
    if (widget := _NO_WIDGET.search(failure.message)) is not None:
        return replace(source, widgets={**source.widgets, widget[1]: _named(widget[1])})
    if not source.args and (count := _counted(source)):
        return replace(source, args=[f"argument{number}" for number in range(1, count + 1)])
    if raised is None:
        return None
    line = traceback.extract_tb(raised.__traceback__)[-1]
    if isinstance(raised, KeyError) and line.filename in _OS:
        name = str(raised.args[0])
        return replace(source, env={**source.env, name: _named(name)})
    if "sys.argv" in (line.line or "") and isinstance(raised, (IndexError, ValueError)) and len(source.args) < 20:
        unpacked = _UNPACKED.search(str(raised))
        # Python's unpacking error counts the script's own name as an argument, too.
        count = int(unpacked[2]) - (unpacked[1] == "too many") if unpacked is not None else len(source.args) + 1
        return replace(source, args=[f"argument{number}" for number in range(1, count + 1)])
    return None


def _usage(message: str) -> str:
    """Return the part of a message that lists the required arguments; empty: no such part."""
    said = message.partition("before it starts a query: ")[2].partition("; give its arguments")[0]
    raised = _SAID.search(message)
    return re.sub(r"\[.*?\]", "", said or (raised[0] if raised is not None else ""))


def _counted(source: ScriptSource) -> int:
    """Return the number of arguments that a script requires by a test of `len(sys.argv)`; 0: no such test."""
    if callable(source.code) or source.code.suffix not in (".py", SUFFIX):
        return 0
    found = _COUNTED.search(source_of(source.code))
    return 0 if found is None else int(found[2]) - (found[1] != ">")


def _named(option: str) -> str:
    return re.sub(r"\W+", "_", option.lstrip("-")).lower()


def _explained(
    failure: BadInput,
    missing: Lacking | None,
    source: ScriptSource,
    reads: Mapping[str, Read],
    learned: Mapping[str, KnownColumns],
) -> BadInput:
    """Add to a script's error the option that sets the missing columns."""
    unknown = [name for name in learned if name in reads]
    if missing is None or not unknown:
        return failure
    read = reads[unknown[0]]
    return BadInput(
        f"line {read.line} of {source.where} reads {read} without a schema, and its columns can't be inferred "
        f"({first_line(Exception(failure.message)).rstrip('.;')}): set them with {source.remedies.input_of(unknown[0])}"
    )

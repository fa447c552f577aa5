"""One run of a script: what answers its reads, and what it writes, sets and leaves out."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from pyspark.sql import SparkSession

from .....reference.core.errors import BadInput, StreamproofError
from ....system.visible import first_line, visible, visible_path
from .reads import Frames, Read, as_declared
from .writes import EndedQuery, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

CHECKS_OWN = ("spark.sql.shuffle.partitions", "spark.sql.streaming.checkpointLocation", "spark.default.parallelism")
"""Settings of a script that the check doesn't take up, for it has its own."""


_OF_CLASS = re.compile(r"spark\.sql\.catalog\.\w+|spark\..*[cC]lass")
"""The names of settings whose value is the name of a class."""


@dataclass(frozen=True)
class Source:
    """A script, or a function that starts its own queries.

    Attributes:
        code: The path of the script, or the function.
        args: The command-line arguments.
        env: The environment variables.
        names: What the script finds among its globals.
        text: The script's text in place of the file's; None: it is the file's.
    """

    code: Path | Callable[..., Any]
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None

    @property
    def file(self) -> str:
        """The file of its lines."""
        if isinstance(self.code, Path):
            return str(self.code)
        return str(getattr(getattr(inspect.unwrap(self.code), "__code__", None), "co_filename", ""))

    @property
    def where(self) -> str:
        """What messages call it."""
        name = visible_path(self.file)
        return name if isinstance(self.code, Path) else f"{getattr(self.code, '__name__', 'a function')} ({name})"

    @contextlib.contextmanager
    def surroundings(self) -> Iterator[None]:
        """Give code within the block the script's arguments and environment."""
        argv = [self.file, *self.args]
        with mock.patch.dict(os.environ, {**self.env}), mock.patch.object(sys, "argv", argv):
            yield


class Waiting(BaseException):
    """The script waits for its queries: there is nothing more to run."""


@dataclass
class Lift:
    """One run of a script.

    Attributes:
        source: The script.
        spark: The session that it gets.
        inputs: What answers its streaming reads.
        tables: What answers its batch reads.
        folder: The run's folder.
        asked: The index of the query that is started with its own sink; None: no query is, and nothing is written.
        writes: The queries that it has started.
        settings: The settings of the session that it asks for.
        notes: What it did that the check leaves out, each with its line.
        views: The temporary views that it has made.
        query: The query that was started.
        error: The first error that it was answered with, which it may have caught.
        unfinished: The error that ended it before it had started all of its queries; None: it has.
        change: Changes a setting of the session.
    """

    source: Source
    spark: SparkSession
    inputs: Frames
    tables: Frames
    folder: Path
    asked: int | None = None
    writes: list[Write] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    views: list[str] = field(default_factory=list)
    query: StreamingQuery | None = None
    error: StreamproofError | None = None
    unfinished: StreamproofError | None = None
    change: Callable[[str, str], None] = field(init=False)
    _earlier: dict[str, str | None] = field(default_factory=dict)

    def undo(self) -> None:
        """Put the settings of the session back, and drop the temporary views."""
        for name, earlier in self._earlier.items():
            self.spark.conf.unset(name) if earlier is None else self.spark.conf.set(name, earlier)
        for name in dict.fromkeys(self.views):
            self.spark.catalog.dropTempView(name)

    @property
    def line(self) -> int:
        """The script's line that runs now; 0 where none does."""
        frame = sys._getframe()
        while frame is not None and frame.f_code.co_filename != self.source.file:
            frame = frame.f_back  # type: ignore[assignment]
        return frame.f_lineno if frame is not None else 0

    def refuse(self, message: str) -> BadInput:
        """Note an error, which the script may catch, and return it."""
        error = BadInput(message)
        self.error = self.error or error
        return error

    def note(self, text: str) -> None:
        """Note what the check leaves out, at the line that runs now."""
        if (noted := f"line {self.line} of {self.source.where}: {text}") not in self.notes:
            self.notes.append(noted)

    def stream(self, read: Read) -> DataFrame:
        """Answer a streaming read.

        Raises:
            BadInput: Nothing is given for it, or what is given doesn't fit.
        """
        where = self.source.where
        answer = self.inputs.answer(read, in_order=True)
        if answer is None:
            given = ", ".join(self.inputs.frames)
            name = read.names[0] if read.names else "events"
            raise self.refuse(
                f"line {read.line} of {where} reads {read}, and reads= gives only {given}: "
                f"give it, too, reads={{{visible(name)!r}: Input(…)}}"
            )
        name, frame = answer
        wanted = {"kafka": "binary", "text": "string", "socket": "string"}.get(read.format)
        if wanted and ("value", wanted) not in frame.dtypes:
            shape = "kafka" if read.format == "kafka" else "text"
            raise self.refuse(
                f"line {read.line} of {where} reads {read} as the source {read.format} gives it, with a column value "
                f"({wanted}), and reads[{name!r}] has {', '.join(frame.columns)}: give it as "
                f'Input(…, format="{shape}")'
            )
        try:
            return as_declared(frame, read, name, where)
        except BadInput as error:
            raise self.refuse(error.message) from None

    def table(self, read: Read) -> DataFrame | None:
        """Answer a batch read; None: nothing is given for it."""
        answer = self.tables.answer(read, in_order=False)
        return None if answer is None else as_declared(answer[1], read, answer[0], self.source.where, cast=True)

    def batch(self, read: Read, original: Callable[[], DataFrame]) -> DataFrame:
        """Read what no table answers, as the script would."""
        try:
            return original()
        except Exception as error:
            if not self.writes:
                name = next(iter(read.names), "table")
                self.refuse(
                    f"line {read.line} of {self.source.where} reads {read}, which can't be read here: "
                    f"{first_line(error).rstrip('.')}; give its rows, reads={{{visible(name)!r}: [{{…}}]}}"
                )
            raise

    def begun(self, write: Write, start: Callable[[], StreamingQuery]) -> StreamingQuery:
        """Take up a query that the script starts, and start it if it is the one that is asked about."""
        write.line = self.line
        self.writes.append(write)
        if len(self.writes) - 1 != self.asked:
            return EndedQuery(write.name)
        if write.target is not None and not self.is_inside(write.target):
            raise self.refuse_target(write.target)
        self.query = start()
        return self.query

    def is_inside(self, target: str) -> bool:
        """Whether a path is in the run's folder."""
        path = Path(re.sub("^file:/*", "/", target))
        return path.is_absolute() and path.resolve().is_relative_to(self.folder.resolve())

    def refuse_target(self, target: str) -> BadInput:
        """Note that the script writes to a target outside of the run's folder, and return the error."""
        line = f"line {self.line} of " if self.line else "a function of "
        return self.refuse(
            f"{line}{self.source.where} writes to {visible(target)}, outside of the check's folder: let it take the "
            'target from its arguments or its environment, and give that as a path in the folder, args=["{folder}/out"]'
        )

    def configured(self, options: Mapping[str, Any]) -> SparkSession:
        """Return the session, under those settings of a builder that a running session takes."""
        for name, value in options.items():
            if self.spark.conf.isModifiable(name):
                self.set(name, value)
        return self.spark

    def set(self, name: str, value: Any) -> None:
        """Change a setting of the session until `undo`."""
        if name in CHECKS_OWN:
            self.note(f"the setting {name}, for the check has its own")
            return
        text = str(value).lower() if isinstance(value, bool) else str(value)
        jvm: Any = getattr(self.spark, "_jvm", None)  # Connect has none
        if _OF_CLASS.fullmatch(name) and jvm and not jvm.org.apache.spark.util.Utils.classIsLoadable(text):
            self.note(f"the setting {name}, for Spark has no class {visible(text)} here")
            return
        self._earlier.setdefault(name, self.spark.conf.get(name, None))
        self.change(name, text)
        self.settings[name] = text

"""A script as a job: the check runs the script unchanged, with drawn rows for its reads, and collects its query's
rows.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from .....reference.core.errors import BadInput
from ....generators.columns.inputs import Input
from ....system.arguments import checked
from ....system.ipynb import SUFFIX, text_of_notebook
from ....system.visible import visible
from ..sinks.sink import Sink
from .execution import compiled, run
from .lifting import Lift, ScriptSource
from .reads import Frames
from .remedies import IN_TEST, ON_COMMAND_LINE, Remedies
from .writes import Write, started_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

FOLDER = "{folder}"
"""The placeholder of the run's folder in a script's arguments and environment."""
BATCHES_BY_CHECK = "the check decides which rows each batch contains"
"""The reason why a trigger isn't checked."""
NOWHERE = ("display", "shown", "console", "memory", "noop")
"""The formats of sinks that store nothing."""


@dataclass
class Findings:
    """The results of the runs of a script.

    Attributes:
        tables: The tables of the script's batch reads, in the order of their frames.
        mode: The output mode of the checked query (None: the script sets no mode).
        index: The index of the checked query in the order of starts (None: not yet known from a run).
        settings: The session settings that the script asks for.
        notes: The script's actions that the check leaves out.
        last: The last run; its views and settings are restored before the next run.
    """

    tables: Sequence[str] = ()
    mode: str | None = None
    index: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    last: Lift | None = None


@checked
@dataclass(frozen=True)
class Script:
    """A script that is checked as a job: it reads, writes and starts its queries itself; or a function or a notebook.

    The script runs unchanged in the check's session. The script's streaming reads return drawn rows, and its batch
    reads return the given rows. `getOrCreate` returns the check's session, `awaitTermination` returns, `stop` does
    nothing. The check compares the rows that reach the query's sink, in the query's own output mode, and writes
    nothing. With `read`, the query runs with its own sink, and the check compares the rows that `read` returns.

    Args:
        source: The path of a Python file or notebook (.ipynb), or a function of no argument or of the Spark session.
        reads: The script's inputs by name: an `Input` for a stream; rows (dicts), a pandas or an arrow table for a
            batch read. The name is a topic, a path, a table, the last part of a path or table, or the source's format.
            Streams without a matching name are matched in the order of the reads.
        query: The query to check, if the script starts several: its name, or its index in the order of starts, from 0.
        args: The command-line arguments. The check replaces `{folder}` in an argument by the run's own folder.
        env: The environment variables, in which `{folder}` is replaced as in `args`.
        read: A function that gets the run's folder, and returns the rows that the query has written: rows (dicts), or a
            pandas, arrow or Spark frame.
        globals: Additional global names for the script, such as a platform's. `spark`, `sc`, `display` and `dbutils`
            are always defined.
        widgets: The values of a notebook's widgets, by name; by default each widget's own default.
        targets: With `read`, replacements for hard-coded targets: a path in the run's folder for a path or table,
            another URL for a JDBC URL. A table is written as files.

    Raises:
        BadInput: The file doesn't exist, or `reads` contains no `Input`.
    """

    source: str | os.PathLike[str] | Callable[..., Any]
    reads: Mapping[str, Any]
    query: str | int | None = None
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[Path], Any] | None = None
    globals: Mapping[str, Any] = field(default_factory=dict)
    widgets: Mapping[str, Any] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    found: Findings = field(default_factory=Findings, init=False, repr=False, compare=False)
    text: str | None = field(default=None, init=False, repr=False, compare=False)
    remedies: Remedies = field(default=IN_TEST, init=False, repr=False, compare=False)
    called: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.source):
            path = Path(self.source)
            if not path.is_file():
                raise BadInput(
                    f"Script: there is no file {visible(path)}: give the path of a Python file or a notebook"
                )
            if path.suffix == SUFFIX:
                text_of_notebook(path)
        if not self.inputs:
            raise BadInput(
                f'Script: reads has no Input for {self.where}: give one for each stream, reads={{"clicks": Input(…)}}'
            )

    @property
    def where(self) -> str:
        """The script's name in messages."""
        return self._source().where

    @property
    def _streamproof_location(self) -> str:
        return f"{self.where}{self.called}"

    @property
    def inputs(self) -> list[Input]:
        """The inputs; an input without a name gets its name in `reads`."""
        given = {name: one for name, one in self.reads.items() if isinstance(one, Input)}
        return [replace(one, name=_last_part(name)) if one.name == "events" else one for name, one in given.items()]

    @property
    def tables(self) -> dict[str, Any]:
        """The tables for the script's batch reads."""
        return {name: given for name, given in self.reads.items() if not isinstance(given, Input)}

    @property
    def job(self) -> Script | Sink:
        """The subject of the check: the script as a job, or as a sink if `read` is given."""
        return self if self.read is None else Sink(StartOf(self), self.read)

    @property
    def without_sink(self) -> Script:
        """A copy of the script whose sink doesn't run."""
        script = replace(self, read=None)
        script.found.index, script.found.tables = self.found.index, self.found.tables
        return script

    def changed(self, text: str | None = None, source: Callable[..., Any] | None = None) -> Script:
        """Return a copy of the script with another text or another function."""
        script = replace(self, source=self.source if source is None else source)
        object.__setattr__(script, "text", text)
        script.found.index, script.found.tables = self.found.index, self.found.tables
        return script

    def on_command_line(self, called: str = "") -> Script:
        """Return a copy of the script whose error messages suggest command-line options.

        Args:
            called: The suffix of the script's name in reports, such as its query.
        """
        script = replace(self)
        object.__setattr__(script, "remedies", ON_COMMAND_LINE)
        object.__setattr__(script, "called", called)
        return script

    @property
    def notes(self) -> list[str]:
        """The script's actions that aren't checked."""
        return self.found.notes

    @functools.cached_property
    def code(self) -> Any:
        """The function, or the compiled code of the file (None: the file isn't Python)."""
        if callable(self.source):
            return self.source
        try:
            return compiled(self._source())
        except (SyntaxError, ValueError):  # the run reports the error
            return None

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """Run the script over frames, and return its query's output, without starting a query.

        Args:
            frames: The frames of the script's inputs, then of its tables.

        Raises:
            BadInput: The script starts no query, starts several without a choice in `query`, or fails before a query.
        """
        with tempfile.TemporaryDirectory() as folder:
            lift = self._run(frames, Path(folder))
        found = self.found
        try:
            if self.query is None and lift.unfinished is not None:
                raise lift.unfinished
            if frames[0].isStreaming or found.index is None:
                write = self._chosen(lift.writes)
                found.index, found.mode = lift.writes.index(write), write.mode
            else:
                write = lift.writes[found.index]
        finally:
            lift.undo()
        found.settings, found.notes = dict(lift.settings), [*lift.notes, *self._left_out(write)]
        return write.frame

    def start(self, *frames: DataFrame, folder: Path) -> StreamingQuery:
        """Run the script over frames, and start its query with its checkpoint in the folder."""
        lift = self._run(frames, folder, self.found.index)
        self.found.notes = lift.notes
        if lift.query is None:
            raise BadInput(self._no_query())
        return lift.query

    def _run(self, frames: Sequence[DataFrame], folder: Path, asked: int | None = None) -> Lift:
        if self.found.last is not None:
            self.found.last.undo()
        names = [name for name, given in self.reads.items() if isinstance(given, Input)]
        all_names = [*names, *(self.found.tables or self.tables)]
        if len(all_names) != len(frames):
            raise BadInput(
                f"{self.where} has {len(all_names)} reads, {', '.join(all_names)}, and the check has {len(frames)} "
                "inputs and tables: give both jobs the same, in the same order"
            )
        named = dict(zip(all_names, frames, strict=True))
        topics = {name: one.name for name, one in zip(names, self.inputs, strict=True)}
        inputs = Frames({name: named[name] for name in names}, topics)
        tables = Frames({name: frame for name, frame in named.items() if name not in names})
        self.found.last = Lift(self._source(folder), frames[0].sparkSession, inputs, tables, folder, asked)
        try:
            run(self.found.last)
        except BaseException:
            self.found.last.undo()
            raise
        return self.found.last

    def _source(self, folder: Path | None = None) -> ScriptSource:
        code = self.source if callable(self.source) else Path(self.source).resolve()

        def filled(text: str) -> str:
            return text if folder is None else text.replace(FOLDER, str(folder))

        env = {name: filled(value) for name, value in self.env.items()}
        targets = {name: filled(target) for name, target in self.targets.items()}
        args = [*map(filled, self.args)]
        return ScriptSource(code, args, env, self.globals, self.text, self.widgets, targets, self.remedies)

    def _chosen(self, writes: Sequence[Write]) -> Write:
        """Return the query to check.

        Raises:
            BadInput: The script starts no query, or several without a choice in `query`.
        """
        started = started_of(writes)
        if not started:
            raise BadInput(self._no_query())
        names = ", ".join(map(str, started))
        match self.query:
            case None if len(started) == 1:
                return started[0]
            case None:
                raise BadInput(
                    f"{self.where} starts {len(started)} queries, {names}: choose a query by its name or its index, "
                    f"{self.remedies.query}"
                )
            case str() if found := [write for write in started if write.name == self.query]:
                return found[0]
            case int() if 0 <= self.query < len(started):
                return started[self.query]
        raise BadInput(f"{self.where} starts no query {self.query!r}: it starts {names}")

    def _no_query(self) -> str:
        return f"{self.where} starts no query: it ends without a call of start() or toTable() on a writeStream"

    def _left_out(self, write: Write) -> list[str]:
        """List the parts of a query that the check leaves out, such as its sink and its trigger."""
        at = f"line {write.line} of {write.where}"
        left = [f"the trigger of {at}, {write.trigger}: {BATCHES_BY_CHECK}"] * bool(write.trigger)
        runs_it = "Script(…, read=…) runs the sink, and reads the rows that it has written"
        if self.read is not None or write.format in NOWHERE:
            return left
        if write.function is None and write.of_rows is None:
            return [f"the sink of {at}, {visible(write.sink)}: {runs_it}", *left]
        return [f"the function that {at} passes to {write.sink}, which the check doesn't call: {runs_it}", *left]


@dataclass(frozen=True)
class StartOf:
    """Runs a script's query with its own sink.

    Attributes:
        script: The script.
    """

    script: Script

    @property
    def _streamproof_location(self) -> str:
        return self.script.where

    @property
    def notes(self) -> list[str]:
        """The script's actions that aren't checked."""
        return self.script.notes

    @property
    def code(self) -> Any:
        """The script's function, or the code of its file."""
        return self.script.code

    def __call__(self, *frames: Any) -> StreamingQuery:
        """Run the script over frames, and start its query in a folder, which is the last argument."""
        return self.script.start(*frames[:-1], folder=frames[-1])


def _last_part(name: str) -> str:
    path = PurePosixPath(name.rstrip("/*"))
    return (path.stem if "/" in name else name.rpartition(".")[2]) or name

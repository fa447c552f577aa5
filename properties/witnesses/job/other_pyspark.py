"""Runs jobs in a process with another version of PySpark; the other process ends with this process.

Both processes run the same streamproof, and exchange pickled requests and answers. Pickle stores functions and classes
by name, and Arrow tables in Arrow's stream format, which all versions read.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePath
from types import FunctionType, ModuleType
from typing import Any

import pyarrow as pa

from ....reference.core.errors import BadInput, StreamproofError
from ...system.installed.module_path import BEHIND, behind, in_front
from ...system.installed.requirements import installed
from ...system.visible import first_line, visible
from ...system.work import own_folder
from ..run_options import Mode, RunOptions
from ..spark.session import partitions_of_users_session, settings_of_users_session, spark_session
from .query.runnable import Earlier, Feed, JobOrSink, LeftBehind, UntilStop, name_of
from .query.upgrades import run_until_first_stop
from .running import Declared, QueryOutput, Runner, query_over, session_of
from .scripts.script import Findings, Script

PROGRAM = f"{__package__}.other_pyspark_main"
_OWN = f"{__name__.partition('.')[0]}."
_END_SECONDS = 20.0
"""The time limit for the end of the process and its JVM (s)."""
_OF_THIS_SPARK = (
    *("PYTHONPATH", "PYTHONHOME", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS"),
    *("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "STREAMPROOF_MASTER"),
)
"""Environment variables that are valid only for this process's Spark."""


@dataclass(frozen=True)
class Start:
    """A request to start a session; the answer is the version of PySpark.

    Attributes:
        settings: The settings of the user's session.
    """

    settings: Mapping[str, str]

    def answer(self) -> str:
        """Start the session."""
        spark_session(settings=self.settings, any_provider=True)
        return installed("pyspark")


@dataclass(frozen=True)
class Declare:
    """A request to declare a job."""

    runner: Runner
    run: RunOptions

    def answer(self) -> tuple[Declared, Findings | None]:
        """Declare the job; for a script, also return the results of the script's run."""
        job, declared = self.runner.job, self.runner.declare(self.run)
        return declared, job.found if isinstance(job, Script) else None


@dataclass(frozen=True)
class RunRequest:
    """A request to run a job."""

    runner: Runner
    feed: Feed

    def answer(self) -> QueryOutput:
        """Run the job."""
        feed = self.feed
        return self.runner.run(feed.batches, feed.clock, feed.run, feed.times_ms)


@dataclass(frozen=True)
class EarlierRequest:
    """A request to run a job's earlier version until its first stop; the later version continues in the same folder."""

    runner: Runner
    mode: Mode
    until: UntilStop

    def answer(self) -> LeftBehind:
        """Run the job, and return the results for the later version."""
        until = self.until
        with session_of(until.feed.run) as spark:
            query = query_over(self.runner, spark, until.folder, until.feed)
            query.declaration.mode, query.until_stop = self.mode, until
            return run_until_first_stop(query)


class PySparkProcess:
    """A process with another PySpark, which the `with` block starts and ends.

    Args:
        python: The Python interpreter of the process.
        version: The requested version of PySpark.
        start: The request that starts the session (None: start with the settings of the user's session).

    Attributes:
        version: The version of PySpark in the process.
    """

    def __init__(self, python: Path, version: str, start: Start | None = None) -> None:
        self.python, self.version, self.start = python, version, start
        self.asking = threading.Lock()

    def __enter__(self) -> PySparkProcess:
        self.log = own_folder() / f"pyspark-{self.version}.log"
        ours, theirs = socket.socketpair()
        with theirs, self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [self.python, "-P", "-m", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # so that Ctrl-C interrupts only this process
            )
        with ours:
            self.connection = ours.makefile("rwb")
        try:
            self.version = self.ask(self.start or Start(settings_of_users_session()))
        except BaseException:
            self.end(0)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self.end(0 if kind is not None and not issubclass(kind, Exception) else _END_SECONDS)

    def end(self, seconds: float) -> None:
        """End the process, and kill it if it hasn't ended within `seconds`."""
        if not seconds:  # kill first, because `close` would wait for another thread's read
            self._kill()
        with contextlib.suppress(OSError):
            self.connection.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._kill()
            self.process.wait()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def declare(self, runner: Runner, run: RunOptions) -> Declared:
        """Declare a job in the other process, and copy the results of a script's run into this process's script."""
        declared, found = self.ask(Declare(_alone(runner), _with_partitions(run)))
        if isinstance(runner.job, Script):
            vars(runner.job.found).update(vars(replace(found, last=runner.job.found.last)))
        return declared  # type: ignore[no-any-return]

    def run(self, runner: Runner, feed: Feed) -> QueryOutput:
        """Run a job in the other process."""
        return self.ask(RunRequest(_alone(runner), replace(feed, run=_with_partitions(feed.run))))  # type: ignore[no-any-return]

    def until_stop(self, earlier: Earlier, until: UntilStop) -> LeftBehind:
        """Run the earlier version until its first stop, in the folder in which the later version's query continues."""
        feed, runnable = until.feed, until.runnable
        run = _with_partitions(replace(feed.run, settings={**feed.run.settings, **earlier.settings}))
        runner = Runner(earlier.job, runnable.sources, runnable.static, memory=runnable.memory)
        request = EarlierRequest(runner, earlier.mode, replace(until, runnable=runner, feed=replace(feed, run=run)))
        return self.ask(request)  # type: ignore[no-any-return]

    def ask(self, request: Any) -> Any:
        """Send a request, and return the answer.

        Raises:
            BadInput: The other process can't find the job by its name, or the job breaks the contract.
            StreamproofError: The query failed, or the process ended.
        """
        modules: dict[str, str] = {}
        content = _pickled(request, modules, self.version)
        try:
            with self.asking:
                pickle.dump((modules, content), self.connection)
                self.connection.flush()
                answered, raised = loaded(pickle.load(self.connection))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as broken:
            # another thread's `end` may have closed the connection
            if isinstance(broken, ValueError) and not self.connection.closed:
                raise
            lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            said = visible(lines[-1]) if lines else f"it ended with {self.process.poll()}"
            raise StreamproofError(f"the process of PySpark {self.version} ({self.python}) ended: {said}") from None
        if raised is not None:
            kind, message, details, cause = raised
            # the query's own message already contains the version
            where = "" if isinstance(request, EarlierRequest) else f"PySpark {self.version}: "
            error = kind(f"{where}{message}", details)
            if cause is not None:
                error.cause = cause
            raise error
        return answered


def require_named(job: JobOrSink | Script, version: str) -> None:
    """Check that another process can find a job by its name.

    Raises:
        BadInput: Another process can't find the job.
    """
    _pickled(job, {}, version)


def dumped(value: Any) -> bytes:
    """Pickle a value for the other process."""
    return _pickled(value, {}, "")


def loaded(content: bytes) -> Any:
    """Unpickle a value that the other process pickled with `dumped`."""
    return pickle.loads(content)


def _alone(runner: Runner) -> Runner:
    return replace(runner, earlier=None, on=None, plans={}, schemas={})


def _with_partitions(run: RunOptions) -> RunOptions:
    """Return the options with the number of partitions that a query has in this process."""
    if run.partitions is not None:
        return run
    partitions = partitions_of_users_session()
    here = spark_session(any_provider=True).conf.get("spark.sql.shuffle.partitions")
    return replace(run, partitions=int(here or 1) if partitions is None else partitions)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THIS_SPARK}
    return {**kept, "PYTHONPATH": os.pathsep.join(in_front()), BEHIND: os.pathsep.join(behind())}


class _Pickler(pickle.Pickler):
    """Pickles values so that both versions of PySpark can read them, and records the files of the user's modules."""

    def __init__(self, file: io.BytesIO, modules: dict[str, str]) -> None:
        super().__init__(file, protocol=4)
        self.modules = modules

    def reducer_override(self, value: Any) -> Any:
        """Reduce a value for pickle so that other versions of the value's package can read it, or leave the value to
        pickle.
        """
        if isinstance(value, pa.Table):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, value.schema) as writer:
                writer.write_table(value)
            return _table_of, (sink.getvalue().to_pybytes(),)
        if isinstance(value, pa.Schema):
            return _schema_of, (value.serialize().to_pybytes(),)
        if isinstance(value, PurePath):  # not by pickle: Python 3.13 moved the classes of paths
            return _path_of, (str(value),)
        if isinstance(value, Findings):  # without `last`, which refers to objects of the session
            return Findings, tuple(getattr(value, one.name) for one in fields(value) if one.name != "last")
        if isinstance(value, (FunctionType, type)) and _is_of_user(str(value.__module__)):
            if value.__module__ == "__main__":
                raise pickle.PicklingError(f"{value.__qualname__} is in __main__, the program that runs")
            module = sys.modules.get(value.__module__)
            if isinstance(module, ModuleType) and (file := getattr(module, "__file__", None)):
                self.modules[value.__module__] = os.path.abspath(file)
        return NotImplemented


def _pickled(value: Any, modules: dict[str, str], version: str) -> bytes:
    file = io.BytesIO()
    try:
        _Pickler(file, modules).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        job = value if isinstance(value, Script) or callable(value) else getattr(value, "runner", value)
        where = name_of(getattr(job, "job", job))
        why = re.sub(r" at 0x[0-9a-f]+", "", first_line(error))
        raise BadInput(
            f"the process of PySpark {version} can't find {where} by its module and its name: {why}. Define it by def "
            "or class at the top of a module; a lambda, a nested function or a function of the running program can't "
            "be found"
        ) from None
    return file.getvalue()


def _is_of_user(module: str) -> bool:
    """Return whether a module may be the user's, and is neither ours nor Python's."""
    return not module.startswith(_OWN) and module.partition(".")[0] not in sys.stdlib_module_names


def _path_of(text: str) -> Path:
    return Path(text)


def _table_of(content: bytes) -> pa.Table:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def _schema_of(content: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(content))

"""Lets a job see only Spark Connect, while the check uses the JVM of its server, a child of this process.

A user requests Connect as in PySpark, with SPARK_REMOTE=local or local[2]. A frame reaches the server as a global
temporary view. The check creates the view of an input, and the client reads it. The client creates the view of a
result, so that gRPC sends the result's plan to the server, and the check reads the view.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

from .....reference.core.errors import BadInput, MissingTool
from ....system.installed.module_path import modules_in_front
from ....system.installed.spark_versions import frame_class, spark_version
from ....system.visible import first_line, visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REMOTE, IS_REMOTE, IS_LOCAL = "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE"
"""The environment variables with which PySpark chooses between its two kinds of classes, and finds the server."""
_TOKEN = "spark.connect.authenticate.token"
_SETTINGS = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0"}
"""The settings with which a server listens only on this machine, on a free port."""

_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService"

_LOCAL = re.compile(r"local(\[.*\])?")

_hidden: dict[str, str] = {}
_crossing: Crossing | None = None
_CHANGING = threading.Lock()
_clients = 0
_changed = contextlib.ExitStack()


def is_asked() -> bool:
    """Return whether jobs run over Connect."""
    return bool(_hidden) or REMOTE in os.environ or IS_REMOTE in os.environ


def master() -> str | None:
    """Return the master of the server that SPARK_REMOTE requests, such as `local[2]` (None: no request)."""
    return _hidden.get(REMOTE, os.environ.get(REMOTE))


def begin() -> None:
    """Let modules imported from now on declare functions for Connect, if SPARK_REMOTE requests a server here.

    PySpark only does so once a session exists; a function that a module declares earlier, for example with `@udf`,
    isn't for Connect.
    """
    if _LOCAL.fullmatch(os.environ.get(REMOTE, "")):
        os.environ.update({IS_REMOTE: "1", IS_LOCAL: "1"})


def require() -> None:
    """Check that jobs can run over Connect.

    Raises:
        BadInput: The server is in another process, or this PySpark contains no server.
        MissingTool: A package that PySpark's client needs is missing.
    """
    remote = master()
    if remote is not None and not _LOCAL.fullmatch(remote):
        raise BadInput(
            f"SPARK_REMOTE is {visible(remote)}, but a check needs the server's JVM for the watermarks, plans and "
            "checkpoints of its queries: set SPARK_REMOTE=local[2], and the check starts a server itself"
        )
    if remote is None and IS_LOCAL not in os.environ:
        raise BadInput(
            "a session of Spark Connect runs in this process, but a check needs the server's JVM: leave out "
            "remote(…) where the session is built, and set SPARK_REMOTE=local[2], and the check starts a "
            "server itself"
        )
    if spark_version() < (4, 0):
        raise BadInput("SPARK_REMOTE is set, but PySpark has a Connect server only from 4.0 on: `unset SPARK_REMOTE`")
    try:
        importlib.import_module("pyspark.sql.connect.session")
    except ImportError as error:
        why = first_line(error).rstrip(".")
        raise MissingTool(f"SPARK_REMOTE is set: {why}: `pip install 'streamproof[connect]'`") from None


@contextlib.contextmanager
def without() -> Iterator[None]:
    """Let PySpark's functions in the block create the columns of a session in this process."""
    global _hidden
    hides = {name: os.environ.pop(name) for name in (REMOTE, IS_REMOTE) if name in os.environ}
    before, _hidden = _hidden, {**_hidden, **hides}
    try:
        yield
    finally:
        os.environ.update(hides)
        _hidden = before


@contextlib.contextmanager
def _as_client() -> Iterator[None]:
    """Let PySpark's functions create the columns of Connect, and send a job's modules with its functions.

    A function for `foreachBatch` may begin in another thread before the function that starts its query has returned. So
    the first thread that enters changes this process, and the last thread that leaves restores it.
    """
    global _clients
    with _CHANGING:
        if not _clients:
            _changed.enter_context(_changed_for_clients())
        _clients += 1
    try:
        yield
    finally:
        with _CHANGING:
            _clients -= 1
            if not _clients:
                _changed.close()


@contextlib.contextmanager
def _changed_for_clients() -> Iterator[None]:
    from pyspark.cloudpickle.cloudpickle import (
        list_registry_pickle_by_value,
        register_pickle_by_value,
        unregister_pickle_by_value,
    )

    before = {name: os.environ.get(name) for name in (REMOTE, IS_REMOTE, IS_LOCAL)}
    modules = [module for module in modules_in_front() if module.__name__ not in list_registry_pickle_by_value()]
    os.environ.update({**_hidden, IS_REMOTE: "1", IS_LOCAL: "1"})
    for module in modules:
        register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            unregister_pickle_by_value(module)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def client_of(spark: SparkSession) -> SparkSession:
    """Return the client of the server in a session's JVM, starting the server if needed."""
    from py4j.protocol import Py4JJavaError
    from pyspark.sql.connect.session import SparkSession as Client

    service = getattr(getattr(spark._jvm, f"{_SERVICE}$"), "MODULE$")
    context = spark._jsc.sc()
    try:
        port = service.localPort()
    except Py4JJavaError:
        for name, value in {**_SETTINGS, _TOKEN: uuid.uuid4().hex}.items():
            context.conf().setIfMissing(name, value)
        service.start(context)
        port = service.localPort()
    # empty if PySpark started the server: then the client finds the token in the environment
    token = context.conf().get(_TOKEN, "")
    client: Any = Client.builder.remote(f"sc://localhost:{port}/{f';token={token}' * bool(token)}").getOrCreate()
    return client  # type: ignore[no-any-return]


def settings_of_client(spark: SparkSession, client: SparkSession) -> dict[str, str]:
    """Return the settings of queries that differ between the client's session and the check's."""
    ours = spark.conf.getAll
    theirs = client.conf.getAll
    return {name: value for name, value in theirs.items() if name.startswith("spark.sql.") and ours.get(name) != value}


@dataclass(frozen=True)
class Crossing:
    """The transfer of frames between a check and a job that only sees Connect.

    Attributes:
        spark: The check's session.
        client: The job's session.
        views: The names of the created views.
    """

    spark: SparkSession
    client: SparkSession
    views: list[str] = field(default_factory=list)

    def to_job(self, given: Any) -> Any:
        """Return the job's frame for a check's frame, and the job's session for the check's session; return other
        values unchanged.
        """
        from pyspark.sql.classic.dataframe import DataFrame
        from pyspark.sql.session import SparkSession

        if isinstance(given, SparkSession):
            return self.client
        return self.client.table(self._view(given)) if isinstance(given, DataFrame) else given

    def to_check(self, returned: Any) -> Any:
        """Return the check's frame for a job's frame; return other values, and a frame with repeated column names,
        unchanged.
        """
        from pyspark.sql.connect.dataframe import DataFrame

        if not isinstance(returned, DataFrame):
            return returned
        names = [name.lower() for name in returned.columns]
        return self.spark.table(self._view(returned)) if len({*names}) == len(names) else returned

    def _view(self, frame: Any) -> str:
        name = f"streamproof_{uuid.uuid4().hex}"
        frame.createOrReplaceGlobalTempView(name)
        self.views.append(name)
        return f"{self.spark.conf.get('spark.sql.globalTempDatabase')}.{name}"

    def drop_views(self) -> None:
        """Drop the views."""
        with contextlib.suppress(Exception):  # the JVM may have died
            for name in self.views:
                self.spark.catalog.dropGlobalTempView(name)


@contextlib.contextmanager
def crossing(spark: SparkSession, client: SparkSession) -> Iterator[None]:
    """Let the user's functions called in the block see only Connect."""
    global _crossing
    before, _crossing = _crossing, Crossing(spark, client)
    to_check = _crossing.to_check
    try:
        # The check writes the job's stream with its own writer, so that it sees the written rows, and can stop the
        # query.
        with mock.patch.object(classes().frame, "writeStream", property(lambda frame: to_check(frame).writeStream)):
            yield
    finally:
        _crossing.drop_views()
        _crossing = before


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a user's function; over Connect it gets the client's frames, and its result is transferred back."""
    if _crossing is None:
        return function(*arguments)
    with _as_client():
        return _crossing.to_check(function(*map(_crossing.to_job, arguments)))


def to_job(made: Callable[[], DataFrame]) -> DataFrame:
    """Return a check's frame as the user's functions see it."""
    if _crossing is None:
        return made()
    with without():
        frame = made()
    return _crossing.to_job(frame)  # type: ignore[no-any-return]


def to_check(frame: Any) -> Any:
    """Return the check's frame for a frame of the user's functions."""
    return frame if _crossing is None else _crossing.to_check(frame)


def server_session(spark: Any) -> Any:
    """Return the session in this process for a session of the user's functions."""
    return spark if _crossing is None else _crossing.spark


class Classes(NamedTuple):
    """The PySpark classes of the objects that the user's functions see."""

    session: Any
    settings: Any
    queries: Any
    catalog: Any
    frame: Any
    group: Any
    reader: Any
    writer: Any
    writer_v2: Any
    stream_reader: Any


def classes() -> Classes:
    """Return the PySpark classes of the objects that the user's functions see."""
    if _crossing is None:
        from pyspark.sql import GroupedData, SparkSession
        from pyspark.sql.catalog import Catalog
        from pyspark.sql.conf import RuntimeConfig
        from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
        from pyspark.sql.streaming.query import StreamingQueryManager
        from pyspark.sql.streaming.readwriter import DataStreamReader

        return Classes(
            *(SparkSession, RuntimeConfig, StreamingQueryManager, Catalog, frame_class(), GroupedData),
            *(DataFrameReader, DataFrameWriter, DataFrameWriterV2, DataStreamReader),
        )
    from pyspark.sql.connect import catalog, conf, dataframe, group, readwriter, session
    from pyspark.sql.connect.streaming import query
    from pyspark.sql.connect.streaming import readwriter as streaming

    return Classes(
        *(session.SparkSession, conf.RuntimeConf, query.StreamingQueryManager, catalog.Catalog),
        *(dataframe.DataFrame, group.GroupedData),
        *(readwriter.DataFrameReader, readwriter.DataFrameWriter, readwriter.DataFrameWriterV2),
        streaming.DataStreamReader,
    )


def as_sent(function: Any) -> Any:
    """Return a function as it arrives in the server's process, which shares no variable with this process.

    Raises:
        BadInput: The function can't be sent to the server.
    """
    if _crossing is None:
        return function
    from pyspark import cloudpickle

    try:  # copy now, as Connect copies the function when the query starts
        return cloudpickle.loads(cloudpickle.dumps(function))
    except Exception as error:
        raise BadInput(
            f"{getattr(function, '__qualname__', function)} can't be sent to the Connect server, which calls it in a "
            f"separate process: {first_line(error).rstrip('.')}: let it use only its arguments, and no other part of "
            "a session"
        ) from None

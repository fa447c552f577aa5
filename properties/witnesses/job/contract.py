"""What a job must return, and the one message where it doesn't: the job's function and line, what came, the remedy."""

from __future__ import annotations

import functools
import inspect
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput, StreamproofError
from ...system.exits import without_exit
from ...system.ipynb import line_in
from ...system.visible import first_line, text_of, visible, visible_path
from ..spark.platform import connect
from .declaring import DECLARING

JARS = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    "jdbc:postgresql": "org.postgresql:postgresql:42.7.7",
}
"""The coordinates of the jars that Spark needs for formats beside its own, by the format's name."""


def location(function: Any) -> str:
    """Return what messages call a function: its name, file and line."""
    if isinstance(where := getattr(function, "_streamproof_location", None), str):
        return where
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    inner = getattr(inner, "__func__", inner)
    call = inner if hasattr(inner, "__code__") else vars(type(inner)).get("__call__")
    code = getattr(call, "__code__", None)
    name = visible(getattr(inner, "__qualname__", type(inner).__name__)).replace("<locals>.", "")
    return name if code is None else f"{name} ({visible_path(code.co_filename)}:{code.co_firstlineno})"


def called(function: Callable[..., Any], inputs: Sequence[Any], static: Sequence[Any], more: Sequence[Any] = ()) -> Any:
    """Call a function of the user's with frames.

    Raises:
        BadInput: It can't take so many arguments, raises, ends the program, or stops the Spark session.
    """
    from pyspark.sql import SparkSession

    arguments = [*inputs, *static, *more]
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:
        pass  # written in C, for example
    except TypeError:
        given = [f"{len(inputs)} input{'s' * (len(inputs) != 1)}"] if inputs else []
        given += [f"{len(static)} static table{'s' * (len(static) != 1)}"] * bool(static)
        given += ["a folder" if len(more) == 1 else "a target and a checkpoint"] * bool(more)
        raise BadInput(
            f"{location(function)} takes other parameters than {' and '.join(given)}: it is called with "
            f"{len(arguments)} in the order in which they are given to the check"
        ) from None
    with without_exit(location(function)):
        try:
            with DECLARING:
                returned = connect.call(function, *arguments)
        except StreamproofError:
            raise
        except (Exception, GeneratorExit) as error:
            raise BadInput(raised(function, error)) from error
    context = SparkSession._instantiatedSession
    if context is None or context._jsc.sc().isStopped():
        raise BadInput(f"{location(function)} stopped the Spark session: leave that to whoever started it")
    return returned


def raised(function: Any, error: BaseException) -> str:
    """Return what a function raised, and in which of its lines, as a message says it."""
    from pyspark.errors import AnalysisException

    kind = "is refused by Spark" if isinstance(error, AnalysisException) else f"raised {type(error).__name__}"
    own = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    at = f", in line {line_in(str(own), frames[-1].lineno or 0)}: `{frames[-1].line}`" if frames else ""
    return f"{location(function)} {kind}: {first_line(error).rstrip('.')}{at}{_of_jar(text_of(error))}"


def _of_jar(reason: str) -> str:
    """Return the remedy if Spark lacks the jar of a format; nothing otherwise."""
    import pyspark

    found = re.search(r"[Ff]ailed to find (?:the )?data source: `?(\w+)", reason)
    name = "jdbc:postgresql" if "No suitable driver" in reason else found[1] if found is not None else ""
    if name not in JARS:
        return ""
    package = JARS[name].format(spark=pyspark.__version__)
    return (
        f': start the session of the tests with the jar of {name}, .config("spark.jars.packages", "{package}"), or '
        "the newest version of that which is published"
    )


def frame_of(job: Any, returned: Any, *, streaming: bool) -> Any:
    """Return the DataFrame that a job returned.

    Raises:
        BadInput: It returned something else.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    where = location(job)
    if returned is None:
        raise BadInput(f"{where} returned None: return the streaming DataFrame of the result")
    if isinstance(returned, StreamingQuery):
        returned.stop()
        raise BadInput(
            f"{where} returned a query that it had started: return the DataFrame that the query writes, or give "
            "Sink(start=…, read=…), which says how to read what it wrote"
        )
    if not isinstance(returned, DataFrame):
        raise BadInput(f"{where} returned {type(returned).__name__}: return the streaming DataFrame of the result")
    if streaming and not returned.isStreaming:
        raise BadInput(f"{where} returned a DataFrame that doesn't stream: make it of the inputs that the job is given")
    names = [name.lower() for name in returned.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"{where} returned two columns called {twice[0]!r}: give each a name of its own with .alias()")
    return returned


def query_of(job: Any, returned: Any, folder: Path) -> Any:
    """Return the query that a sink's function started, whose checkpoint is in the sink's folder, or a temporary one.

    Raises:
        BadInput: It returned something else, or a query that keeps its checkpoint elsewhere.
    """
    from pyspark.sql.streaming import StreamingQuery

    if not isinstance(returned, StreamingQuery):
        came = "None" if returned is None else type(returned).__name__
        raise BadInput(f"{location(job.start)} returned {came}: return the query, as writeStream….start() gives it")
    checkpoint = folder_of_checkpoint(returned._jsq.streamingQuery())
    if not checkpoint.resolve().is_relative_to(folder.resolve()) and "/temporary-" not in str(checkpoint):
        returned.stop()
        raise BadInput(
            f"{location(job.start)} keeps its checkpoint in {visible(str(checkpoint))}: put it below the folder that "
            "it is given, for each history starts with none"
        )
    return returned


def folder_of_checkpoint(query: Any) -> Path:
    """Return the folder of the checkpoint of a query, which is the JVM's, as far as it is on this machine."""
    return Path(re.sub("^file:/*", "/", str(query.resolvedCheckpointRoot())))

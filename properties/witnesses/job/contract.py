"""Checks what a job returns; the error names the function, its line, what it returned, and the remedy."""

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
"""The Maven coordinates of the jars for Spark's external formats, by format."""


def location(function: Any) -> str:
    """Return a function's name, file and line as a text for messages."""
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
    """Call a user's function with DataFrames as arguments.

    Raises:
        BadInput: The function doesn't take these arguments, raises, exits, or stops the Spark session.
    """
    from pyspark.sql import SparkSession

    arguments = [*inputs, *static, *more]
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:
        pass  # `inspect` finds no signature of some functions written in C
    except TypeError:
        given = [f"{len(inputs)} input{'s' * (len(inputs) != 1)}"] if inputs else []
        given += [f"{len(static)} static table{'s' * (len(static) != 1)}"] * bool(static)
        given += ["a folder" if len(more) == 1 else "a target and a checkpoint"] * bool(more)
        raise BadInput(
            f"{location(function)} can't be called with {' and '.join(given)}: the check passes them by position, in "
            "the order in which you give them to the check"
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
        raise BadInput(
            f"{location(function)} stopped the Spark session: only the code that started the session may stop it"
        )
    return returned


def raised(function: Any, error: BaseException) -> str:
    """Return the description of a function's exception for messages, with the line of the function."""
    from pyspark.errors import AnalysisException

    kind = "is refused by Spark" if isinstance(error, AnalysisException) else f"raised {type(error).__name__}"
    own = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    at = f", in line {line_in(str(own), frames[-1].lineno or 0)}: `{frames[-1].line}`" if frames else ""
    return f"{location(function)} {kind}: {first_line(error).rstrip('.')}{at}{_of_jar(text_of(error))}"


def _of_jar(reason: str) -> str:
    """Return the remedy for a format's missing jar; empty: no jar is missing."""
    import pyspark

    found = re.search(r"[Ff]ailed to find (?:the )?data source: `?(\w+)", reason)
    name = "jdbc:postgresql" if "No suitable driver" in reason else found[1] if found is not None else ""
    if name not in JARS:
        return ""
    package = JARS[name].format(spark=pyspark.__version__)
    return (
        f': start the session of the tests with the jar of {name}, .config("spark.jars.packages", "{package}"), or '
        "with the newest published version of this jar"
    )


def frame_of(job: Any, returned: Any, *, streaming: bool) -> Any:
    """Return a job's DataFrame, after checking it.

    Raises:
        BadInput: The job returned something else, or a DataFrame that doesn't stream or has two columns of the same
            name.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

    where = location(job)
    if returned is None:
        raise BadInput(f"{where} returned None: return the streaming DataFrame of the result")
    if isinstance(returned, StreamingQuery):
        returned.stop()
        raise BadInput(
            f"{where} returned a query that it had started: return the DataFrame that the query writes, or give the "
            "check Sink(start=…, read=…), whose second function reads the query's output"
        )
    if not isinstance(returned, DataFrame):
        raise BadInput(f"{where} returned {type(returned).__name__}: return the streaming DataFrame of the result")
    if streaming and not returned.isStreaming:
        raise BadInput(f"{where} returned a batch DataFrame: derive the DataFrame from the job's streaming inputs")
    names = [name.lower() for name in returned.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"{where} returned two columns named {twice[0]!r}: rename one of them with .alias()")
    return returned


def query_of(job: Any, returned: Any, folder: Path) -> Any:
    """Return the query that a sink's function started. The query's checkpoint must be temporary, or in the sink's
    folder.

    Raises:
        BadInput: The function returned no query, or a query with its checkpoint in another folder.
    """
    from pyspark.sql.streaming import StreamingQuery

    if not isinstance(returned, StreamingQuery):
        came = "None" if returned is None else type(returned).__name__
        raise BadInput(f"{location(job.start)} returned {came}: return the query that writeStream….start() returns")
    checkpoint = folder_of_checkpoint(returned._jsq.streamingQuery())
    if not checkpoint.resolve().is_relative_to(folder.resolve()) and "/temporary-" not in str(checkpoint):
        returned.stop()
        raise BadInput(
            f"{location(job.start)} keeps its checkpoint in {visible(str(checkpoint))}: put the checkpoint below the "
            "folder that the function receives, because each history needs a new checkpoint"
        )
    return returned


def folder_of_checkpoint(query: Any) -> Path:
    """Return a query's checkpoint folder, as a local path."""
    return Path(re.sub("^file:/*", "/", str(query.resolvedCheckpointRoot())))

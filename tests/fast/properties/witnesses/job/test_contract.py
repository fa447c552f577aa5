"""A job that raises is named by its own file and line, whatever library it called."""

from __future__ import annotations

import functools
import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from streamproof import BadInput, Sink
from streamproof.properties.witnesses.job.contract import called, frame_of, location, query_of, raised


def through_a_library(clicks: Any) -> Any:
    return json.loads("{")


@functools.wraps(through_a_library)
def wrapped(clicks: Any) -> Any:
    return through_a_library(clicks)


def itself(clicks: Any) -> Any:
    raise ValueError("first line.\nsecond line")


@pytest.mark.parametrize(
    ("function", "error", "said", "code"),
    [
        (through_a_library, None, "raised JSONDecodeError: Expecting property name", 'return json.loads("{")'),
        (wrapped, None, "raised JSONDecodeError: Expecting property name", 'return json.loads("{")'),
        (itself, None, "raised ValueError: first line, in", r'raise ValueError("first line.\nsecond line")'),
        (itself, KeyError("x"), "raised KeyError: 'x'", ""),
    ],
)
def test_what_a_function_raises_is_told_with_its_own_line(function: Any, error: Any, said: str, code: str) -> None:
    try:
        function(None)
    except ValueError as found:
        error = error or found
    text = raised(function, error)
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    assert Path(__file__).name in text.partition(" raised ")[0]
    assert said in text
    at = next((first + number for number, line in enumerate(lines) if code and code in line), 0)
    assert (f", in line {at}: `{code}`" in text) == bool(code)
    assert "\n" not in text


class Frame(DataFrame):
    """A DataFrame of which only the columns are known, and whether it streams."""

    isStreaming = True
    columns = ("user", "total")  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Query(StreamingQuery):
    """A query that notes that it is stopped, with its checkpoint in a folder."""

    def __init__(self, checkpoint: str) -> None:
        self.stopped = 0
        of = SimpleNamespace(resolvedCheckpointRoot=lambda: checkpoint)
        self._jsq = SimpleNamespace(streamingQuery=lambda: of)

    def stop(self) -> None:
        self.stopped += 1


def frame(**more: Any) -> Any:
    made = object.__new__(type("Frame", (Frame,), more))
    return made


@pytest.mark.parametrize(
    ("returned", "streaming", "why"),
    [
        (frame(), True, ""),
        (frame(), False, ""),
        (frame(isStreaming=False), False, ""),
        (frame(isStreaming=False), True, "returned a batch DataFrame: derive the DataFrame"),
        (frame(columns=("a", "B", "b")), True, "returned two columns named 'b': rename one of them"),
        (None, True, "returned None: return the streaming DataFrame"),
        (5, True, "returned int: return the streaming DataFrame"),
    ],
)
def test_a_job_returns_a_frame_that_streams_with_distinct_columns(returned: Any, streaming: bool, why: str) -> None:
    if not why:
        assert frame_of(itself, returned, streaming=streaming) is returned
        return
    with pytest.raises(BadInput, match=why):
        frame_of(itself, returned, streaming=streaming)


def test_a_query_that_a_job_returns_is_stopped_and_refused() -> None:
    query = Query("/run")
    with pytest.raises(BadInput, match="returned a query that it had started: return the DataFrame"):
        frame_of(itself, query, streaming=True)
    assert query.stopped == 1


@pytest.mark.parametrize(
    ("checkpoint", "is_taken"),
    [
        ("file:/run/job/checkpoint", True),
        ("file:///run/job", True),
        ("/run/jobs/checkpoint", False),
        ("file:/tmp/temporary-1234", True),
        ("/elsewhere", False),
    ],
)
def test_a_sink_s_query_has_its_checkpoint_in_the_folder_that_it_is_given(checkpoint: str, is_taken: bool) -> None:
    sink, query = Sink(itself, itself), Query(checkpoint)
    if is_taken:
        assert query_of(sink, query, Path("/run/job")) is query
    else:
        with pytest.raises(BadInput, match=f"keeps its checkpoint in {checkpoint}: put the checkpoint below"):
            query_of(sink, query, Path("/run/job"))
    assert query.stopped == (not is_taken)
    with pytest.raises(BadInput, match="returned None: return the query"):
        query_of(sink, None, Path("/run/job"))


def ends(clicks: Any) -> Any:
    raise SystemExit(2)


def refuses(clicks: Any) -> Any:
    raise BadInput("it is refused")


def stops(clicks: Any) -> Any:
    raise GeneratorExit


@pytest.mark.parametrize(
    ("function", "given", "said"),
    [
        (itself, ([1, 2], [], []), "can't be called with 2 inputs: the check passes them by position"),
        (itself, ([1], [2], []), "can't be called with 1 input and 1 static table: the check passes"),
        (itself, ([], [1, 2], [3]), "can't be called with 2 static tables and a folder: the check"),
        (itself, ([1], [], [2, 3]), "with 1 input and a target and a checkpoint: the check passes"),
        (ends, ([1], [], []), r"ended the program with exit\(2\): return instead"),
        (refuses, ([1], [], []), "^it is refused$"),
        (stops, ([1], [], []), "raised GeneratorExit"),
        (str, ([1], [], []), "stopped the Spark session: only the code that started the session"),
    ],
)
def test_a_function_that_can_not_be_called_so_is_refused(
    function: Any, given: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: True))
    monkeypatch.setattr(SparkSession, "_instantiatedSession", SimpleNamespace(_jsc=context))
    with pytest.raises(BadInput, match=said):
        called(function, *given)


def test_a_function_without_a_signature_is_called_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))
    monkeypatch.setattr(SparkSession, "_instantiatedSession", SimpleNamespace(_jsc=context))
    assert called(max, [1], [3], [2]) == 3
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    with pytest.raises(BadInput, match="stopped the Spark session"):
        called(max, [1], [3], [2])


def test_the_place_of_a_function_is_that_of_what_it_wraps() -> None:
    plain = location(itself)
    assert plain.startswith("itself (")
    assert location(functools.partial(functools.partial(itself, 1), 2)) == plain
    assert location(wrapped) == location(through_a_library)
    assert location(Callable().method).startswith("Callable.method (")
    assert location(Callable()).startswith("Callable (")
    assert location(max) == "max"
    named = Callable()
    named._streamproof_location = "here"  # type: ignore[attr-defined]
    assert location(named) == "here"


class Callable:
    def __call__(self) -> None: ...

    def method(self) -> None: ...


def test_a_jar_that_spark_lacks_is_named() -> None:
    for reason, jar in (
        ("Failed to find data source: kafka. Please deploy", "spark-sql-kafka"),
        ("Failed to find the data source: `kafka`.", "spark-sql-kafka"),
        ("No suitable driver", "org.postgresql:postgresql"),
        ("Failed to find data source: other", None),
    ):
        text = raised(itself, ValueError(reason))
        assert ("spark.jars.packages" in text) == (jar is not None)
        assert jar is None or jar in text

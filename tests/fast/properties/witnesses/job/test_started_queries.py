"""Which queries are a job's: those that its function starts, whether they still run or not."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter
from streamproof.properties.witnesses.job.as_in_a_check import as_in_a_check, started_queries


@pytest.mark.parametrize("name", ["start", "toTable"])
@pytest.mark.parametrize(
    ("in_thread", "in_own_session", "counts"),
    [(False, False, True), (False, True, True), (True, False, True), (True, True, False)],
)
def test_a_job_s_queries_are_those_of_its_thread_and_of_its_session(
    monkeypatch: pytest.MonkeyPatch, name: str, in_thread: bool, in_own_session: bool, counts: bool
) -> None:
    """Checks run side by side, and what one starts in its thread and session is no query of another's job."""
    of_check: Any = SimpleNamespace(_jsparkSession="of the check")
    used = SimpleNamespace(_jsparkSession="its own") if in_own_session else of_check
    writer: Any = SimpleNamespace(_df=SimpleNamespace(sparkSession=used))
    monkeypatch.setattr(DataStreamWriter, name, lambda writer: "the query")
    stored, came = [], []

    def storing(result: Any) -> Any:
        stored.append(result)
        return contextlib.nullcontext()

    with started_queries(of_check, storing) as queries:
        if in_thread:
            thread = threading.Thread(target=lambda: came.append(getattr(DataStreamWriter, name)(writer)))
            thread.start()
            thread.join()
        else:
            came.append(getattr(DataStreamWriter, name)(writer))
    assert came == ["the query"]
    assert queries == came * counts
    assert stored == [writer._df] * counts


def test_a_trigger_waits_for_no_interval_in_a_check_and_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataStreamWriter, "trigger", lambda writer, **named: named)
    writer: Any = object()
    triggers: list[str] = []
    with as_in_a_check(lambda function: function, lambda writer: writer, "start", triggers):
        assert DataStreamWriter.trigger(writer, processingTime="1 hour") == {"processingTime": "0 seconds"}
        assert DataStreamWriter.trigger(writer, availableNow=True) == {"availableNow": True}
    assert triggers == ["processingTime='1 hour'"]

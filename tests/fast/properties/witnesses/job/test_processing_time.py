"""The clock that a query is given: the time of the micro-batch after the last that is committed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.witnesses.job import processing_time
from streamproof.properties.witnesses.job.processing_time import _Clock, at_times


def time_ms(number: int) -> int:
    return 1_000 * number


def test_the_clock_shows_the_time_of_the_micro_batch_behind_the_last_commit(tmp_path: Path) -> None:
    clock = _Clock(tmp_path, time_ms)
    assert clock.getTimeMillis() == 0
    (tmp_path / "commits").mkdir()
    for name, now in (("0", 1_000), ("9", 10_000), ("10", 11_000), (".11.crc", 11_000), ("metadata", 11_000)):
        (tmp_path / "commits" / name).touch()
        assert clock.getTimeMillis() == now
    assert clock.waitTillTime(7) == 7
    assert clock.nanoTime() <= clock.nanoTime()


def test_a_query_that_starts_is_given_the_clock_and_none_that_starts_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    listening: list[Any] = []
    query = SimpleNamespace(resolvedCheckpointRoot=lambda: f"file:{tmp_path}")
    queries = {"q1": SimpleNamespace(streamingQuery=lambda: query)}
    field = SimpleNamespace(set=lambda of, clock: given.append((of, clock)))
    monkeypatch.setattr(processing_time, "private_fields", lambda of, name: [field] * (name == "triggerClock"))
    spark: Any = SimpleNamespace(
        streams=SimpleNamespace(addListener=listening.append, removeListener=listening.remove),
        _jsparkSession=SimpleNamespace(streams=lambda: SimpleNamespace(get=queries.__getitem__)),
    )
    with at_times(spark, time_ms):
        (listener,) = listening
        for told in (listener.onQueryProgress, listener.onQueryIdle, listener.onQueryTerminated):
            told(None)
        assert given == []
        listener.onQueryStarted(SimpleNamespace(id="q1"))
    ((of, clock),) = given
    assert (of is query, clock.commits, clock.getTimeMillis(), listening) == (True, tmp_path / "commits", 0, [])
    with pytest.raises(ValueError, match="x"), at_times(spark, time_ms):
        raise ValueError("x")
    assert listening == []

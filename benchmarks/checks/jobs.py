"""Measures the check of a user's own job: its time, and the number of histories per second in a shared query."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from typing import Any

from ..figures import Figure, Setting, Target, figure, ratio

AT_LEAST = Target("at least", 200)
SECOND_CHECK = Target("under", 20)
VIOLATION = Target("under", 3)
SINK_ROUNDS = 1
"""The number of rounds for sinks, each of which takes minutes."""


def run(setting: Setting) -> list[Figure]:
    """Measure, in turn, a second check of Spark's session windows, a shared query, and queries of one history."""
    from streamproof import Input, Sink, check_job, invariants, session_windows
    from streamproof.properties.generators.columns.histories.drawing import draw_histories
    from streamproof.properties.generators.columns.packing import pack, tables_alone
    from streamproof.properties.generators.columns.resolving import resolve_all
    from streamproof.properties.laws.variation import BATCHES
    from streamproof.properties.witnesses.job.running import Runner

    clicks = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
    expected = session_windows(gap="30 minutes", delay="10 minutes", aggregates={"total": ("sum", "amount")})
    many, few = setting.size(5_000, 100), setting.size(5, 1)
    resolved = resolve_all([clicks])
    runner = Runner(_sessions, [given.source for given in resolved])
    drawn = draw_histories(resolved, [1_800_000_000, 600_000_000], many, 0, BATCHES, delay_us=600_000_000)
    check_job(_sessions, clicks, expect=expected)  # this check isn't measured: it starts the session
    checks, shared, alone = [], [], []
    violations, kept, repeated = [], [], []

    def asked_of_sink(mode: str) -> float:
        sink = Sink(functools.partial(_appended, mode=mode), _read)
        return _timed(lambda: invariants(sink, clicks, histories=setting.size(20, 10)))

    for number in range(setting.times()):
        setting.progress(f"round {number + 1} of {setting.times()}")
        checks.append(_timed(lambda: check_job(_sessions, clicks, expect=expected)))
        violations.append(_timed(lambda: check_job(_late, clicks, expect=expected)))
        if number < SINK_ROUNDS:
            kept.append(asked_of_sink("overwrite"))
            repeated.append(asked_of_sink("append"))
        start = time.perf_counter()
        runner.run(pack(drawn, resolved), drawn[0].clock)
        shared.append(many / (time.perf_counter() - start))
        start = time.perf_counter()
        for history in drawn[:few]:
            runner.run(tables_alone(history, runner.sources), history.clock)
        alone.append(few / (time.perf_counter() - start))
    together = figure("a native job in a shared query", "histories/s", shared, f"{many:,} histories", AT_LEAST)
    by_itself = figure("a native job, a query a history", "histories/s", alone, f"{few} histories")
    second = figure("the second check of a session", "seconds", checks, "300 histories", SECOND_CHECK)
    violated = figure("a check that finds a violation", "seconds", violations, "300 histories")
    right, wrong = (
        figure(f"invariants of a sink that {does}", "seconds", of, "20 histories")
        for does, of in (("keeps its rows", kept), ("repeats its rows", repeated))
    )
    return [
        second,
        violated,
        ratio("a violation over a pass", violated, second, VIOLATION),
        right,
        wrong,
        ratio("a sink's violation over a pass", wrong, right, VIOLATION),
        together,
        by_itself,
        ratio("a shared query over a query a history", together, by_itself),
    ]


def _timed(check: Callable[[], object]) -> float:
    start = time.perf_counter()
    with contextlib.suppress(AssertionError):
        check()
    return time.perf_counter() - start


def _sessions(clicks: Any, delay: str = "10 minutes") -> Any:
    from pyspark.sql import functions as F

    sessions = clicks.withWatermark("at", delay).groupBy("user", F.session_window("at", "30 minutes"))
    return sessions.agg(F.sum("amount").alias("total"))


def _late(clicks: Any) -> Any:
    return _sessions(clicks, "1 minute")


def _appended(clicks: Any, folder: Any, mode: str) -> Any:
    def write(rows: Any, number: int) -> None:
        rows.write.mode(mode).parquet(str(folder / "out" / (str(number) if mode == "overwrite" else "")))

    query = _sessions(clicks).writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    return query.start()


def _read(folder: Any) -> Any:
    import pyarrow.dataset as ds

    files = sorted(map(str, (folder / "out").rglob("*.parquet")))
    return ds.dataset(files).to_table().to_pylist() if files else []

"""Measures the check of a user's own job: how long one takes, and how many histories a second a shared query serves."""

from __future__ import annotations

import time
from typing import Any

from .figures import Figure, Setting, Target, figure, ratio

AT_LEAST = Target("at least", 200)
SECOND_CHECK = Target("under", 20)


def run(setting: Setting) -> list[Figure]:
    """Measure on Spark's own session windows; a second check, a shared query and queries of one history take turns."""
    from streamproof import Input, check_job, session_windows
    from streamproof.properties.jobs.check import BATCHES
    from streamproof.properties.jobs.histories.drawing import draw_histories
    from streamproof.properties.jobs.histories.inputs import resolve_all
    from streamproof.properties.jobs.histories.packing import pack, tables_alone
    from streamproof.properties.jobs.queries.running import Runner

    clicks = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
    expected = session_windows(gap="30 minutes", delay="10 minutes", aggregates={"total": ("sum", "amount")})
    many, few = setting.size(5_000, 100), setting.size(5, 1)
    resolved = resolve_all([clicks])
    runner = Runner(_sessions, [given.source for given in resolved])
    drawn = draw_histories(resolved, [1_800_000_000, 600_000_000], many, 0, BATCHES, delay_us=600_000_000)
    check_job(_sessions, clicks, expect=expected)  # the session starts, and is warm
    checks, shared, alone = [], [], []
    for number in range(setting.times()):
        setting.progress(f"round {number + 1} of {setting.times()}")
        start = time.perf_counter()
        check_job(_sessions, clicks, expect=expected)
        checks.append(time.perf_counter() - start)
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
    return [second, together, by_itself, ratio("a shared query over a query a history", together, by_itself)]


def _sessions(clicks: Any) -> Any:
    from pyspark.sql import functions as F

    sessions = clicks.withWatermark("at", "10 minutes").groupBy("user", F.session_window("at", "30 minutes"))
    return sessions.agg(F.sum("amount").alias("total"))

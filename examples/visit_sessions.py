"""The visits to a web shop: the page views of a visitor with pauses of at most 30 minutes, and what was spent in each.

A rewrite of `previous` (Spark's own `session_window`) with state of its own, as one is written when a visit is to carry
more than an aggregate can. `wrong` compares pauses with `<`: two page views exactly 30 minutes apart become two visits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

GAP_US = 30 * 60 * 1_000_000
VISIT = "visitor string, started_us bigint, last_us bigint, views bigint, cents bigint"

Visit = tuple[int, int, int, int]


def job(page_views: DataFrame) -> DataFrame:
    """Visits, each emitted once it has been over for 10 minutes."""
    return _visits(page_views, lambda pause_us: pause_us <= GAP_US)


def wrong(page_views: DataFrame) -> DataFrame:
    """The same, with an exclusive gap."""
    return _visits(page_views, lambda pause_us: pause_us < GAP_US)


def previous(page_views: DataFrame) -> DataFrame:
    """The last version of the job, which the new one is to agree with."""
    visits = (
        page_views.withWatermark("viewed_at", "10 minutes")
        .groupBy("visitor", F.session_window("viewed_at", "30 minutes").alias("visit"))
        .agg(F.count("*").alias("views"), F.sum(F.coalesce("spent", F.lit(0))).cast("decimal(20,2)").alias("spent"))
    )
    last_view = F.col("visit.end") - F.expr("INTERVAL 30 MINUTES")
    return visits.select("visitor", F.col("visit.start").alias("started"), last_view.alias("ended"), "views", "spent")


def _visits(page_views: DataFrame, same_visit: Callable[[int], bool]) -> DataFrame:
    def close_visits(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        spans: list[Visit] = [tuple(visit) for visit in json.loads(state.get[0])] if state.exists else []
        if not state.hasTimedOut:
            for frame in frames:
                spans += [(at_us, at_us, 1, cents) for at_us, cents in zip(frame["at_us"], frame["cents"], strict=True)]
        visits: list[Visit] = []
        for started, last, views, cents in sorted(spans):
            if visits and same_visit(started - visits[-1][1]):
                before = visits.pop()
                visits.append((before[0], max(before[1], last), before[2] + views, before[3] + cents))
            else:
                visits.append((started, last, views, cents))
        watermark_us = state.getCurrentWatermarkMs() * 1000
        still_open = [visit for visit in visits if visit[1] + GAP_US > watermark_us]
        if still_open:
            state.update((json.dumps(still_open, default=int),))
            # A timeout fires once the watermark is beyond it: a visit is over when the watermark reaches its end.
            state.setTimeoutTimestamp(-(-(min(last for _, last, _, _ in still_open) + GAP_US) // 1000) - 1)
        else:
            state.remove()
        closed = [(*key, *visit) for visit in visits if visit[1] + GAP_US <= watermark_us]
        yield pd.DataFrame(closed, columns=["visitor", "started_us", "last_us", "views", "cents"])

    cents = F.coalesce(F.col("spent") * 100, F.lit(0)).cast("bigint")
    views = page_views.withWatermark("viewed_at", "10 minutes").select(
        "visitor", "viewed_at", F.unix_micros("viewed_at").alias("at_us"), cents.alias("cents")
    )
    visits = views.groupBy("visitor").applyInPandasWithState(
        close_visits, VISIT, "open string", "append", GroupStateTimeout.EventTimeTimeout
    )
    started, ended = F.timestamp_micros("started_us"), F.timestamp_micros("last_us")
    spent = (F.col("cents") / 100).cast("decimal(20,2)")
    return visits.select("visitor", started.alias("started"), ended.alias("ended"), "views", spent.alias("spent"))

"""The visits to a web shop: page views of a visitor with pauses of at most 30 minutes, and the money spent in each
visit.

`job` rewrites `previous`, which uses Spark's `session_window`, with its own state, because its visits have more fields
than an aggregate can return. `wrong` compares pauses with `<`: two page views exactly 30 minutes apart become two
visits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

GAP_US = 30 * 60 * 1_000_000
VISIT = "started_us bigint, last_us bigint, views bigint, cents bigint"

Visit = tuple[int, int, int, int]


def job(page_views: DataFrame) -> DataFrame:
    """Return visits, each emitted 10 minutes after its end."""
    return _visits(page_views, Visits(operator.le))


def wrong(page_views: DataFrame) -> DataFrame:
    """Return visits with an exclusive gap: the bug."""
    return _visits(page_views, Visits(operator.lt))


def previous(page_views: DataFrame) -> DataFrame:
    """Return the visits of the previous version, with which the new version should agree."""
    visits = (
        page_views.withWatermark("viewed_at", "10 minutes")
        .groupBy("visitor", F.session_window("viewed_at", "30 minutes").alias("visit"))
        .agg(F.count("*").alias("views"), F.sum(F.coalesce("spent", F.lit(0))).cast("decimal(20,2)").alias("spent"))
    )
    last_view = F.col("visit.end") - F.expr("INTERVAL 30 MINUTES")
    return visits.select("visitor", F.col("visit.start").alias("started"), last_view.alias("ended"), "views", "spent")


class Visits(StatefulProcessor):
    """Merges page views into visits.

    Args:
        within: The comparison that decides whether a pause is within the gap.
    """

    def __init__(self, within: Callable[[int, int], bool]) -> None:
        self.within = within

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: the visits that aren't over."""
        self.handle = handle
        self.open = handle.getListState("open", VISIT)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Merge page views with each other and with the open visits."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * 1000
        spans: list[Visit] = list(self.open.get())
        for frame in rows:
            for at_us, cents in zip(frame["at_us"], frame["cents"], strict=True):
                # As in session_window, a view is late if a visit of this view alone would be over.
                if at_us + GAP_US > watermark_us:
                    spans.append((int(at_us), int(at_us), 1, int(cents)))
        visits: list[Visit] = []
        for started, last, views, cents in sorted(spans):
            if visits and self.within(started - visits[-1][1], GAP_US):
                before = visits.pop()
                visits.append((before[0], max(before[1], last), before[2] + views, before[3] + cents))
            else:
                visits.append((started, last, views, cents))
        if visits:
            self.open.put(visits)
        for _, last, _, _ in visits:
            self.handle.registerTimer(-(-(last + GAP_US) // 1000))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """Emit the visits that are over."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * 1000
        visits: list[Visit] = list(self.open.get())
        still_open = [visit for visit in visits if visit[1] + GAP_US > watermark_us]
        if len(still_open) == len(visits):
            return
        if still_open:
            self.open.put(still_open)
        else:
            self.open.clear()
        over = [(*key, *visit) for visit in visits if visit[1] + GAP_US <= watermark_us]
        yield pd.DataFrame(over, columns=["visitor", "started_us", "last_us", "views", "cents"])


def _visits(page_views: DataFrame, processor: StatefulProcessor) -> DataFrame:
    cents = F.coalesce(F.col("spent") * 100, F.lit(0)).cast("bigint")
    # Leave out the watermark's column, because Spark would otherwise drop late views that still belong to a visit.
    views = page_views.withWatermark("viewed_at", "10 minutes").select(
        "visitor", F.unix_micros("viewed_at").alias("at_us"), cents.alias("cents")
    )
    visits = views.groupBy("visitor").transformWithStateInPandas(
        processor, f"visitor string, {VISIT}", outputMode="append", timeMode="eventTime"
    )
    started, ended = F.timestamp_micros("started_us"), F.timestamp_micros("last_us")
    spent = (F.col("cents") / 100).cast("decimal(20,2)")
    return visits.select("visitor", started.alias("started"), ended.alias("ended"), "views", spent.alias("spent"))

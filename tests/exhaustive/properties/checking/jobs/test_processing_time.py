"""Timeouts and timers of processing time: batches run at the times of the history's clock."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from check_job_setup import CLICKS
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from streamproof import BadInput, Violated, as_batch, check_job, invariants
from streamproof.properties.checking.jobs.arguments import runner_of
from streamproof.properties.generators.columns.formatting import duration
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.histories.drawing import draw_clock_of_timeouts
from streamproof.properties.generators.columns.histories.goals import covered, goals
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.packing import tables_alone
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.witnesses.job import processing_time
from streamproof.properties.witnesses.run_options import Crash, RunOptions

SOURCE = resolve(CLICKS).source
SECOND_US = 1_000_000
SILENT = timedelta(minutes=30)
SILENT_MS = 1_800_000
VISITS = "user string, clicks bigint"


def visit(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    before = state.get[0] if state.exists else 0
    if state.hasTimedOut:
        state.remove()
        yield pd.DataFrame({"user": [key[0]], "clicks": [before]})
        return
    state.update((before + sum(map(len, frames)),))
    state.setTimeoutDuration(SILENT_MS)


def by_timeout(clicks: DataFrame) -> DataFrame:
    timeout = GroupStateTimeout.ProcessingTimeTimeout
    return clicks.groupBy("user").applyInPandasWithState(visit, VISITS, "n bigint", "append", timeout)


class Visit(StatefulProcessor):
    """Emits a visit by a timer once the user has been silent."""

    def init(self, handle: Any) -> None:
        self.handle, self.count = handle, handle.getValueState("count", "count bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        for timer in [*self.handle.listTimers()]:
            self.handle.deleteTimer(timer)
        before = self.count.get()[0] if self.count.exists() else 0
        self.count.update((before + sum(1 for _ in rows),))
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + SILENT_MS)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        yield Row(user=key[0], clicks=self.count.get()[0])
        self.count.clear()

    def close(self) -> None:
        pass


def by_timer(clicks: DataFrame) -> DataFrame:
    return clicks.groupBy("user").transformWithState(Visit(), VISITS, "append", "ProcessingTime")


class Visits:
    """Visits that end in the first batch that runs at their end or after it, as timers fire."""

    def __init__(self) -> None:
        self.clicks: dict[str, int] = {}
        self.until: dict[str, datetime] = {}
        self.came: set[str] = set()

    def arrive(self, row: dict[str, Any]) -> None:
        self.came.add(row["user"])
        self.clicks[row["user"]] = self.clicks.get(row["user"], 0) + 1

    def advance(self, clock: datetime) -> list[dict[str, Any]]:
        over = [user for user, until in self.until.items() if user not in self.came and self.is_over(until, clock)]
        self.until = {user: until for user, until in self.until.items() if user not in over}
        self.until |= dict.fromkeys(self.came, clock + SILENT)
        self.came = set()
        return [{"user": user, "clicks": self.clicks.pop(user)} for user in over]

    def is_over(self, until: datetime, clock: datetime) -> bool:
        return until <= clock


class VisitsByTimeout(Visits):
    """Visits that end in the first batch after their end, as timeouts do."""

    def is_over(self, until: datetime, clock: datetime) -> bool:
        return until < clock


def history(*times_us: int, users: str) -> JobHistory:
    """Return a history of batches with a row of a user each, `.` for none."""
    row = {"at": from_microseconds(0), "amount": 1}
    rows = [() if user == "." else (Arrival("clicks", {"user": user, **row}),) for user in users]
    return JobHistory(tuple(rows), times_us)


def test_batches_are_apart_by_each_timeout_and_by_a_millisecond_less_and_more() -> None:
    timeouts = [60 * SECOND_US, 5 * SECOND_US]
    clock = draw_clock_of_timeouts(random.Random(0), 0, timeouts, 8)
    gaps = [later - earlier for earlier, later in pairwise(clock)]
    assert len(clock) == 8
    assert {gap + by for gap in timeouts for by in (-1_000, 0, 1_000)} <= {*gaps}
    assert goals([resolve(CLICKS)], [], timeouts_us=[SECOND_US])[:3] == [
        "no rows of a key for exactly 1 second",
        "no rows of a key for 1 ms less than 1 second",
        "no rows of a key for 1 ms more than 1 second",
    ]


def test_a_key_is_silent_from_a_batch_with_its_rows_to_each_one_before_its_next() -> None:
    given = history(0, 1, 3, 7, 15, users="a.ba.")
    exactly = [f"no rows of a key for exactly {duration(us)}" for us in range(17)]
    met = covered([given], [SOURCE], [], timeouts_us=range(17))
    assert {us for us in range(17) if exactly[us] in met} == {1, 3, 4, 8, 12}
    assert "no rows of a key for exactly 1 second" not in met


def test_a_history_without_heartbeats_runs_at_the_event_times_that_it_reaches() -> None:
    times = [5, 3, 9]
    rows = [Arrival("clicks", {"user": "a", "at": from_microseconds(1_000 * ms), "amount": 1}) for ms in times]
    assert JobHistory(((), *((row,) for row in rows))).times_ms([SOURCE]) == [0, 5, 5, 9]


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"timeouts": ["0 seconds"]}, "timeouts has '0 seconds': .*a multiple of 1 ms"),
        ({"timeouts": ["30 minutes"], "trigger": "available_now"}, "checked under the default trigger"),
        ({"timeouts": ["30 minutes"], "expect": as_batch()}, "a batch query has no processing-time timeouts"),
    ],
    ids=["none", "available now", "a batch"],
)
def test_what_can_t_be_checked_is_refused(given: dict[str, Any], refused: str) -> None:
    with pytest.raises(BadInput, match=refused):
        check_job(by_timeout, CLICKS, **{"expect": Visits, **given})


def test_timeouts_and_functions_take_the_time_of_the_clock_after_a_stop_and_a_crash_too() -> None:
    def job(clicks: DataFrame) -> DataFrame:
        return by_timeout(clicks).withColumn("now", F.current_timestamp())

    silent_us = 1_000 * SILENT_MS
    at = [silent_us, 2 * silent_us, 2 * silent_us + 1_000, 3 * silent_us + 1_000, 4 * silent_us + 2_000]
    given = history(*at, users="a.ba.")
    _, runner = runner_of(job, [CLICKS], 0, None)
    run = RunOptions(processing_time=True, empty_batches=True, stop_after=(0, 1), crash_in=(Crash(2), Crash(3)))
    output = runner.run(tables_alone(given, [SOURCE]), given.clock, run, given.times_ms([SOURCE]))
    rows = [sorted((row["user"], row["clicks"], row["now"]) for row in batch) for batch in output.batches]
    now = [from_microseconds(time_us) for time_us in at]
    assert rows == [[], [], [("a", 1, now[2])], [], [("a", 1, now[4]), ("b", 1, now[4])]]


def test_a_spark_that_keeps_its_own_clock_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing_time, "_FIELD", "anotherClock")
    with pytest.raises(BadInput, match="doesn't let a check set a query's clock"):
        check_job(by_timeout, CLICKS, expect=VisitsByTimeout, histories=10, timeouts=["30 minutes"])


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(("job", "right"), [(by_timeout, VisitsByTimeout), (by_timer, Visits)])
@pytest.mark.in_ci("by_timeout-VisitsByTimeout")
def test_a_timeout_ends_after_its_time_and_a_timer_at_it(job: Any, right: type[Visits]) -> None:
    given: Any = {"histories": 60, "timeouts": ["30 minutes"]}
    assert check_job(job, CLICKS, expect=right, **given).expecting > 10
    (wrong,) = {Visits, VisitsByTimeout} - {right}
    with pytest.raises(Violated, match=r"(?s)the model Visits.*runs at"):
        check_job(job, CLICKS, expect=wrong, **given)


def test_a_right_job_of_processing_time_keeps_the_invariants() -> None:
    # The others run the same batches, and a test above stops a query and lets it die.
    others = ["a restart", "a crash", "the number of partitions", "histories of other keys in the query"]
    report = invariants(by_timeout, CLICKS, histories=20, timeouts=["30 minutes"], without=others)
    assert {*report.laws} == {"the order within a batch", "rows one at a time"}
    assert any(one.startswith("the cuts between batches: a row's batch determines") for one in report.not_checked)


class Remembered(StatefulProcessor):
    """Counts a user's clicks; Spark forgets a count that isn't updated for half an hour."""

    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "count bigint", ttlDurationMs=SILENT_MS)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        before = self.count.get()[0] if self.count.exists() else 0
        clicks = before + sum(1 for _ in rows)
        self.count.update((clicks,))
        yield Row(user=key[0], clicks=clicks)

    def close(self) -> None:
        pass


def remembered(clicks: DataFrame) -> DataFrame:
    return clicks.groupBy("user").transformWithState(Remembered(), VISITS, "append", "ProcessingTime")


class Lifetimes:
    """Counts that live for half an hour after their last batch with rows."""

    def __init__(self) -> None:
        self.clicks: dict[str, int] = {}
        self.until: dict[str, datetime] = {}
        self.came: list[str] = []

    def arrive(self, row: dict[str, Any]) -> None:
        self.came.append(row["user"])

    def advance(self, clock: datetime) -> list[dict[str, Any]]:
        rows = []
        for user in sorted({*self.came}):
            lives = user in self.until and not self.is_over(self.until[user], clock)
            self.clicks[user] = (self.clicks[user] if lives else 0) + self.came.count(user)
            self.until[user] = clock + SILENT
            rows.append({"user": user, "clicks": self.clicks[user]})
        self.came = []
        return rows

    def is_over(self, until: datetime, clock: datetime) -> bool:
        return until <= clock


class LongerLifetimes(Lifetimes):
    def is_over(self, until: datetime, clock: datetime) -> bool:
        return until < clock


@pytest.mark.weekly("half a minute: CI asks of timeouts, by the same clock")
@pytest.mark.usefixtures("unshrunk")
def test_state_lives_as_long_as_its_time_to_live_by_the_clock() -> None:
    check_job(remembered, CLICKS, expect=Lifetimes, timeouts=[SILENT])
    with pytest.raises(Violated):
        check_job(remembered, CLICKS, expect=LongerLifetimes, timeouts=[SILENT])

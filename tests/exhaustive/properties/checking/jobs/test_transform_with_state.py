"""Jobs of `transformWithState`: each kind of state, timers and an initial state, as rows and as pandas frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor
from streamproof import Input, Violated, check_job, invariants
from streamproof.properties.checking.jobs import invariants as module

MINUTE_MS = 60_000
OUTPUT = "user string, what string, value bigint"
KINDS = {"kind": ["x", "y"], "amount": [1, 2, 3, 4, 5]}
READINGS = Input("user string, at timestamp, kind string, amount bigint", key="user", name="readings", values=KINDS)
OPENING = [{"user": "a", "amount": 100, "due": 1_729_991_000_000}, {"user": "c", "amount": 50, "due": 0}]
"""The initial state, with a timer at 2024-10-27 01:03:20 and one in the past."""
Reading = tuple[str, int, int]
"""A kind, an amount, and a time in milliseconds."""


class Readings(StatefulProcessor):
    """Keeps a sum, the three largest amounts and a count by kind; 10 and 20 minutes after a reading it reminds of it.

    A form says how the processor is given rows and what it returns. A bug is named by what it leaves out.
    """

    def __init__(self, bug: str = "", *, timers: bool = True) -> None:
        self.bug, self.timers = bug, timers

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.total = handle.getValueState("total", "amount bigint")
        self.best = handle.getListState("best", "amount bigint")
        self.kinds = handle.getMapState("kinds", "kind string", "count bigint")

    def open(self, amount: int, due: int) -> None:
        self.total.update((0 if self.bug == "initial state" else amount,))
        if self.timers:
            self.handle.registerTimer(due)

    def read(self, user: str, readings: list[Reading], now_ms: int) -> list[tuple[str, str, int]]:
        total = (self.total.get()[0] if self.total.exists() else 0) + sum(amount for _, amount, _ in readings)
        self.total.update((total,))
        best = sorted([*(amount for (amount,) in self.best.get()), *(amount for _, amount, _ in readings)])[-3:]
        keep = self.best.appendList if self.bug == "list" else self.best.put
        keep([(amount,) for amount in best])
        for kind, _, _ in readings:
            count = self.kinds.getValue((kind,))[0] if self.kinds.containsKey((kind,)) else 0
            self.kinds.updateValue((kind,), (1 if self.bug == "map" else count + 1,))
        for time_ms in [at + minutes * MINUTE_MS for _, _, at in readings if self.timers for minutes in (10, 20)]:
            if self.bug == "several timers":
                for earlier in [*self.handle.listTimers()]:
                    self.handle.deleteTimer(earlier)
            if self.bug != "timer in the past" or time_ms > now_ms:
                self.handle.registerTimer(time_ms)
        counts = [(user, f"kind {kind}", count) for (kind,), (count,) in self.kinds.iterator()]
        return [(user, "total", total), (user, "best", int("".join(map(str, best)))), *counts]


class AsRows(Readings):
    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:
        self.open(initialState.amount, initialState.due)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        readings, now_ms = [(row.kind, row.amount, row.ms) for row in rows], timerValues.getCurrentWatermarkInMs()
        return (Row(user=user, what=what, value=value) for user, what, value in self.read(key[0], readings, now_ms))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield Row(user=key[0], what="due", value=expiredTimerInfo.getExpiryTimeInMs())


class AsFrames(Readings):
    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        self.open(int(initialState["amount"].iloc[0]), int(initialState["due"].iloc[0]))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        frame = pd.concat([*rows])
        readings = [*zip(frame["kind"], map(int, frame["amount"]), map(int, frame["ms"]), strict=True)]
        found = self.read(key[0], readings, timerValues.getCurrentWatermarkInMs())
        yield pd.DataFrame(found, columns=["user", "what", "value"])

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"user": [key[0]], "what": ["due"], "value": [expiredTimerInfo.getExpiryTimeInMs()]})


class ByRows:
    """The job with a processor of rows and timers of event time."""

    mode = "eventTime"

    def __init__(self, bug: str = "") -> None:
        self.bug = bug

    def __call__(self, readings: DataFrame, opening: DataFrame) -> DataFrame:
        read = readings.withWatermark("at", "5 minutes")
        # Without the column of the watermark the processor gets late readings too, whose timers are in the past.
        by_user = read.select("user", "kind", "amount", F.unix_millis("at").alias("ms")).groupBy("user")
        return self.transformed(by_user, opening.groupBy("user"))

    def transformed(self, by_user: Any, opening: Any) -> DataFrame:
        frame: DataFrame = by_user.transformWithState(AsRows(self.bug), OUTPUT, "append", self.mode, opening)
        return frame


class ByFrames(ByRows):
    """The job with a processor of pandas frames and without timers."""

    mode = "none"

    def transformed(self, by_user: Any, opening: Any) -> DataFrame:
        processor = AsFrames(self.bug, timers=False)
        frame: DataFrame = by_user.transformWithStateInPandas(processor, OUTPUT, "append", self.mode, opening)
        return frame


class Expected:
    """What the job emits, reading by reading."""

    timers = True

    def __init__(self) -> None:
        self.read: dict[str, list[Mapping[str, Any]]] = {}
        self.now: set[str] = set()
        self.due = {(row["user"], row["due"]) for row in OPENING if self.timers}
        self.totals = Counter({row["user"]: row["amount"] for row in OPENING})

    def arrive(self, row: Mapping[str, Any]) -> None:
        user = row["user"]
        self.now.add(user)
        self.read.setdefault(user, []).append(row)
        self.totals[user] += row["amount"]
        if self.timers:
            self.due |= {(user, int(row["at"].timestamp() * 1000) + minutes * MINUTE_MS) for minutes in (10, 20)}

    def advance(self, clock: datetime) -> list[dict[str, Any]]:
        watermark = (clock - timedelta(minutes=5)).timestamp() * 1000
        due = {timer for timer in self.due if timer[1] <= watermark}
        rows = [row for user in self.now for row in self.rows_of(user)] + [(user, "due", at) for user, at in due]
        self.due, self.now = self.due - due, set()
        return [dict(zip(("user", "what", "value"), row, strict=True)) for row in rows]

    def rows_of(self, user: str) -> list[tuple[str, str, int]]:
        read = self.read[user]
        best = sorted(row["amount"] for row in read)[-3:]
        counts = Counter(row["kind"] for row in read)
        found = [(user, f"kind {kind}", count) for kind, count in counts.items()]
        return [*found, (user, "total", self.totals[user]), (user, "best", int("".join(map(str, best))))]


class ExpectedWithoutTimers(Expected):
    timers = False


EXPECTED = {ByRows: Expected, ByFrames: ExpectedWithoutTimers}
BUGS = {ByRows: ("several timers", "timer in the past", "initial state"), ByFrames: ("list", "map", "initial state")}


def check(job: ByRows, histories: int = 20) -> Any:
    tables = {"opening": OPENING}
    timeouts = ["10 minutes", "20 minutes"] if job.mode == "eventTime" else []
    expect = EXPECTED[type(job)]
    return check_job(job, READINGS, static=tables, expect=expect, timeouts=timeouts, histories=histories)


@pytest.mark.parametrize("form", [ByRows, ByFrames])
@pytest.mark.in_ci("ByFrames")
def test_a_right_processor_conforms_and_its_histories_share_a_query(form: type[ByRows]) -> None:
    report = check(form())
    assert (report.histories, report.alone) == (20, "")


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(("form", "bug"), [(form, bug) for form, bugs in BUGS.items() for bug in bugs])
@pytest.mark.in_ci("ByRows-several timers", "ByFrames-map")
def test_a_bug_in_state_or_timers_is_found(form: type[ByRows], bug: str) -> None:
    with pytest.raises(Violated):
        check(form(bug))


def named(readings: DataFrame, opening: DataFrame) -> DataFrame:
    """Join by a key of another name, which no history that shares a query has."""
    names = opening.withColumnRenamed("user", "id")
    return readings.join(names, readings.user == names.id, "left").select("user", "due", readings.amount)


@pytest.mark.parametrize("job", [ByFrames(), named], ids=["initial state", "join by another name"])
@pytest.mark.in_ci("join by another name")
def test_a_job_that_knows_its_keys_by_a_table_isnt_condemned_for_the_histories_beside_it(
    job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = module.variations_of
    monkeypatch.setattr(module, "variations_of", lambda *given: [each for each in every(*given) if each.is_alone])
    report = invariants(job, READINGS, static={"opening": OPENING}, histories=20)
    assert report.laws == {"histories of other keys in the query": 3}

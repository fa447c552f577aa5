"""Right jobs as people write them, each under the simplest oracle: none is condemned.

A shape is what the job selects of its result, and in which output mode. It conforms, or is refused with what to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from streamproof import BadInput, Input, as_batch, check_job, sql, windows

CLICKS = Input("user string, at timestamp, page string, amount bigint", key="user", name="clicks")
RIDES = Input(
    "rideId bigint, endTime timestamp, startTime timestamp, driverId int", "endTime", key="rideId", name="rides"
)
FARES = Input("rideId bigint, startTime timestamp, tip double", key="rideId", name="fares")
PAYLOADS = [f'{{"id": "{name}", "made": "2024-10-27T0{hour}:00:00Z"}}' for name in "ab" for hour in (1, 2, 3)]
KAFKA = Input("key string, value string, timestamp timestamp", key="key", name="kafka", values={"value": PAYLOADS})
HISTORIES = 30
LOST_KEY, ALIKE = "and no column of the key (user)", "with equal values in .*: name the columns"


@dataclass(frozen=True)
class Shape:
    """A right job.

    Attributes:
        name: What it is like.
        job: The job.
        mode: Its output mode.
        inputs: Its inputs.
        expect: The oracle.
        refused: A pattern of the message with which it is refused; empty where it conforms.
        alone: Why each history runs in a query of its own; empty where they share one.
        given: What else the check is given.
    """

    name: str
    job: Callable[..., DataFrame]
    mode: str = "append"
    inputs: tuple[Input, ...] = (CLICKS,)
    expect: Any = field(default_factory=as_batch)
    refused: str = ""
    alone: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)


def counted(clicks: DataFrame, *keys: Any) -> DataFrame:
    rows = clicks.withWatermark("at", "10 minutes")
    return rows.groupBy(F.window("at", "5 minutes"), *(keys or ("user",))).agg(F.count("*").alias("clicks"))


SELECTED: Mapping[str, list[str]] = {
    "the window as it is": ["window", "user", "clicks"],
    "the window renamed": ["user", "window.start AS window_start", "window.end", "clicks"],
    "the start alone": ["user", "window.start", "clicks"],
    "key and window nested": ["user", "struct(window, user) AS key", "clicks"],
    "a text of the window": ["user", "date_format(window.start, 'yyyy-MM-dd HH:mm') AS minute", "clicks"],
    "the window dropped": ["user", "clicks"],
}


IN_COMPLETE = ("the window renamed", "a text of the window", "the window dropped")
"""What is selected in complete mode, in which a batch is the whole table: no column has to tell what replaces a row."""


def shapes_of_windows() -> Iterator[Shape]:
    for mode in ("append", "update", "complete"):
        for what, columns in SELECTED.items():
            if mode == "complete" and what not in IN_COMPLETE:
                continue

            def job(clicks: DataFrame, columns: list[str] = columns) -> DataFrame:
                return counted(clicks).selectExpr(*columns)

            refused = ALIKE if (mode, what) == ("update", "the window dropped") else ""
            yield Shape(f"{what}, {mode}", job, mode, refused=refused)


def kept(key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    count = (state.get[0] if state.exists else 0) + sum(map(len, frames))
    state.update((count,))
    yield pd.DataFrame({"who": [key[0]], "user": [key[0]], "clicks": [count]})


def with_state(clicks: DataFrame) -> DataFrame:
    timeout = GroupStateTimeout.NoTimeout
    return clicks.groupBy("user").applyInPandasWithState(
        kept, "who string, user string, clicks int", "n int", "update", timeout
    )


def seen_twice(clicks: DataFrame) -> DataFrame:
    clicks.createOrReplaceTempView("clicks")
    return clicks.sparkSession.sql("SELECT DISTINCT user, page FROM clicks")


def rides_with_fares(rides: DataFrame, fares: DataFrame) -> DataFrame:
    paid = fares.selectExpr("rideId AS paidRide", "startTime AS paidAt", "tip").withWatermark("paidAt", "30 minutes")
    ended = rides.withWatermark("endTime", "30 minutes")
    near = "paidRide = rideId AND endTime > paidAt AND endTime <= paidAt + INTERVAL 2 HOURS"
    return paid.join(ended, F.expr(near)).select("rideId", "paidRide", "endTime", "paidAt", "tip", "driverId")


def of_payload(kafka: DataFrame) -> DataFrame:
    made = kafka.select("key", F.from_json("value", "id string, made timestamp").alias("data")).select("key", "data.*")
    return made.withWatermark("made", "10 minutes").groupBy("key", F.window("made", "1 hour")).count()


def packed(clicks: DataFrame) -> DataFrame:
    options = {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}
    payload = F.to_json(F.struct("*"), options).alias("value")
    data = F.from_json("value", "user string, at timestamp, amount bigint", options).alias("data")
    return counted(clicks.select(payload).select(data).select("data.*"))


EVERY = "SELECT user, page, count(*) AS clicks FROM clicks GROUP BY ALL"
SHAPES = [
    *shapes_of_windows(),
    Shape("rows as they are, append", lambda clicks: clicks),
    Shape("rows as they are, update", lambda clicks: clicks, "update"),
    Shape("deduplicated, append", lambda clicks: clicks.dropDuplicates(["user", "page"]).select("user", "page")),
    Shape(
        "deduplicated, update", lambda clicks: clicks.dropDuplicates(["user", "page"]).select("user", "page"), "update"
    ),
    Shape("distinct in SQL, update", seen_twice, "update"),
    Shape(
        "a key beside the input's, renamed", lambda c: c.groupBy(F.col("page").alias("what"), "user").count(), "update"
    ),
    Shape(
        "both keys, and the window", lambda c: counted(c, "user", "page").select("window.end", "user", "page"), "update"
    ),
    Shape("a derived key", lambda c: c.groupBy("user", (F.col("amount") % 2).alias("odd")).count(), "update"),
    Shape(
        "a key dropped", lambda c: c.groupBy("user", "page").count().select("user", "count"), "update", refused=ALIKE
    ),
    Shape(
        "a key dropped, with the columns that are unique",
        lambda c: c.groupBy("user", "page").count().select("user", F.col("page").alias("p"), "count"),
        "update",
        given={"unique": ["user", "p"]},
    ),
    Shape("the input's key dropped", lambda c: c.groupBy("page").count(), "update", alone=LOST_KEY),
    Shape(
        "by SQL, renamed",
        lambda c: c.groupBy("page", "user").agg(F.count("*").alias("clicks")),
        "update",
        expect=sql(EVERY),
    ),
    Shape(
        "by a rule, renamed",
        lambda c: counted(c).select("window", "user", "clicks"),
        "update",
        expect=windows("5 minutes", delay="10 minutes", aggregates={"clicks": "count"}),
    ),
    Shape(
        "exploded after the grouping",
        lambda c: c.groupBy("user").agg(F.collect_set("page").alias("pages")).select("user", F.explode("pages")),
        "update",
        refused=ALIKE,
    ),
    Shape(
        "joined with a table",
        lambda c, t: c.groupBy("user", "page").count().join(t, "page", "left"),
        "update",
        given={"static": {"pages": [{"page": "x", "section": 1}]}},
    ),
    Shape(
        "state in pandas, by its key's name",
        with_state,
        "update",
        expect=sql("SELECT user, user AS who, count(*) AS clicks FROM clicks GROUP BY ALL"),
    ),
    Shape("two streams on bigint keys", rides_with_fares, inputs=(RIDES, FARES)),
    Shape(
        "two streams, another event time",
        rides_with_fares,
        inputs=(Input(RIDES.schema, "startTime", "rideId", "rides"), FARES),
        refused="watermark on 'endTime', and the event time of its input is 'startTime'",
    ),
    Shape("a payload's event time", of_payload, inputs=(KAFKA,), refused="takes its event time from other columns"),
    Shape("a payload made of the input's columns", packed),
    Shape("a payload, late rows said", packed, given={"out_of_order": "5 minutes"}),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.in_ci(
    "deduplicated, append",
    "a derived key",
    "the input's key dropped",
    "two streams on bigint keys",
    "a payload, late rows said",
)
def test_a_right_job_is_not_condemned(shape: Shape) -> None:
    given: dict[str, Any] = {"expect": shape.expect, "mode": shape.mode, "histories": HISTORIES, **shape.given}
    if not shape.refused:
        alone = check_job(shape.job, *shape.inputs, **given).alone
        assert shape.alone in alone if shape.alone else not alone
        return
    with pytest.raises(BadInput, match=shape.refused):
        check_job(shape.job, *shape.inputs, **given)

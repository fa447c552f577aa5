"""Nexmark's queries in the benchmark: by streamproof's operators, by Spark's operators if a single query suffices, and
in SQL.

Source: the statements of github.com/nexmark/nexmark. The SQL is the published SQL for DuckDB, over whole tables,
without streaming windows or sessions. The published SQL doesn't define ties. Here the first arriving bid wins an
auction (q9), and the last arriving bid of a bidder at the same time is the last (q18). Times are in ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .sql import SQL

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from streamproof.reference.definitions.aggregates import Aggregate
    from streamproof.spark_impl.runtime.inputs import JoinInput

Frames: TypeAlias = "Mapping[str, DataFrame]"

WINDOW, GAP, GRACE = "10 seconds", "10 seconds", "4 seconds"
"""The published sizes, and the published watermark's delay."""
CATEGORY = "category = 10"
"""The category of the auctions of q20."""
LONGEST = "1 second"
"""The gap of q9's sessions: three times the longest auction, so that a session contains all bids for one auction."""
ARRIVED: Mapping[str, Any] = {"timestamp": "time", "order": "order"}
AUCTION = ("id", "item_name", "description", "initial_bid", "reserve", "time", "expires", "seller", "category", "extra")
OF_BID = ("auction", "bidder", "price", "time", "extra")
BID = ("auction", "bidder", "price", "channel", "url", "time", "extra")


@dataclass(frozen=True)
class Query:
    """A query.

    Attributes:
        reads: The kinds of events that the query reads.
        build: A function that declares the query by streamproof's operators over the events' streams, and returns a
            changelog.
        keys: The key columns of the changelog. The last change of each key counts.
        shown: A function that computes the query's columns from the last changes.
        own: A function that declares the query by Spark's own operators, and returns the query's columns. The value is
            None if one Spark query can't express the query.
    """

    reads: tuple[str, ...]
    build: Callable[[Frames], DataFrame]
    keys: tuple[str, ...]
    shown: Callable[[DataFrame], DataFrame]
    own: Callable[[Frames], DataFrame] | None = None


def _best(name: str, better: Callable[[Any, Any], bool]) -> Aggregate:
    """Return an aggregate that keeps the best value, which only a better value replaces."""
    from streamproof.reference.definitions.aggregates import reduce

    return reduce(lambda one, two: two if better(two, one) else one, name)


def _wins(two: Any, one: Any) -> bool:
    two, one = two["right"], one["right"]
    return (-two["price"], two["time"], two["order"]) < (-one["price"], one["time"], one["order"])


def _is_later(two: Any, one: Any) -> bool:
    return (two["time"], two["order"]) > (one["time"], one["order"])


def _highest_bids() -> Aggregate:
    """Return an aggregate that keeps the bids with the highest price: several bids if prices are equal."""
    from streamproof.reference.definitions.aggregates import Aggregate

    def merged(key: Any, one: list[Any], two: list[Any]) -> list[Any]:
        if not one or not two or one[0]["price"] == two[0]["price"]:
            return [*one, *two]
        return max(one, two, key=lambda bids: bids[0]["price"])

    return Aggregate("highest bids", list, lambda key, bid, bids: merged(key, bids, [bid]), merged)


def _average() -> Aggregate:
    """Return an aggregate that keeps the sum and the number of a table's values."""
    from streamproof.reference.definitions.aggregates import Aggregate

    def moved(by: int) -> Callable[[Any, int, dict[str, int]], dict[str, int]]:
        return lambda key, value, seen: {"sum": seen["sum"] + by * value, "count": seen["count"] + by}

    def both(key: Any, one: dict[str, int], two: dict[str, int]) -> dict[str, int]:
        return {"sum": one["sum"] + two["sum"], "count": one["count"] + two["count"]}

    return Aggregate("average", lambda: {"sum": 0, "count": 0}, moved(1), both, subtractor=moved(-1))


def _row(*names: str) -> Column:
    from pyspark.sql import functions as F

    return F.struct(*names).alias("value")


def _type_of(frame: DataFrame, column: Column) -> Any:
    return frame.select(column).schema[0].dataType


def _valid_bids(inputs: Frames, auction: Column, bid: Column) -> DataFrame:
    """Join auctions with the bids that arrived while the auction was open."""
    from pyspark.sql import functions as F
    from streamproof.spark_impl.inputs import stream
    from streamproof.spark_impl.stream_stream_join import stream_stream_join

    pairs = stream_stream_join(
        stream(inputs["auction"], key="id", value=auction, **ARRIVED),
        stream(inputs["bid"], key=F.col("auction").alias("id"), value=bid, **ARRIVED),
        before="0 ms",
        after=LONGEST,
        grace=GRACE,
    )
    return pairs.filter("value.right.time <= value.left.expires")


def _winners(inputs: Frames, auction: Column, bid: Column) -> DataFrame:
    """Return the winning bid of each auction, once all its bids have arrived."""
    from streamproof.spark_impl.session_windows import session_windows

    pairs = _valid_bids(inputs, auction, bid)
    return session_windows(
        pairs,
        key="id",
        timestamp="timestamp",
        order="place",
        gap=LONGEST,
        grace=GRACE,
        value="value",
        aggregate=_best("winning bid", _wins),
        value_type=pairs.schema["value"].dataType,
        emit="close",
        late="own",
    )


def _q4(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F
    from streamproof.spark_impl.table_aggregate import table_aggregate

    return table_aggregate(
        _winners(inputs, _row("expires", "category"), _row("price", "time", "order")),
        key="id",
        timestamp="timestamp",
        order="place",
        group_by=F.col("value.left.category").alias("category"),
        value=F.col("value.right.price").alias("price"),
        aggregate=_average(),
        value_type="struct<sum: bigint, count: bigint>",
    )


def _q7(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
    from streamproof.spark_impl.inputs import stream
    from streamproof.spark_impl.windowed_table import windowed_table

    return windowed_table(
        stream(inputs["bid"], key=F.lit("all").alias("key"), value=_row(*OF_BID), **ARRIVED),
        size=WINDOW,
        grace=GRACE,
        aggregate=_highest_bids(),
        value_type=T.ArrayType(_type_of(inputs["bid"], _row(*OF_BID))),
        emit="close",
    )


def _q7_own(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    highest = F.max_by(_row(*OF_BID), F.struct("price", -F.col("order"))).alias("value")
    return timed(inputs["bid"]).groupBy(F.window("at", WINDOW)).agg(highest).select("value.*")


def _q8(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F
    from streamproof.spark_impl.inputs import stream
    from streamproof.spark_impl.windowed_table import windowed_table

    sellers: JoinInput = stream(
        inputs["auction"], key=F.col("seller").alias("id"), value=F.lit("").alias("value"), **ARRIVED
    )
    return windowed_table(
        stream(inputs["person"], key="id", value="name", **ARRIVED),
        sellers,
        size=WINDOW,
        grace=GRACE,
        aggregate="max",
        emit="close",
        with_="windowed_table",
        join="inner",
    )


def _q8_own(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    window = F.window("at", WINDOW).alias("window")
    people = timed(inputs["person"]).groupBy("id", "name", window).agg(F.lit(1).alias("one")).drop("one")
    sellers = timed(inputs["auction"]).groupBy(F.col("seller").alias("id"), window).agg(F.lit(1).alias("one"))
    return people.join(sellers.drop("one"), ["id", "window"]).select("id", "name", _start("window.start"))


def _q9(inputs: Frames) -> DataFrame:
    return _winners(inputs, _row(*AUCTION), _row(*OF_BID, "order"))


def _q9_own(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    auctions = timed(inputs["auction"]).select(_row(*AUCTION).alias("left"), F.col("at").alias("open"))
    bids = timed(inputs["bid"]).select(_row(*OF_BID, "order").alias("right"), "at")
    meet = "left.id = right.auction AND at BETWEEN open AND open + INTERVAL 1 SECOND AND right.time <= left.expires"
    pairs = auctions.join(bids, F.expr(meet)).withColumn("id", F.col("left.id"))
    by = F.struct("right.price", -F.col("right.time"), -F.col("right.order"))
    winners = pairs.groupBy("id", F.session_window("at", LONGEST)).agg(F.max_by(F.struct("left", "right"), by))
    return winners.toDF("id", "window", "value").select(*_of_winner())


def _q11(inputs: Frames) -> DataFrame:
    from streamproof.spark_impl.session_windows import session_windows

    return session_windows(inputs["bid"], key="bidder", gap=GAP, grace=GRACE, emit="close", late="own", **ARRIVED)


def _q11_own(inputs: Frames) -> DataFrame:
    from streamproof.spark_impl.session_windows import native_session_windows

    return _sessions(native_session_windows(inputs["bid"], key="bidder", timestamp="time", gap=GAP, grace=GRACE))


def _q18(inputs: Frames) -> DataFrame:
    from streamproof.spark_impl.session_windows import session_windows

    value = _row(*BID, "order")
    return session_windows(
        inputs["bid"],
        key=["bidder", "auction"],
        gap=GAP,
        grace=GRACE,
        value=value,
        aggregate=_best("last bid", _is_later),
        value_type=_type_of(inputs["bid"], value),
        emit="close",
        late="own",
        **ARRIVED,
    )


def _q18_own(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    last = F.max_by(_row(*BID), F.struct("time", "order")).alias("value")
    pairs = timed(inputs["bid"]).groupBy("bidder", "auction", F.session_window("at", GAP))
    return pairs.agg(last).select("value.*")


def _q20(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F
    from streamproof.spark_impl.foreign_key_join import foreign_key_join
    from streamproof.spark_impl.inputs import table

    return foreign_key_join(
        table(inputs["bid"], key=F.col("order").alias("number"), value=_row(*BID), **ARRIVED),
        table(inputs["auction"].filter(CATEGORY), key="id", value=_row(*AUCTION), **ARRIVED),
        foreign_key=F.col("auction"),
    )


def _q20_own(inputs: Frames) -> DataFrame:
    from pyspark.sql import functions as F

    auctions = inputs["auction"].filter(CATEGORY).select(_row(*AUCTION).alias("right"))
    bids = inputs["bid"].select(_row(*BID).alias("left"))
    return bids.join(auctions, F.col("left.auction") == F.col("right.id")).select(*_of_pair("left", BID, "right"))


def timed(events: DataFrame) -> DataFrame:
    """Add an event's time as a timestamp with a watermark."""
    from pyspark.sql import functions as F

    return events.withColumn("at", F.timestamp_millis("time")).withWatermark("at", GRACE)


def _start(column: str) -> Column:
    from pyspark.sql import functions as F

    return F.unix_millis(column).alias("start")


def _sessions(last: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return last.select(
        "bidder", F.col("value").alias("bids"), _start("window.start"), F.unix_millis("window.end").alias("last")
    )


def _of_winner() -> list[Column]:
    from pyspark.sql import functions as F

    return [
        *(F.col(f"value.left.{name}") for name in AUCTION),
        *(F.col(f"value.right.{name}").alias(f"bid_{name}") for name in OF_BID),
    ]


def _of_pair(bid: str, names: tuple[str, ...], auction: str) -> list[Column]:
    from pyspark.sql import functions as F

    return [
        *(F.col(f"{bid}.{name}") for name in names),
        *(F.col(f"{auction}.{name}").alias(f"auction_{name}") for name in AUCTION),
    ]


QUERIES: Mapping[str, Query] = {
    "q4": Query(
        ("auction", "bid"),
        _q4,
        ("category",),
        lambda last: last.selectExpr("category", "value.sum div value.count AS average", "value.sum", "value.count"),
    ),
    "q7": Query(("bid",), _q7, ("key", "window"), lambda last: last.selectExpr("inline(value)"), _q7_own),
    "q8": Query(
        ("person", "auction"),
        _q8,
        ("id", "window"),
        lambda last: last.select("id", "value.left", _start("window.start")),
        _q8_own,
    ),
    "q9": Query(("auction", "bid"), _q9, ("id",), lambda last: last.select(*_of_winner()), _q9_own),
    "q11": Query(("bid",), _q11, ("bidder", "window"), _sessions, _q11_own),
    "q18": Query(("bid",), _q18, ("bidder", "auction"), lambda last: last.select("value.*").drop("order"), _q18_own),
    "q20": Query(
        ("bid", "auction"),
        _q20,
        ("number",),
        lambda last: last.select(*_of_pair("value.left", BID, "value.right")),
        _q20_own,
    ),
}
assert QUERIES.keys() == SQL.keys()

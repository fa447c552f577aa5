"""Chains: an operator's changelog is a valid input of the next one, with the same result as the composed reference.

All chains run in one query, over random streams that share a clock, as histories do in a cohort.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from streamproof.properties.witnesses.spark.query import run_stream
from streamproof.reference.core.clocks import Clock, make_clock
from streamproof.reference.core.operator import operator_named
from streamproof.reference.core.records import Change, Output, Record, Value
from streamproof.spark_impl.foreign_key_join import foreign_key_join
from streamproof.spark_impl.inputs import table
from streamproof.spark_impl.runtime.inputs import JoinInput
from streamproof.spark_impl.runtime.logic import Arrived, in_order_of
from streamproof.spark_impl.session_windows import session_windows
from streamproof.spark_impl.stream_stream_join import stream_stream_join
from streamproof.spark_impl.stream_table_join import stream_table_join
from streamproof.spark_impl.table_aggregate import table_aggregate
from streamproof.spark_impl.table_table_join import table_table_join

STREAMS, BATCHES = 50, 3
Changelog = dict[tuple[int, str], list[tuple[Value, int]]]
"""By batch and key: what is emitted, in order."""

# The composed reference.


class Composed:
    """Two machines, the changes of the first being records of the second.

    Attributes:
        first: A behaviour, or a composition.
        takes: On which input the first one takes which input of the streams.
        feed: Makes of a change of the first one a record of the second.
        second: The next behaviour.
        takes_too: On which input the second one takes which input of the streams.
    """

    def __init__(
        self, first: Any, takes: Mapping[str, str], feed: Callable[[Change], Record], second: Any, **takes_too: str
    ) -> None:
        self.first, self.takes, self.feed, self.second, self.takes_too = first, takes, feed, second, takes_too

    def arrive(self, record: Record) -> list[Output]:
        if record.input in self.takes:
            return self.fed(self.first.arrive(record._replace(input=self.takes[record.input])))
        if record.input in self.takes_too:
            return list(self.second.arrive(record._replace(input=self.takes_too[record.input])))
        return []

    def advance(self) -> list[Output]:
        return [*self.second.advance(), *self.fed(self.first.advance())]

    def fed(self, outputs: list[Output]) -> list[Output]:
        changes = [output for output in outputs if isinstance(output, Change)]
        return [emitted for change in changes for emitted in self.second.arrive(self.feed(change))]


def machine(operator: str, clock: Clock, **options: Any) -> Any:
    known = operator_named(operator)
    return known.behaviour(known.declare(options), clock)


def as_session(change: Change, side: str = "left") -> Record:
    """A session, its window put into its value, as it is for `toStream`; a tombstone has none."""
    value = None
    if change.value is not None:
        assert change.window is not None
        value = {"start": change.window[0], "end": change.window[1], "sum": change.value}
    return Record(side, change.key, value, change.timestamp)


def as_member(change: Change) -> Record:
    """A row of a join, as a member of the group that its right side names."""
    value = None
    if change.value is not None:
        left, right = change.value
        value = {"group": right and right["ref"], "member": (left or {}).get("sum", (left or {}).get("v", 0))}
    return Record("events", change.key, value, change.timestamp)


# The chains, on Spark and composed.

IN_ORDER: dict[str, Any] = {"key": "key", "timestamp": "timestamp", "order": "order"}
NEXT: dict[str, Any] = {"key": "key", "timestamp": "timestamp", "value": "value", "order": "place"}
BUGGED = "30|"
"""From this prefix on the streams' changes are taken in a wrong order, where a chain says so."""


class Chain(NamedTuple):
    """A chain on Spark, of the frame with all inputs, and the machine that it is checked against.

    Attributes:
        spark: The chain on Spark.
        composed: The composed reference, on a clock.
        bugged: Whether some streams' changes are taken in a wrong order.
    """

    spark: Callable[[DataFrame], DataFrame]
    composed: Callable[[Clock], Any]
    bugged: bool = False


def rows(frame: DataFrame, name: str) -> DataFrame:
    return frame.filter(F.col("input") == name)


def beside(frame: DataFrame, name: str) -> JoinInput:
    """Another input, in its own order."""
    return table(rows(frame, name), order="order")


def after(changelog: DataFrame, order: Column | str = "place") -> JoinInput:
    """The changelog of the operator before."""
    return table(changelog, order=order)


def but_backwards(step: str) -> Column:
    """The place as it is; of bugged streams with one of its steps backwards."""
    backwards = F.col("place").withField(step, -F.col(f"place.{step}"))
    return F.when(F.col("key") >= BUGGED, backwards).otherwise(F.col("place")).alias("place")


def sessions(frame: DataFrame, emit: str) -> DataFrame:
    """The sessions' changelog, with the window in the value; a tombstone's value is null."""
    emitted = session_windows(
        rows(frame, "events"),
        **IN_ORDER,
        value="value.v",
        aggregate="sum",
        gap="4 ms",
        grace="5 ms",
        emit=emit,  # type: ignore[arg-type]
    )
    bounds = [F.unix_millis(f"window.{name}").alias(name) for name in ("start", "end")]
    inside = F.struct(*bounds, F.col("value").alias("sum"))
    return emitted.withColumn("value", F.when(F.col("value").isNotNull(), inside))


class Sessions:
    """The reference's sessions of the values' field `v`."""

    def __init__(self, clock: Clock, emit: str) -> None:
        self.inner = machine("session_windows", clock, gap_ms=4, grace_ms=5, aggregate="sum", emit=emit)

    def arrive(self, record: Record) -> list[Output]:
        return list(self.inner.arrive(record._replace(value=record.value["v"])))

    def advance(self) -> list[Output]:
        return list(self.inner.advance())


def sessions_then(emit: str, operator: str, options: dict[str, Any]) -> Callable[[Clock], Composed]:
    return lambda clock: Composed(
        Sessions(clock, emit), {"events": "events"}, as_session, machine(operator, clock, **options), right="right"
    )


def sum_of_joined_sessions(frame: DataFrame) -> DataFrame:
    """Of each key its last session joins a row, which names a group; the groups sum the sessions up."""
    joined = table_table_join(
        after(sessions(frame, "update"), but_backwards("step")),
        beside(frame, "right"),
        join="outer",
    )
    group, member = F.col("value.right.ref").alias("group"), F.coalesce("value.left.sum", F.lit(0))
    return table_aggregate(joined, **{**NEXT, "value": member}, group_by=group, aggregate="sum")


def composed_sum_of_joined_sessions(clock: Clock) -> Composed:
    joined = sessions_then("update", "table_table_join", {"join": "outer"})(clock)
    groups = machine("table_aggregate", clock, group_by="group", field="member", aggregate="sum")
    return Composed(joined, {"events": "events", "right": "right"}, as_member, groups)


def list_of_referring_rows(frame: DataFrame) -> DataFrame:
    """A foreign-key join, and of each right row's name those that refer to it: its change concerns several rows."""
    joined = foreign_key_join(
        beside(frame, "left"),
        beside(frame, "named"),
        foreign_key=F.col("value.ref"),
        state_groups=3,
    )
    group = F.col("value.right.ref").alias("group")
    in_order = {**NEXT, "value": F.col("value.left.v"), "order": but_backwards("step_2")}
    return table_aggregate(joined, **in_order, group_by=group, aggregate="list")


def composed_list_of_referring_rows(clock: Clock) -> Composed:
    joined = machine("foreign_key_join", clock, foreign_key="ref")
    groups = machine("table_aggregate", clock, group_by="group", field="member", aggregate="list")
    return Composed(joined, {"left": "left", "named": "right"}, as_member, groups)


CHAINS = {
    "closed sessions look up a table": Chain(
        lambda frame: stream_table_join(after(sessions(frame, "close")), beside(frame, "right")),
        sessions_then("close", "stream_table_join", {}),
    ),
    "closed sessions join a stream under the query's one clock": Chain(
        lambda frame: stream_stream_join(
            after(sessions(frame, "close")),
            beside(frame, "right"),
            before="6 ms",
            after="6 ms",
            grace="12 ms",
            join="outer",
            emit="close",
        ),
        sessions_then(
            "close",
            "stream_stream_join",
            {"before_ms": 6, "after_ms": 6, "grace_ms": 12, "join": "outer", "emit": "close"},
        ),
    ),
    "an aggregate of a join of sessions": Chain(sum_of_joined_sessions, composed_sum_of_joined_sessions, bugged=True),
    "an aggregate of a foreign-key join": Chain(list_of_referring_rows, composed_list_of_referring_rows, bugged=True),
}

# Random streams, and what comes of them.


def streams_drawn(seed: int) -> list[list[list[Record]]]:
    """For each stream its batches; values are objects with `v` and `ref`, keys and refs have the stream's prefix."""
    draw = random.Random(seed)
    streams = []
    for number in range(STREAMS):
        prefix = f"{number:02d}|"
        batches = []
        for batch in range(BATCHES):
            records = []
            for _ in range(draw.randint(0, 12)):
                side = draw.choice(["events", "events", "left", "left", "left", "right", "named", "named"])
                key = prefix + draw.choice({"named": "rs", "left": "abcd"}.get(side, "ab"))
                value = {"v": draw.randint(1, 9), "ref": draw.choice([prefix + "r", prefix + "r", prefix + "s", None])}
                deleted = side != "events" and draw.random() < 0.2
                at = max(0, batch * 12 + draw.randint(-12, 11))
                records.append(Record(side, key, None if deleted else value, at))
            batches.append(records)
        streams.append(batches)
    return streams


def tables_of(streams: list[list[list[Record]]]) -> list[pa.Table]:
    """One table a batch; its first row, under a key of no stream, moves the clock."""
    value = pa.struct([("v", pa.int64()), ("ref", pa.string())])
    tables, order = [], 0
    for batch in range(BATCHES):
        pushed = Record("events", "~", {"v": 0, "ref": None}, batch * 12 + 11)
        records = [pushed, *(record for stream in streams for record in stream[batch])]
        columns = dict(zip(("input", "key", "value", "timestamp"), zip(*records, strict=True), strict=True))
        columns["order"] = tuple(range(order, order + len(records)))
        order += len(records)
        kinds = {"input": pa.string(), "key": pa.string(), "value": value}
        arrays = {name: pa.array(column, kinds.get(name, pa.int64())) for name, column in columns.items()}
        tables.append(pa.table(arrays))
    return tables


def composed_changelog(streams: list[list[list[Record]]], chain: Chain) -> Changelog:
    emitted: Changelog = defaultdict(list)

    def emit(batch: int, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Change) and output.key is not None:
                emitted[batch, output.key].append((output.value, output.timestamp))

    for stream in streams:
        clock = make_clock("batch")
        composed = chain.composed(clock)
        for batch, records in enumerate(stream):
            for record in records:
                emit(batch, composed.arrive(record))
            clock.observe(batch * 12 + 11)
            clock.cut()
            emit(min(batch + 1, BATCHES - 1), composed.advance())
    return dict(emitted)


def value_of(found: Any) -> Value:
    """A value as the reference has it: a joined one as a list."""
    if isinstance(found, dict) and set(found) == {"left", "right"}:
        return [value_of(found["left"]), value_of(found["right"])]
    return found


@dataclass
class Ran:
    """What came of the streams, by chain: on Spark, and composed."""

    found: dict[str, Changelog]
    composed: dict[str, Changelog]


@pytest.fixture(scope="module")
def ran(spark: SparkSession) -> Ran:
    streams = streams_drawn(seed=1)

    def build(frame: DataFrame) -> DataFrame:
        results = []
        for name, chain in CHAINS.items():
            emitted = chain.spark(frame)
            value = F.to_json(F.struct("value"), {"ignoreNullFields": "false"}).alias("value")
            key = F.col(emitted.columns[0]).alias("key")
            results.append(emitted.select(F.lit(name).alias("chain"), key, value, "timestamp", "ordinal"))
        return reduce(DataFrame.unionByName, results)

    found: dict[str, Changelog] = defaultdict(lambda: defaultdict(list))
    for batch, written in run_stream(spark, tables_of(streams), build).batches:
        for row in sorted(written.to_pylist(), key=lambda row: row["ordinal"]):
            if row["key"] != "~":
                value = value_of(json.loads(row["value"])["value"])
                at = round(row["timestamp"].timestamp() * 1000)
                found[row["chain"]][batch, row["key"]].append((value, at))
    return Ran(
        {name: dict(changelog) for name, changelog in found.items()},
        {name: composed_changelog(streams, chain) for name, chain in CHAINS.items()},
    )


def steps(streams: list[list[list[Record]]], first: Callable[[Clock], Any], takes: Mapping[str, str]) -> list[int]:
    """How many changes each record of the bugged streams sets off in a chain's first operator."""
    found = []
    for stream in streams:
        clock = make_clock("batch")
        behaviour = first(clock)
        for batch, records in enumerate(stream):
            for record in records:
                if record.input in takes:
                    emitted = behaviour.arrive(record._replace(input=takes[record.input]))
                    found.append(len(emitted) if record.key is not None and record.key >= BUGGED else 0)
            clock.observe(batch * 12 + 11)
            clock.cut()
            behaviour.advance()
    return found


def test_one_record_often_sets_off_several_changes_of_a_chains_first_operator() -> None:
    streams = streams_drawn(seed=1)
    merges = steps(streams, lambda clock: Sessions(clock, "update"), {"events": "events"})
    answers = steps(
        streams,
        lambda clock: machine("foreign_key_join", clock, foreign_key="ref"),
        {"left": "left", "named": "right"},
    )
    assert sum(count > 1 for count in merges) > 10
    assert sum(count > 1 for count in answers) > 5


def test_a_place_is_sorted_field_by_field_and_null_goes_first() -> None:
    def arrived(*place: Any) -> Arrived:
        return Arrived(0, [*place], None)

    places = [(-1, None, 0), (-1, None, 1), (0, None, 5), (0, [3, None], 0), (0, [3, 1], 0)]
    rows = [arrived(*place) for place in places]
    assert in_order_of(rows[::-1], lambda row: (row.order, row.timestamp)) == rows


@pytest.fixture(scope="module")
def history(spark: SparkSession) -> DataFrame:
    """A history that has ended, as a batch DataFrame."""
    value = {"v": 1, "ref": None}
    arrived = [("events", 0), ("left", 1), ("events", 3), ("right", 9)]
    found = [(name, "a", value, at, order) for order, (name, at) in enumerate(arrived)]
    schema = "input string, key string, value struct<v: bigint, ref: string>, timestamp bigint, order bigint"
    return spark.createDataFrame(found, schema)


def emitted(result: DataFrame) -> list[Any]:
    return [row.value and row.value.asDict(recursive=True) for row in result.orderBy("ordinal").collect()]


def test_at_the_end_of_a_history_sessions_close_after_all_its_rows(history: DataFrame) -> None:
    result = stream_table_join(after(sessions(history, "close")), beside(history, "right"))
    session = {"start": 0, "end": 3, "sum": 2}
    assert emitted(result) == [{"left": session, "right": {"v": 1, "ref": None}}]


def test_two_changelogs_are_joined_in_the_order_of_the_rows_that_set_them_off(history: DataFrame) -> None:
    tables = table_table_join(beside(history, "left"), beside(history, "right"), join="left")
    result = table_table_join(after(sessions(history, "update")), after(tables), join="outer")
    first, both = ({"start": 0, "end": end, "sum": total} for end, total in ((0, 1), (3, 2)))
    row = {"v": 1, "ref": None}
    alone, pair = {"left": row, "right": None}, {"left": row, "right": row}
    assert emitted(result) == [
        {"left": first, "right": None},
        {"left": first, "right": alone},
        {"left": None, "right": alone},
        {"left": both, "right": alone},
        {"left": both, "right": pair},
    ]


def of_streams(changelog: Changelog, bugged: bool) -> Changelog:
    return {row: emitted for row, emitted in changelog.items() if (row[1] >= BUGGED) == bugged}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_on_spark_is_the_composed_reference(ran: Ran, name: str) -> None:
    found, composed = ran.found[name], ran.composed[name]
    if CHAINS[name].bugged:
        found, composed = of_streams(found, bugged=False), of_streams(composed, bugged=False)
    assert found == composed


@pytest.mark.parametrize("name", [name for name, chain in CHAINS.items() if chain.bugged])
def test_changes_that_are_taken_in_another_order_break_a_chain(ran: Ran, name: str) -> None:
    assert of_streams(ran.found[name], bugged=True) != of_streams(ran.composed[name], bugged=True)

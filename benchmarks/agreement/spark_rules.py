"""Counts on how many of 10,000 random histories Spark's own operators differ from the rules in `reference/spark`.

Times are drawn at the edges of gaps, sizes, delays and watermarks, or a microsecond or millisecond beside an edge.
Many histories share a query, each with its own keys. In each batch a row that belongs to no history, the driver row,
moves the watermark.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from streamproof.properties.generators.columns.forms.rows import Row, from_microseconds
from streamproof.properties.generators.columns.model import Arrival, JobHistory, Source
from streamproof.properties.laws.expected.rules import (
    Rule,
    drop_duplicates,
    session_windows,
    static_join,
    stream_join,
    union,
    windows,
)
from streamproof.properties.system.installed.spark_versions import arrow_table_of
from streamproof.properties.system.work import temporary_folder
from streamproof.properties.witnesses.run_options import Mode, RunOptions, Trigger
from streamproof.properties.witnesses.spark.failures import reported_failures
from streamproof.properties.witnesses.spark.session import spark_session, work_folder
from streamproof.reference.core.durations import microseconds_of
from streamproof.reference.core.errors import StreamproofError
from streamproof.reference.spark.static_join import StaticJoinKind
from streamproof.reference.spark.stream_join import StreamJoinKind

from ..figures import Figure, Setting, Target, figure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Job: TypeAlias = "Callable[[Mapping[str, DataFrame]], DataFrame]"

LARGEST_COHORT = 5_000
BATCHES = 5
JITTERS = (-1, 1, -1_000, 1_000, -999, 999, -1_001, 1_001)
BASE_US = 1_700_000_000_000_000
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("sub", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("amount", pa.int64()),
    ]
)
DRIVER = "driver"


@dataclass(frozen=True)
class Case:
    """A case of the benchmark: a Spark operator with one declaration.

    Attributes:
        name: The name of the case in figures.
        rule: The rules in `reference/spark` that compute the expected rows.
        job: The operator on Spark: a function from the inputs by name to the query.
        mode: The output mode.
        inputs: The names of the inputs.
        keys: The output columns that contain the history's key, of which at least one isn't null.
        ends: The end of one window, and the distance between the ends of windows, in microseconds.
    """

    name: str
    rule: Rule
    job: Job
    mode: Mode = "append"
    inputs: tuple[str, ...] = ("events",)
    keys: tuple[str, ...] = ("key",)
    ends: tuple[int, int] = (0, 1)


def run(setting: Setting) -> list[Figure]:
    """Count the differing histories of every operator under each trigger."""
    count, figures = setting.histories or setting.size(10_000, 60), []
    for case in CASES:
        for trigger in TRIGGERS:
            setting.progress(f"{case.name}, {trigger}: {count:,} histories")
            emitted, differing = differences(case, trigger, count, setting.seed)
            if not emitted:
                raise StreamproofError(f"{case.name}, {trigger}: no history emitted anything, so nothing was compared")
            if differing:
                setting.progress(f"{case.name}, {trigger} differs on {len(differing)}; the first: {differing[0]}")
            name = f"{case.name}, {case.mode}, {trigger}: differences"
            sizes = f"{count:,} histories, {emitted:,} rows emitted"
            figures.append(figure(name, "histories", [float(len(differing))], sizes, Target("at most", 0)))
    return figures


TRIGGERS: tuple[Trigger, ...] = ("default", "available_now")


def differences(case: Case, trigger: Trigger, count: int, seed: int) -> tuple[int, list[str]]:
    """Return the number of rows that the rules emit, and the first difference of each differing history on Spark.

    Args:
        case: The operator.
        trigger: The query's trigger.
        count: The number of histories.
        seed: The seed of the draws.
    """
    drawn = random.Random(f"{case.name} {trigger} {seed}")
    emitted, differing = 0, []
    way = RunOptions(trigger=trigger, mode=case.mode)
    sources = [Source(name, SCHEMA, "at", ("key",)) for name in case.inputs]
    for first in range(0, count, LARGEST_COHORT):
        histories = draw(case, min(LARGEST_COHORT, count - first), drawn)
        expected = case.rule.expected(histories, sources, way)
        found = spark_rows(case, trigger, histories)
        for number, history in enumerate(histories):
            for batch in range(BATCHES):
                wanted, got = bag(expected[number].rows[batch]), bag(found[batch].get(number, []))
                emitted += sum(wanted.values())
                if wanted != got:
                    differing.append(shown(history, batch, wanted - got, got - wanted))
                    break
    return emitted, differing


def bag(rows: Sequence[Row]) -> Counter[str]:
    """Return rows as a bag, independent of the order of columns."""
    return Counter(_text(row) for row in rows)


def _text(row: Row) -> str:
    # Compare times as text, because two zones called UTC may have different classes, and then differ.
    values = {
        name: [str(one) for one in value] if isinstance(value, list) else str(value) for name, value in row.items()
    }
    return str(sorted(values.items()))


def shown(history: JobHistory, batch: int, wanted: Counter[str], got: Counter[str]) -> str:
    """Return a history and its first difference, as text."""
    lines = [f"differs in batch {batch}: missing {dict(wanted)}, unexpected {dict(got)}"]
    for number, arrivals in enumerate(history.batches):
        lines.append(f"  batch {number}, clock {from_microseconds(history.clock[number])}")
        lines += [f"    {arrival.input}: {_text(arrival.row)}" for arrival in arrivals]
    return "\n".join(lines)


def draw(case: Case, count: int, drawn: random.Random) -> list[JobHistory]:
    """Return random histories under one clock, with times at the edges."""
    distances, (end, apart) = [0, *case.rule.distances_us], case.ends

    def far() -> int:
        return drawn.choice(distances) + drawn.choice((0, 0, 0, 0, *JITTERS))

    clock = [BASE_US + drawn.randrange(1_000) * 1_000_000]
    while len(clock) < BATCHES:
        now = clock[-1] + max(0, far() + drawn.choice((0, far())))
        if drawn.random() < 0.5:  # move the watermark to a window's end, or just beside it
            delay_us = next(iter(case.rule.delays_us.values()), 0)
            now += (end + delay_us - now) % apart + drawn.choice((0, 0, *JITTERS))
        clock.append(max(now, clock[-1]))
    histories = []
    for _ in range(count):
        times: list[int] = []
        batches: list[list[Arrival]] = [[] for _ in clock]
        for _ in range(drawn.randint(1, 8)):
            near = drawn.choice([*clock, *times, *times, *times])
            near -= drawn.choice((0, 0, 0, (near - end) % apart))
            time_us = min(near + drawn.choice((-1, 0, 1)) * far() - drawn.choice((0, 0, 1)) * far(), clock[-1])
            times.append(time_us)
            batch = next(number for number in range(BATCHES) if clock[number] >= time_us)
            if drawn.random() < 0.5:
                batch = drawn.randrange(batch, BATCHES)
            row = {
                "key": drawn.choice("aaab"),
                "sub": drawn.choice(("x", "x", "x", "x", "y", None)),
                "at": from_microseconds(time_us),
                "amount": drawn.choice((None, 1, 2, 3, -1)),
            }
            batches[batch].append(Arrival(drawn.choice(case.inputs), row))
        histories.append(JobHistory(tuple(map(tuple, batches)), tuple(clock)))
    return histories


def spark_rows(case: Case, trigger: Trigger, histories: Sequence[JobHistory]) -> list[dict[int, list[Row]]]:
    """Run the case's query over all histories together, and return for each batch the rows of each history."""
    spark = spark_session()
    clock = histories[0].clock
    found: list[dict[int, list[Row]]] = [{} for _ in clock]
    with temporary_folder(work_folder()) as folder:
        source = folder / "source"
        source.mkdir()
        available = 0

        def write(frame: DataFrame, batch_id: int) -> None:
            # A batch without data belongs to the newest file by default, and to the last file with `available_now`.
            number = available - 1 if trigger == "default" else min(batch_id, len(clock) - 1)
            rows: dict[int, list[Row]] = {}
            for row in arrow_table_of(frame).to_pylist():
                history, row = unpacked(case, row)
                if history is not None:
                    rows.setdefault(history, []).append(row)
            if case.mode == "complete":
                found[number] = rows
            else:
                for history, of_history in rows.items():
                    found[number].setdefault(history, []).extend(of_history)

        schema = "input string, key string, sub string, at timestamp, amount bigint"
        all_rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        inputs = {name: all_rows.where(all_rows.input == name).drop("input") for name in case.inputs}
        query = case.job(inputs).writeStream.foreachBatch(write).outputMode(case.mode)
        query = query.option("checkpointLocation", str(folder / "checkpoint"))
        tables = [packed(case, histories, number) for number in range(len(clock))]
        with reported_failures():
            if trigger == "available_now":
                for number, table in enumerate(tables):
                    put(table, source, number)
                query.trigger(availableNow=True).start().awaitTermination()
            else:
                running = query.start()
                try:
                    for number, table in enumerate(tables):
                        available = number + 1
                        put(table, source, number)
                        running.processAllAvailable()
                finally:
                    running.stop()
    return found


def packed(case: Case, histories: Sequence[JobHistory], batch: int) -> pa.Table:
    """Return a batch of all histories, each with its own keys, and a driver row on every input."""
    rows = [
        {**arrival.row, "input": arrival.input, "key": f"{number}|{arrival.row['key']}"}
        for number, history in enumerate(histories)
        for arrival in history.batches[batch]
    ]
    now = from_microseconds(histories[0].clock[batch])
    rows += [{"input": name, "key": f"{DRIVER}|", "sub": name, "at": now, "amount": 0} for name in case.inputs]
    return pa.Table.from_pylist(rows, schema=pa.schema([("input", pa.string()), *SCHEMA]))


def unpacked(case: Case, row: Row) -> tuple[int | None, Row]:
    """Return the number of a row's history (None for a driver row), and the row as the history alone would emit it."""
    keys = {name: row[name] for name in case.keys if row[name] is not None}
    number = next(iter(keys.values())).partition("|")[0]
    return None if number == DRIVER else int(number), {
        **row,
        **{name: key.partition("|")[2] for name, key in keys.items()},
    }


def put(table: pa.Table, folder: Path, number: int) -> None:
    """Add a batch to the source, as a file that is one second newer than the previous file."""
    hidden = folder.parent / f"{number}.writing"
    pq.write_table(table, hidden)
    os.utime(hidden, (1_000_000_000 + number, 1_000_000_000 + number))
    hidden.rename(folder / f"{number:06d}.parquet")


AGGREGATES: dict[str, Any] = {
    "rows": "count",
    "amounts": ("count", "amount"),
    "total": ("sum", "amount"),
    "least": ("min", "amount"),
    "last": ("max", "at"),
    "mean": ("avg", "amount"),
    "all": ("collect_list", "amount"),
    "some": ("collect_set", "sub"),
}


def _aggregated(
    window: str, window_of: Callable[[], Any], delay: str | None, inputs: Mapping[str, DataFrame]
) -> DataFrame:
    from pyspark.sql import functions as F

    events = inputs["events"] if delay is None else inputs["events"].withWatermark("at", delay)
    aggregated = events.groupBy("key", window_of()).agg(
        F.count("*").alias("rows"),
        F.count("amount").alias("amounts"),
        F.sum("amount").alias("total"),
        F.min("amount").alias("least"),
        F.max("at").alias("last"),
        F.avg("amount").alias("mean"),
        F.sort_array(F.collect_list("amount")).alias("all"),
        F.sort_array(F.collect_set("sub")).alias("some"),
    )
    return aggregated.select("key", f"{window}.start", f"{window}.end", *AGGREGATES)


def _sessions(gap: str, delay: str, mode: Mode) -> Case:
    def window() -> Any:
        from pyspark.sql import functions as F

        return F.session_window("at", gap)

    rule = session_windows(gap, delay, AGGREGATES)
    return Case(rule.name, rule, partial(_aggregated, "session_window", window, delay), mode)


def windows_case(size: str, slide: str | None, start: str | None, delay: str | None, mode: Mode) -> Case:
    """Return the case of Spark's `window` with these durations, and with all kinds of aggregates."""

    def window() -> Any:
        from pyspark.sql import functions as F

        return F.window("at", size, slide, start)

    rule = windows(size, slide, start, delay, AGGREGATES)
    size_us, slide_us, start_us = (microseconds_of("windows", each or "0 seconds") for each in (size, slide, start))
    ends = (start_us + size_us, slide_us or size_us)
    return Case(rule.name, rule, partial(_aggregated, "window", window, delay), mode, ends=ends)


def _duplicates(columns: Sequence[str], delay: str | None, within_watermark: bool = False) -> Case:
    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        events = inputs["events"] if delay is None else inputs["events"].withWatermark("at", delay)
        return events.dropDuplicatesWithinWatermark(columns) if within_watermark else events.dropDuplicates(columns)

    rule = drop_duplicates(columns, delay, within_watermark)
    return Case(rule.name, rule, job)


def _static(join: StaticJoinKind) -> Case:
    table = [{"sub": "x", "name": "one"}, {"sub": "x", "name": "two"}, {"sub": None, "name": "none"}]

    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        names = spark_session().createDataFrame([(row["sub"], row["name"]) for row in table], "sub string, name string")
        return inputs["events"].join(names, "sub", join)

    rule = static_join(table, "sub", join)
    return Case(rule.name, rule, job)


def join_case(
    join: StreamJoinKind, before: str | None, after: str | None, delays: Mapping[str, str], spark: str | None = None
) -> Case:
    """Return the case of a stream-stream join, by the rules of a Spark version; by default the installed version."""
    columns = [(side, column) for side in ("left", "right") for column in SCHEMA.names]
    if join == "left_semi":
        columns = columns[: len(SCHEMA)]

    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        from pyspark.sql import functions as F

        sides = []
        for side in ("left", "right"):
            renamed = inputs[side].select(*(F.col(column).alias(f"{side}_{column}") for column in SCHEMA.names))
            sides.append(renamed.withWatermark(f"{side}_at", delays[side]) if side in delays else renamed)
        condition = F.expr("left_key = right_key AND left_sub = right_sub")
        if before is not None:
            condition &= F.expr(f"right_at >= left_at - INTERVAL {before}")
        if after is not None:
            condition &= F.expr(f"right_at <= left_at + INTERVAL {after}")
        return sides[0].join(sides[1], condition, join)

    rule = stream_join(
        join,
        ["key", "sub"],
        before,
        after,
        delays,
        columns={f"{side}_{column}": f"{side}.{column}" for side, column in columns},
        spark=spark,
    )
    keys = tuple(f"{side}_key" for side, column in columns if column == "key")
    return Case(rule.name, rule, job, inputs=("left", "right"), keys=keys)


def _windows_of_distinct(mode: Mode) -> Case:
    first, then = _duplicates(["key", "at"], "4 seconds"), windows_case("10 seconds", None, None, None, mode)
    then_rule = windows("10 seconds", aggregates={"rows": "count"})

    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        return then.job({"events": first.job(inputs)}).select("key", "start", "end", "rows")

    rule = first.rule >> then_rule
    return Case(rule.name, rule, job, mode, ends=then.ends)


BOTH = {"left": "4 seconds", "right": "2 seconds"}
COUNT = {"rows": "count"}
TEN_SECONDS = (10_000_000, 10_000_000)


def _by_windows(frame: DataFrame, time: str, size: str, *more: str) -> DataFrame:
    """Return the number of rows in each window, as a job whose result has these columns of the window."""
    from pyspark.sql import functions as F

    return frame.groupBy("key", F.window(time, size)).agg(F.count("*").alias("rows")).select("key", *more, "rows")


def _sides(inputs: Mapping[str, DataFrame], delay: str | None = None) -> tuple[DataFrame, DataFrame]:
    left, right = (frame.withWatermark("at", delay or BOTH[side]) for side, frame in inputs.items())
    return left, right.selectExpr("key as other", "at as seen")


def _windows_of_windows() -> Case:
    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        small = _by_windows(inputs["events"].withWatermark("at", "4 seconds"), "at", "10 seconds", "window")
        return _by_windows(small, "window", "30 seconds", "window.start", "window.end")

    rule = windows("10 seconds", delay="4 seconds") >> windows("30 seconds", aggregates=COUNT)
    return Case(rule.name, rule, job, ends=TEN_SECONDS)


def _windows_of_joined(join: StreamJoinKind) -> Case:
    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        from pyspark.sql import functions as F

        left, right = _sides(inputs)
        near = "key = other and seen >= at - interval 3 seconds and seen <= at + interval 10 seconds"
        return _by_windows(left.join(right, F.expr(near), join), "at", "10 seconds", "window.start", "window.end")

    columns = {"key": "left.key", "at": "left.at", "seen": "right.at"}
    rule = stream_join(join, "key", "3 seconds", "10 seconds", BOTH, columns=columns)
    rule = rule >> windows("10 seconds", aggregates=COUNT)
    return Case(rule.name, rule, job, inputs=("left", "right"), ends=TEN_SECONDS)


def _windows_joined(join: StreamJoinKind) -> Case:
    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        from pyspark.sql import functions as F

        left, right = _sides(inputs, "4 seconds")
        counted = _by_windows(left, "at", "10 seconds", "window")
        closed = counted.select("key", "window.end", "rows", F.window_time("window").alias("closed"))
        near = "key = other and seen >= closed - interval 10 seconds and seen <= closed + interval 3 seconds"
        return closed.join(right, F.expr(near), join).select("key", "end", "rows", "seen")

    columns = {"key": "left.key", "end": "left.end", "rows": "left.rows", "seen": "right.at"}
    counted = windows("10 seconds", delay="4 seconds", aggregates=COUNT, input="left")
    rule = counted >> stream_join(join, "key", "10 seconds", "3 seconds", columns=columns)
    return Case(rule.name, rule, job, inputs=("left", "right"), ends=TEN_SECONDS)


def _distinct_of_both() -> Case:
    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        left, right = (frame.withWatermark("at", BOTH[side]) for side, frame in inputs.items())
        return left.union(right).dropDuplicates(["key", "at"]).select("key", "at")

    rule = union(delay=BOTH) >> drop_duplicates(["key", "at"], result=["key", "at"])
    return Case(rule.name, rule, job, inputs=("left", "right"))


def _windows_of_both() -> Case:
    def job(inputs: Mapping[str, DataFrame]) -> DataFrame:
        left, right = (frame.withWatermark("at", BOTH[side]) for side, frame in inputs.items())
        return _by_windows(left.union(right), "at", "10 seconds", "window.start", "window.end")

    rule = union(delay=BOTH) >> windows("10 seconds", aggregates=COUNT)
    return Case(rule.name, rule, job, inputs=("left", "right"), ends=TEN_SECONDS)


CASES = (
    _sessions("10 seconds", "4 seconds", "append"),
    _sessions("1 second", "0 seconds", "append"),
    _sessions("1500 microseconds", "2 milliseconds", "append"),
    _sessions("10 seconds", "4 seconds", "complete"),
    windows_case("10 seconds", None, None, "4 seconds", "append"),
    windows_case("10 seconds", "4 seconds", "3 seconds", "2 seconds", "append"),
    windows_case("2500 microseconds", "1 millisecond", "300 microseconds", "2 milliseconds", "append"),
    windows_case("10 seconds", "4 seconds", None, "2 seconds", "update"),
    windows_case("10 seconds", None, None, "4 seconds", "complete"),
    windows_case("10 seconds", None, "-1 second", None, "update"),
    _duplicates(["key", "at"], "4 seconds"),
    _duplicates(["key", "sub"], "4 seconds"),
    _duplicates(["key", "sub"], None),
    _duplicates(["key"], "4 seconds", within_watermark=True),
    _duplicates(["key", "sub"], "1500 microseconds", within_watermark=True),
    *(_static(join) for join in get_args(StaticJoinKind)),
    *(join_case(join, "10 seconds", "3 seconds", BOTH) for join in get_args(StreamJoinKind)),
    *(join_case(join, "1500 microseconds", "0 seconds", BOTH) for join in get_args(StreamJoinKind)),
    join_case("inner", None, "3 seconds", BOTH),
    join_case("left", None, "3 seconds", BOTH),
    join_case("right", "-1 second", "10 seconds", BOTH),
    join_case("inner", "3 seconds", "3 seconds", {"left": "4 seconds"}),
    join_case("inner", None, None, {}),
    _windows_of_distinct("append"),
    _windows_of_distinct("update"),
    _windows_of_distinct("complete"),
    _windows_of_windows(),
    _windows_of_joined("inner"),
    _windows_of_joined("left"),
    _windows_joined("inner"),
    _windows_joined("left"),
    _distinct_of_both(),
    _windows_of_both(),
)

"""What is read off a job's analyzed plan: durations, delays, the columns of watermarks, timers and operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming import StatefulProcessor
from streamproof import Input
from streamproof.properties.checking.jobs.arguments import runner_of
from streamproof.properties.generators.columns import terms
from streamproof.properties.generators.columns.forms.envelopes import ENVELOPES
from streamproof.properties.generators.columns.terms import shown
from streamproof.properties.witnesses.job.clock import IS_CLOCK, TIME, clock_behind_watermarks
from streamproof.properties.witnesses.job.plan.optimized import FILTERED_WATERMARK, PRUNED_TIME, divergences_of
from streamproof.properties.witnesses.job.plan.plans import Plan, WatermarkColumn, plan_of
from streamproof.properties.witnesses.job.plan.tables import tables_used
from streamproof.properties.witnesses.run_options import RunOptions

MINUTE_US, SECOND_US = 60_000_000, 1_000_000
CLICKS = ("user", "at", "amount")


@pytest.fixture(scope="module")
def clicks(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    # A folder is no duration, though the plan's text has its name.
    folder = tmp_path_factory.mktemp("every 7 minutes")
    return spark.readStream.schema("user string, at timestamp, amount bigint").parquet(str(folder))


def read(frame: DataFrame) -> Plan:
    return plan_of(frame._jdf.queryExecution().analyzed())


def late(clicks: DataFrame, delay: str = "10 minutes") -> DataFrame:
    return clicks.withWatermark("at", delay)


def hopping(clicks: DataFrame) -> DataFrame:
    return late(clicks).groupBy(F.window("at", "20 minutes", "5 minutes", "1 minute")).count()


def tumbling(clicks: DataFrame) -> DataFrame:
    return late(clicks).groupBy(F.window("at", "50 milliseconds")).count()


def of_windows(clicks: DataFrame) -> DataFrame:
    return late(clicks).groupBy(F.window("at", "5 minutes")).count().groupBy(F.window("window", "1 hour")).count()


def sessions(clicks: DataFrame) -> DataFrame:
    gap = F.when(F.col("user") == "a", "5 seconds").otherwise("3 minutes")
    return late(clicks).groupBy(F.session_window("at", gap)).count()


def joined_by_amount(clicks: DataFrame) -> DataFrame:
    other = clicks.toDF("user2", "at2", "amount2").withWatermark("at2", "1 minute")
    return late(clicks).join(other, F.expr("user = user2 AND amount = amount2 AND at2 > at"))


def joined_to_a_constant(clicks: DataFrame) -> DataFrame:
    other = clicks.toDF("user2", "at2", "amount2").withWatermark("at2", "1 minute")
    constant = late(clicks).select(F.lit("x").alias("user"), "at")
    return constant.join(other, F.expr("user = user2 AND at2 BETWEEN at AND at + INTERVAL 1 HOUR"), "left")


@pytest.mark.parametrize(
    ("job", "names"),
    [
        (
            lambda clicks: late(clicks).where("amount > 0").groupBy(F.window("at", "1 hour")).count(),
            [FILTERED_WATERMARK],
        ),
        (lambda clicks: hourly(late(clicks)).where("user = 'x'"), [FILTERED_WATERMARK]),
        (lambda clicks: hourly(late(clicks)).where("count > 2"), []),
        (lambda clicks: hourly(late(clicks.where("amount > 1 + 1").selectExpr("user", "at"))), []),
        (lambda clicks: late(clicks.where("amount > 0")).where("amount > 0").dropDuplicates(["at"]), []),
        (lambda clicks: late(clicks).where("at > '2020-01-01'").dropDuplicates(["user", "at"]), []),
        (lambda clicks: joined(clicks), []),
        (joined_by_amount, [FILTERED_WATERMARK]),
        (joined_to_a_constant, [FILTERED_WATERMARK]),
        (lambda clicks: late(clicks).dropDuplicates(["user"]).select("user"), [PRUNED_TIME]),
        (lambda clicks: clicks.where("amount > 0").groupBy("user").count(), []),
    ],
)
@pytest.mark.parametrize("clock", [True, False])
def test_known_divergences_are_those_of_the_plan_without_the_clock(
    clicks: DataFrame, job: Callable[[DataFrame], DataFrame], names: list[str], clock: bool
) -> None:
    times = clicks.select(F.col("at").alias(TIME))
    with clock_behind_watermarks((lambda: times) if clock else None):
        result = job(clicks)
    analyzed = result._jdf.queryExecution().analyzed()
    assert divergences_of(clicks.sparkSession, analyzed, IS_CLOCK, {"amount"}) == names


def hourly(clicks: DataFrame) -> DataFrame:
    return clicks.groupBy("user", F.window("at", "1 hour")).count()


def joined(clicks: DataFrame) -> DataFrame:
    views = clicks.select(F.col("user").alias("viewer"), F.col("at").alias("seen")).withWatermark("seen", "1 minute")
    between = "seen BETWEEN at - INTERVAL 5 MINUTES AND at + INTERVAL '01:30' MINUTE TO SECOND"
    return late(clicks).join(views, F.expr(f"user = viewer AND {between}"))


def by_microseconds(clicks: DataFrame) -> DataFrame:
    return late(clicks).where("unix_micros(at) % 300000000 = 0").where("amount > 2000000")


def in_a_subquery(clicks: DataFrame) -> DataFrame:
    late(clicks).createOrReplaceTempView("clicks_of_plans")
    inner = "SELECT 1 FROM range(3) WHERE now() - INTERVAL '17' MINUTE > TIMESTAMP '2024-01-01'"
    return clicks.sparkSession.sql(
        f"WITH c AS (SELECT * FROM clicks_of_plans) SELECT user FROM c WHERE EXISTS ({inner})"
    )


def with_words(clicks: DataFrame) -> DataFrame:
    return late(clicks).select(F.col("at").alias("in 30 minutes"), F.lit("within 40 minutes"), F.lit(50_000_000))


@pytest.mark.parametrize(
    ("job", "durations_us"),
    [
        (hopping, [MINUTE_US, *(minutes * MINUTE_US for minutes in (5, 10, 15, 20))]),
        (tumbling, [50_000, 10 * MINUTE_US]),
        (of_windows, [5 * MINUTE_US, 10 * MINUTE_US, 60 * MINUTE_US]),
        (sessions, [5 * SECOND_US, 3 * MINUTE_US, 10 * MINUTE_US]),
        (joined, [MINUTE_US, 90 * SECOND_US, 5 * MINUTE_US, 10 * MINUTE_US]),
        (by_microseconds, [5 * MINUTE_US, 10 * MINUTE_US]),
        (in_a_subquery, [10 * MINUTE_US, 17 * MINUTE_US]),
        (with_words, [10 * MINUTE_US]),
        (lambda clicks: clicks.where(F.col("at") > F.lit(timedelta(minutes=-4)) + F.now()), [4 * MINUTE_US]),
        (lambda clicks: clicks.where("at + CAST('-2 minutes' AS INTERVAL) > now()"), [2 * MINUTE_US]),
        (lambda clicks: clicks.where("at + INTERVAL 1 MONTH > now()"), []),
        (lambda clicks: late(clicks, "1 hour 30 seconds"), [3_630 * SECOND_US]),
    ],
)
def test_durations_are_those_of_windows_gaps_intervals_and_delays(
    clicks: DataFrame, job: Callable[[DataFrame], DataFrame], durations_us: list[int]
) -> None:
    assert read(job(clicks)).durations_us == durations_us


def test_delays_are_those_of_all_watermarks(clicks: DataFrame) -> None:
    assert read(joined(clicks)).delays_us == [MINUTE_US, 10 * MINUTE_US]
    assert read(clicks).delays_us == []


@pytest.mark.parametrize(
    ("column", "time"),
    [
        ("at", WatermarkColumn("at", "at", CLICKS, MINUTE_US)),
        ("seen", WatermarkColumn("seen", "at", CLICKS, MINUTE_US)),
        ("again", WatermarkColumn("again", "at", CLICKS, MINUTE_US)),
        ("over", WatermarkColumn("over", None, (), MINUTE_US)),
    ],
)
def test_a_watermark_is_on_a_column_of_the_input_or_on_one_that_is_made(
    clicks: DataFrame, column: str, time: WatermarkColumn
) -> None:
    renamed = clicks.select("at", F.col("at").alias("seen"), (F.col("at") + F.expr("INTERVAL 5 MINUTES")).alias("over"))
    plan = read(renamed.withColumn("again", F.col("seen")).withWatermark(column, "1 minute"))
    (found,) = plan.event_times
    assert found._replace(beside=tuple(found.beside)) == time
    columns = "user string, at timestamp, amount bigint"
    runners = [runner_of(print, [Input(columns, format=how)], 0, None)[1] for how in (None, "kafka")]
    derived = None if time.given else column
    assert [runner.derived_time(plan) for runner in runners] == [derived, None]


def test_a_plan_names_the_keys_that_are_computed_with_and_the_numbers_that_are_compared_with(clicks: DataFrame) -> None:
    plan = read(clicks.withColumnRenamed("user", "who").where("who <> 'a' and amount >= 100 and at is not null"))
    assert (plan.computed, plan.thresholds) == ({"user", "amount"}, frozenset())
    assert [shown(term) for term in plan.comparisons] == [compares("user", "= 'a'"), compares("amount", ">= 100")]
    assert plan.in_functions == frozenset()
    passed = read(clicks.mapInArrow(lambda batches: batches, clicks.schema).where("user is not null"))
    assert (passed.computed, passed.in_functions) == (frozenset(), {"user", "at", "amount"})
    joined = clicks.alias("one").join(clicks.alias("other"), F.expr("one.user = other.user"))
    assert read(joined).computed == frozenset()


IN_STRUCT = "field(createnamedstruct('amount', amount)) > 5"


def compares(name: str, rest: str) -> str:
    return f"{(CLICKS, name)} {rest}"


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (lambda clicks: clicks.where("amount BETWEEN 3 AND 5"), ["amount >= 3", "amount <= 5"]),
        (lambda clicks: clicks.where(F.col("amount").between(3, 5)), ["amount >= 3", "amount <= 5"]),
        (lambda clicks: clicks.where(~F.col("user").isin("a", "b")), ["user IN ('a', 'b')"]),
        (lambda clicks: clicks.where("user LIKE 'x%' OR user RLIKE '^a'"), ["user LIKE 'x%'", "user RLIKE '^a'"]),
        (lambda clicks: clicks.select(F.when(F.col("user") == "a", 1)), ["user = 'a'"]),
        (lambda clicks: clicks.selectExpr("CASE user WHEN 'a' THEN 1 END"), ["user = 'a'"]),
        (lambda clicks: clicks.selectExpr("if(user = 'a', 1, 2)"), ["user = 'a'"]),
        (lambda clicks: clicks.groupBy().agg(F.expr("count(*) FILTER (WHERE amount > 9)")), ["amount > 9"]),
        (lambda clicks: clicks.select(F.least("amount", F.lit(7))), ["amount < 7"]),
        (
            lambda clicks: clicks.where("startswith(user, 'a') AND amount > 1.5"),
            ["startswith(user, 'a')", "amount > 1"],
        ),
        (lambda clicks: clicks.where("substring(user, 1, 2) = 'ab'"), ["substring(user, 1, 2) = 'ab'"]),
        (lambda clicks: clicks.where("length(left(user, 2)) > 1"), ["length(substring(user, 1, 2)) > 1"]),
        (lambda clicks: clicks.where("hour(at) = 9 AND dayofweek(at) = 1"), ["hour(at) = 9", "dayofweek(at) = 1"]),
        (lambda clicks: clicks.where("extract(HOUR FROM at) = 9"), ["hour(at) = 9"]),
        (lambda clicks: clicks.where("at > '2024-01-01' AND DATE(at) < DATE'2024-02-01'"), None),
        (lambda clicks: clicks.where("coalesce(amount, 0) % 7 = 3"), ["coalesce(amount, 0) % 7 = 3"]),
        (lambda clicks: clicks.withColumn("n", F.col("amount") * 100).where("n > 5"), ["amount * 100 > 5"]),
        (lambda clicks: clicks.groupBy("user").agg(F.sum("amount").alias("n")).where("n > 5"), ["sum(amount) > 5"]),
        (lambda clicks: clicks.select(F.struct("amount").alias("s")).where("s.amount > 5"), [IN_STRUCT]),
        (lambda clicks: clicks.where("amount > length(user)"), []),
        (lambda clicks: clicks.where("amount > NULL OR user IS NULL"), []),
        (lambda clicks: late(clicks).groupBy(F.window("at", "5 minutes")).count().where("count > 5"), []),
        (lambda clicks: clicks.where("at > TIMESTAMP'2024-01-01' - INTERVAL 1 DAY"), []),
    ],
)
def test_comparisons_with_constants_are_followed_to_the_columns_of_inputs(
    clicks: DataFrame, job: Callable[[DataFrame], DataFrame], expected: list[str] | None
) -> None:
    comparisons = read(job(clicks)).comparisons
    known = [term for term in comparisons if "PreciseTimestampConversion" not in term.kinds]
    found = [re.sub(r"\(\('user', 'at', 'amount'\), '(\w+)'\)", r"\1", shown(term)) for term in known]
    if expected is None:
        assert [terms.constants_of(term)[0] for term in known] == [datetime(2024, 1, 1, tzinfo=UTC), date(2024, 2, 1)]
    else:
        assert found == expected


def test_a_comparison_behind_a_union_is_of_all_its_inputs(
    spark: SparkSession, clicks: DataFrame, tmp_path: Path
) -> None:
    views = spark.readStream.schema("viewer string, seen timestamp, n bigint").parquet(str(tmp_path))
    both = clicks.union(views).where("amount > 5")
    names = [term.columns for term in read(both).comparisons]
    assert names == [[(CLICKS, "amount")], [(("viewer", "seen", "n"), "n")]]


def test_a_comparison_in_a_payload_is_of_a_field(spark: SparkSession, clicks: DataFrame) -> None:
    rows = clicks.select(F.from_json("user", "amount bigint").alias("row")).select("row.*")
    (term,) = read(rows.withColumnRenamed("amount", "paid").where("paid > 5")).comparisons
    assert {"Field", "JsonToStructs"} <= term.kinds
    assert terms.compared(term).value == "amount"


class Silent(StatefulProcessor):
    def init(self, handle: Any) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        return iter(())

    def close(self) -> None:
        pass


@pytest.mark.parametrize("form", ["rows", "pandas", "groups", "groups without state"])
def test_timeouts_and_timers_are_of_event_time_or_of_processing_time(clicks: DataFrame, form: str) -> None:
    by_user = late(clicks).groupBy("user")

    def timed(clock: str) -> bool:
        if form == "groups without state":
            frame = by_user.applyInPandas(lambda rows: rows, clicks.schema)
        elif form == "groups":
            given = "user string", "user string", "append", f"{clock}Timeout"
            frame = by_user.applyInPandasWithState(lambda key, rows, state: iter(()), *given)
        else:
            transform = by_user.transformWithState if form == "rows" else by_user.transformWithStateInPandas
            frame = transform(Silent(), "user string", "append", clock)
        return read(frame).by_processing_time

    assert [timed("EventTime"), timed("ProcessingTime")] == [False, form != "groups without state"]


def by_state(clicks: DataFrame, names: DataFrame, *, by: str = "user") -> DataFrame:
    initial = names.withColumnRenamed("id", "again").groupBy(by)
    return clicks.groupBy("user").transformWithState(Silent(), "user string", "append", "none", initial)


def in_sql(statement: str) -> Callable[[DataFrame, DataFrame], DataFrame]:
    def job(clicks: DataFrame, names: DataFrame) -> DataFrame:
        clicks.createOrReplaceTempView("clicks")
        names.createOrReplaceTempView("names")
        return clicks.sparkSession.sql(statement)

    return job


def own(clicks: DataFrame) -> DataFrame:
    """A relation that the job makes itself."""
    return clicks.sparkSession.sql("SELECT 'a' user, 1 id")


BY_USER, BY_ID = {"user": "user"}, {"id": "user"}


@pytest.mark.parametrize(
    ("job", "by_key", "initial", "elsewhere"),
    [
        (by_state, BY_USER, {"names"}, set()),
        (lambda clicks, names: by_state(clicks, names, by="again"), {}, {None}, set()),
        (lambda clicks, names: by_state(clicks, own(clicks)), {}, {None}, set()),
        (lambda clicks, names: clicks.join(names, "user"), BY_USER, set(), set()),
        (lambda clicks, names: clicks.join(names, clicks.user == names.user, "left"), BY_USER, set(), set()),
        (lambda clicks, names: clicks.join(names, clicks.user == names.id), BY_ID, set(), set()),
        (lambda clicks, names: clicks.join(names, clicks.user == names.id, "left_anti"), BY_ID, set(), set()),
        (lambda clicks, names: clicks.crossJoin(names).where(clicks.user == names.id), BY_ID, set(), set()),
        (
            lambda clicks, names: clicks.withColumnRenamed("user", "u").join(
                names.selectExpr("id AS v").distinct(), F.expr("v <=> u"), "left_semi"
            ),
            *(BY_ID, set(), set()),
        ),
        (lambda clicks, names: clicks.join(names, clicks.amount == F.length(names.id)), {}, set(), {"amount"}),
        (lambda clicks, names: clicks.join(names, clicks.user == F.lower(names.id)), {}, set(), {"user"}),
        (lambda clicks, names: clicks.join(names, F.lower(clicks.user) == names.id), {}, set(), {"user"}),
        (lambda clicks, names: clicks.join(own(clicks), "user"), {}, set(), {"user"}),
        # A field of a payload is looked up under its own name, and so is what it is read from.
        (
            lambda clicks, names: clicks.withColumn("of", F.from_json("user", "who string")).join(
                names, F.col("of.who") == names.id
            ),
            *({"id": "who"}, set(), set()),
        ),
        (in_sql("SELECT * FROM clicks WHERE user NOT IN (SELECT id FROM names)"), {}, set(), {"user"}),
        (in_sql("SELECT * FROM clicks WHERE EXISTS (SELECT 1 FROM names WHERE id = clicks.user)"), BY_ID, set(), set()),
        (in_sql("SELECT * FROM clicks WHERE user = (SELECT max(id) FROM names)"), {}, set(), {"user"}),
        (in_sql("SELECT * FROM clicks JOIN names ON clicks.user = names.id OR amount = 1"), BY_ID, set(), set()),
        (
            lambda clicks, names: clicks.join(F.broadcast(names.hint("merge").where("id > ''")), "user"),
            BY_USER,
            set(),
            set(),
        ),
        (lambda clicks, names: clicks.join(names, clicks.amount > 1), {}, set(), set()),
        (lambda clicks, names: clicks.join(clicks.select("user"), "user"), {}, set(), set()),
        (lambda clicks, names: clicks, {}, set(), set()),
    ],
)
def test_a_table_is_used_by_the_key_where_that_is_looked_up_in_it_or_it_is_an_initial_state(
    spark: SparkSession,
    clicks: DataFrame,
    job: Any,
    by_key: dict[str, str],
    initial: set[str | None],
    elsewhere: set[str],
) -> None:
    names = spark.createDataFrame([("a", "b")], "user string, id string")
    used = tables_used(read(job(clicks, names)), {"names": names})
    assert (used.by_key.get("names", {}), used.initial, used.elsewhere) == (by_key, initial, elsewhere)


@pytest.mark.parametrize(
    ("columns", "nondeterministic", "of_clock"),
    [
        ({"processed_at": F.current_timestamp}, set(), {"processed_at"}),
        ({"day": F.current_date, "id": F.uuid}, {"id"}, {"day"}),
        ({"file": F.input_file_name, "n": F.monotonically_increasing_id}, {"file", "n"}, set()),
        ({"part": F.spark_partition_id, "chance": F.rand}, {"part", "chance"}, set()),
        ({"path": lambda: F.col("_metadata.file_path")}, {"path"}, set()),
        ({"drawn": lambda: F.udf(lambda: "a", "string").asNondeterministic()()}, {"drawn"}, set()),
        ({"drawn": lambda: F.udf(lambda: "a", "string")()}, set(), set()),
        ({"hour": lambda: F.hour(F.now()), "known": lambda: F.lit(1)}, set(), {"hour"}),
    ],
)
def test_columns_of_the_clock_of_randomness_and_of_files_are_found_through_what_is_made_of_them(
    clicks: DataFrame, columns: dict[str, Any], nondeterministic: set[str], of_clock: set[str]
) -> None:
    made = clicks.withColumns({name: make() for name, make in columns.items()})
    again = made.selectExpr("*", *(f"concat(`{name}`, '') AS `again_{name}`" for name in columns))
    plan = read(again)
    names = [nondeterministic, of_clock]
    assert [plan.nondeterministic, plan.of_clock] == [each | {f"again_{name}" for name in each} for each in names]
    assert not read(again.drop(*again.columns[len(clicks.columns) :])).nondeterministic


def test_a_watermark_on_the_time_at_which_a_batch_runs_is_known(clicks: DataFrame) -> None:
    stamped = clicks.withColumn("now", F.current_timestamp()).withColumn("minute", F.date_trunc("minute", "now"))
    times = [read(stamped.withWatermark(name, "1 minute")).event_times[-1] for name in ("now", "minute", "at")]
    assert [time.is_of_clock for time in times] == [True, True, False]


def test_columns_of_a_record_s_place_in_its_stream_are_found_and_an_own_column_of_that_name_is_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = spark.readStream.schema(from_arrow_schema(ENVELOPES["kafka"].columns)).parquet(str(tmp_path))
    click = F.from_json(F.col("value").cast("string"), "user string, offset int").alias("click")
    both = records.select(click, "offset").select("click.user", F.col("offset").alias("at"), "click.offset")
    assert read(both.withColumn("later", F.col("at") + 1)).of_places == {"at", "later"}


def test_a_column_that_is_an_input_s_under_another_name_is_known_by_it(clicks: DataFrame) -> None:
    counted = (
        clicks.withColumnRenamed("user", "one").groupBy(F.col("one").alias("who"), F.upper("one").alias("x")).count()
    )
    found = plan_of(counted.select(F.col("who").alias("name"), "x", "count")._jdf.queryExecution().analyzed())
    assert found.renamed == {"name": "user"}
    assert plan_of(clicks._jdf.queryExecution().analyzed()).renamed == {}


def test_a_function_s_rows_come_in_its_order_unless_an_operator_may_move_them(clicks: DataFrame) -> None:
    made = clicks.groupBy("user").applyInPandasWithState(
        lambda key, rows, state: iter(()), "user string", "n int", "append", "NoTimeout"
    )
    passed_on, joined_again = made.where("user != 'a'").select("user"), made.join(clicks, "user")
    for frame, expected in ((made, True), (passed_on, True), (joined_again, False)):
        assert (read(frame).has_function, read(frame).ends_in_function) == (True, expected)
    assert not read(clicks).has_function
    assert not read(hopping(clicks)).ends_in_function


def test_an_operator_is_known_by_its_class_and_not_by_a_name_in_the_job(clicks: DataFrame) -> None:
    operator = "DeduplicateWithinWatermark"
    assert operator in read(late(clicks).dropDuplicatesWithinWatermark(["user"])).operators
    assert operator not in read(late(clicks).withColumn(operator, F.lit(operator))).operators
    assert operator not in Plan().operators


def test_the_plan_of_a_running_query_is_that_of_its_frame(clicks: DataFrame, tmp_path: Path) -> None:
    frame = hopping(clicks)
    writer = frame.writeStream.format("noop").outputMode("append").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    try:
        running = plan_of(query._jsq.streamingQuery().analyzedPlan())
    finally:
        query.stop()
    expected = read(frame)
    assert (running.durations_us, running.delays_us) == (expected.durations_us, expected.delays_us)
    assert running.event_times == expected.event_times
    assert expected.operators <= running.operators


def test_a_job_is_started_again_after_a_batch_once_and_not_after_the_last(spark: SparkSession) -> None:
    started: list[int] = []

    def job(rows: DataFrame) -> DataFrame:
        started.append(1)
        return rows

    (given,), runner = runner_of(job, [Input("user string, at timestamp", key="user", name="clicks")], 0, None)
    tables = [{"clicks": given.source.schema.empty_table()} for _ in range(3)]
    runner.run(tables, run=RunOptions(stop_after=(0, 0, 2, 5), empty_batches=True, seconds=60))
    assert len(started) == 2

"""A project of Declarative Pipelines: each of its flows is a query, as far as the rows of single rows reach."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from check_job_setup import but_for
from pyspark.sql import SparkSession
from streamproof import Input, Script, invariants
from streamproof.properties.system.installed.spark_versions import spark_version
from streamproof.properties.witnesses.job.inference.inferring import inferred_queries
from streamproof.properties.witnesses.job.scripts.lifting import ScriptSource
from streamproof.reference.core.durations import UNITS_US, microseconds_of
from streamproof.reference.core.errors import BadInput

PROJECT = "name: shop\nstorage: file:///tmp/storage\nlibraries:\n- glob:\n    include: transformations/**\n"
PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.active()


@dp.table
def visits():
    clicks = spark.readStream.table("good_clicks").withWatermark("at", "10 minutes")
    return clicks.groupBy("user", F.window("at", "1 hour")).agg(F.sum("amount").alias("total"))


@dp.temporary_view
def good_clicks():
    return spark.readStream.table("clicks").where("amount > 0")


@dp.table
def clicks():
    return spark.readStream.schema("user string, at timestamp, amount bigint").json("/data/clicks")
"""
SQL = """
CREATE STREAMING TABLE large AS SELECT user, amount FROM STREAM clicks WHERE amount > 100;
CREATE STREAMING TABLE hourly AS SELECT user, window, count(*) AS n
FROM STREAM(clicks) WATERMARK at DELAY OF INTERVAL 10 MINUTES GROUP BY user, window(at, '1 hour');
CREATE MATERIALIZED VIEW by_user AS SELECT user, sum(total) AS total FROM visits GROUP BY user;
CREATE STREAMING TABLE alerts;
CREATE FLOW of_visits AS INSERT INTO alerts BY NAME
SELECT v.user, v.total FROM STREAM visits v JOIN by_user USING (user) WHERE v.total > 500;
"""


@pytest.mark.skipif(spark_version() < (4, 3), reason="the PySpark has no pipelines with all of these statements")
def test_each_flow_of_a_project_is_a_query_over_the_sources_that_its_rows_come_from(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations/visits.py").write_text(PYTHON)
    (tmp_path / "transformations/more.sql").write_text(SQL)
    path = tmp_path / "spark-pipeline.yml"
    path.write_text(PROJECT)
    queries = {one.write.name: one for one in inferred_queries(ScriptSource(path), spark, {}, {})}
    # What a flow with state writes is an input of the flows that read it; rows of single rows are handed on.
    assert {name: [*one.own] for name, one in queries.items()} == {
        "large": ["/data/clicks"],
        "hourly": ["/data/clicks"],
        "of_visits": ["visits"],
        "visits": ["/data/clicks"],
        "clicks": ["/data/clicks"],
    }
    clicks = 'Input("user string, at timestamp, amount bigint", key="user")'
    assert {name: one.inputs[one.own[0]].text for name, one in queries.items() if name != "of_visits"} == dict.fromkeys(
        ("large", "hourly", "visits", "clicks"), clicks
    )
    assert [*queries["of_visits"].tables] == ["by_user"]
    assert queries["of_visits"].inputs["visits"].text == (
        'Input("user string, window struct<start: timestamp, end: timestamp>, total bigint", key="user", time=False)'
    )
    assert queries["visits"].write.line == 8
    assert str(queries["visits"].write).endswith("visits.py, table)")
    assert queries["visits"].inputs["/data/clicks"].read.where.endswith("transformations/visits.py")


@pytest.mark.skipif(spark_version() < (4, 1), reason="the PySpark has no pipelines")
def test_a_flow_that_fails_behind_others_leaves_no_project_that_conforms(spark: SparkSession, tmp_path: Path) -> None:
    read = 'spark.readStream.schema("user string, amount bigint").json("/data/clicks")'
    table = f"spark = SparkSession.active()\n@dp.table\ndef {{}}():\n    return {read}.where('{{}} > 0')\n"
    head = "from pyspark import pipelines as dp\nfrom pyspark.sql import SparkSession\n"
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations/a.py").write_text(head + table.format("clean", "amount"))
    (tmp_path / "transformations/b.py").write_text(head + table.format("totals", "nope"))
    path = tmp_path / "spark-pipeline.yml"
    path.write_text(PROJECT)
    with pytest.raises(
        BadInput, match=r"transformations/b\.py raised AnalysisException, in line 6.*starts queries there"
    ):
        inferred_queries(ScriptSource(path), spark, {}, {})


@pytest.mark.skipif(spark_version() < (4, 3), reason="the PySpark has no WATERMARK in SQL")
def test_a_watermark_of_sql_follows_the_clock_of_a_check(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "hourly.sql"
    path.write_text(
        "CREATE STREAMING TABLE clean AS SELECT * FROM STREAM clicks WHERE amount > 0;\n"
        "CREATE STREAMING TABLE hourly AS SELECT user, window, count(*) AS n FROM STREAM clean "
        "WATERMARK at DELAY OF INTERVAL 10 MINUTES GROUP BY user, window(at, '1 hour');\n"
    )
    clicks = Input("user string, at timestamp, amount bigint", key="user")
    asked = "histories of other keys in the query"
    report = invariants(Script(path, {"clicks": clicks}, query=1), histories=30, without=but_for(asked))
    assert [*report.laws] == [asked]


@pytest.mark.skipif(spark_version() < (4, 3), reason="the PySpark has no WATERMARK in SQL")
def test_each_read_of_a_table_has_its_own_watermark_of_sql(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "pairs.sql"
    path.write_text(
        "CREATE STREAMING TABLE pairs AS SELECT a.user FROM STREAM clicks WATERMARK at DELAY OF INTERVAL 1 MINUTE AS a "
        "JOIN STREAM clicks WATERMARK at DELAY OF INTERVAL 2 HOURS b ON a.user = b.user AND a.at = b.at;\n"
        "CREATE STREAMING TABLE named AS SELECT clicks.user FROM STREAM clicks WATERMARK at DELAY OF INTERVAL 3 DAYS;\n"
        "CREATE STREAMING TABLE units AS SELECT clicks.user FROM STREAM clicks "
        "WATERMARK at DELAY OF INTERVAL 1 DAY 2 HOURS;\n"
        "CREATE STREAMING TABLE made AS SELECT * FROM STREAM clicks "
        "WATERMARK CAST(said AS TIMESTAMP) + INTERVAL 1 HOUR AS seen "
        "DELAY OF INTERVAL '1:30' HOUR TO MINUTE AS x WHERE x.user > '';\n"
    )
    clicks = spark.readStream.schema("user string, at timestamp, said string").json(str(tmp_path))
    queries = inferred_queries(ScriptSource(path), spark, {"clicks": clicks}, {})
    plans = [one.write.frame._jdf.queryExecution().analyzed().toString() for one in queries]
    texts = [re.findall(r"EventTimeWatermark .*, (\d.*)$", plan, re.MULTILINE) for plan in plans]
    minutes = [sorted(microseconds_of("", text) // UNITS_US["minute"] for text in each) for each in texts]
    assert minutes == [[1, 120], [3 * 24 * 60], [26 * 60], [90]]
    assert queries[-1].write.frame.columns == ["seen", "user", "at", "said"]
    (path.parent / "nameless.sql").write_text(
        "CREATE STREAMING TABLE a AS SELECT * FROM STREAM clicks WATERMARK to_timestamp(said) DELAY OF INTERVAL 1 DAY"
    )
    with pytest.raises(BadInput, match=r"line 1 of .*nameless\.sql has a WATERMARK of to_timestamp\(said\) without"):
        inferred_queries(ScriptSource(path.parent / "nameless.sql"), spark, {"clicks": clicks}, {})

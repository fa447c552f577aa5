"""Scripts under test as they are: what they read, what they write, and what of them can't be lifted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamproof import (
    BadInput,
    Inconclusive,
    Input,
    Script,
    StreamproofError,
    Violated,
    as_batch,
    check_job,
    invariants,
    other_job,
    sql,
)

CLICKS = Input("user string, at timestamp, amount bigint", key="user")
HEAD = """\
import sys, os, time
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[8]").config("spark.sql.shuffle.partitions", 9).getOrCreate()
clicks = spark.readStream.schema("user string, at timestamp, amount bigint").json("/data/clicks")
"""
TOTALS = 'totals = clicks.groupBy("user").agg(F.sum("amount").alias("total"))\n'
START = 'query = totals.writeStream.outputMode("complete").format("console").start()\n'

Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes a script, and returns its path."""

    def write(*parts: str, name: str = "job.py") -> Path:
        path = tmp_path / name
        path.write_text("".join(parts))
        return path

    return write


def refused(script: Script, **options: Any) -> str:
    """Return why a script is refused."""
    with pytest.raises(StreamproofError) as found:
        check_job(script, expect=as_batch(), histories=1, **options)
    return found.value.message


def test_a_script_is_checked_in_its_own_mode_and_goes_on_after_its_query(written: Written) -> None:
    after = "query.awaitTermination()\nwhile query.isActive: time.sleep(1)\nprint(query.lastProgress)\nspark.stop()\n"
    script = Script(written(HEAD, TOTALS, START, after), {"clicks": CLICKS})
    report = check_job(script, expect=sql("SELECT user, sum(amount) AS total FROM clicks GROUP BY user"), histories=60)
    assert report.comparing == "cuts"
    assert report.job.endswith("job.py")


def test_of_several_queries_one_is_checked_by_its_name_or_its_index(written: Written) -> None:
    several = [
        'totals.writeStream.outputMode("complete").queryName("totals").format("console").start()\n',
        'clicks.writeStream.format("parquet").option("path", "/data/out").start()\n',
        "spark.streams.awaitAnyTermination()\n",
    ]
    script = written(HEAD, TOTALS, *several)
    assert re.fullmatch(
        r".*job.py starts 2 queries, 'totals' \(line 6, console\), \(line 7, parquet\): choose a query by .*",
        refused(Script(script, {"clicks": CLICKS})),
    )
    assert "starts no query 'visits': it starts 'totals' (line 6" in refused(
        Script(script, {"clicks": CLICKS}, "visits")
    )
    totals, rows = Script(script, {"clicks": CLICKS}, query="totals"), Script(script, {"clicks": CLICKS}, query=1)
    assert check_job(totals, expect=as_batch(), histories=40).comparing == "end"
    assert check_job(rows, expect=sql("SELECT * FROM clicks"), histories=40).verdict == "conforms"


@pytest.mark.parametrize(
    ("head", "encoding"), [("\ufeff", "utf-8"), ("# -*- coding: latin-1 -*-\nof = 'Zürich'\n", "latin-1")]
)
def test_a_script_is_read_in_the_encoding_in_which_python_reads_it(head: str, encoding: str, written: Written) -> None:
    path = written()
    path.write_bytes(f"{head}{HEAD}{TOTALS}{START}".encode(encoding))
    assert check_job(Script(path, {"clicks": CLICKS}), expect=as_batch(), histories=10).verdict == "conforms"


def test_a_script_in_an_unknown_encoding_is_refused_as_python_refuses_it(written: Written) -> None:
    script = Script(written("# -*- coding: klingon -*-\n", HEAD, TOTALS, START), {"clicks": CLICKS})
    assert re.fullmatch(r".*job\.py isn't valid Python: unknown encoding.*klingon.*", refused(script))


def test_a_script_that_sleeps_between_two_queries_starts_both_and_in_a_loop_waits(written: Written) -> None:
    second = 'clicks.writeStream.queryName("rows").format("noop").start()\n'
    sleeping = "time.sleep(10**6)\n", second, "while True: time.sleep(10**6)\n", "raise KeyError\n"
    script = Script(written("import time\n", HEAD, TOTALS, START, *sleeping), {"clicks": CLICKS}, query="rows")
    assert check_job(script, expect=sql("SELECT * FROM clicks"), histories=10).verdict == "conforms"


@pytest.mark.usefixtures("unshrunk")
def test_a_sink_of_the_script_s_own_is_run_where_read_says_what_it_wrote(written: Written) -> None:
    body = """
out = os.environ["OUT"]
def save(rows, batch):
    rows.write.mode(sys.argv[1]).parquet(f"{out}/batch={batch}" if sys.argv[1] == "overwrite" else out)
clicks.writeStream.foreachBatch(save).trigger(processingTime="1 minute").option("checkpointLocation", "/cp").start()
"""

    def read(folder: Path) -> Any:
        import pandas

        files = sorted((folder / "out").rglob("*.parquet"))
        return pandas.concat([pandas.read_parquet(file) for file in files]) if files else []

    path, env = written(HEAD, body), {"OUT": "{folder}/out"}
    unread = check_job(Script(path, {"clicks": CLICKS}, args=["append"], env=env), expect=as_batch(), histories=40)
    assert "the function that line 9 of" in str(unread)
    kept = invariants(Script(path, {"clicks": CLICKS}, args=["append"], env=env), histories=20)
    assert "the function that line 9 of" in str(kept)
    right = Script(path, {"clicks": CLICKS}, args=["overwrite"], env=env, read=read)
    assert check_job(right, expect=as_batch(), histories=20).verdict == "conforms"
    with pytest.raises(Violated):
        invariants(Script(path, {"clicks": CLICKS}, args=["append"], env=env, read=read), histories=20)
    outside = Script(path, {"clicks": CLICKS}, args=["overwrite"], env={"OUT": "/data/out"}, read=read)
    assert "writes to /data/out/batch=0, outside of the check's folder" in refused(outside)


def test_a_sink_s_function_that_spark_calls_before_the_script_has_ended_waits_for_its_end(written: Written) -> None:
    from pyspark.sql import DataFrameWriter

    body = """
import threading
begun, go_on = threading.Event(), threading.Event()
def save(rows, batch):
    begun.set()
    go_on.wait(0.1)
    rows.write.mode("overwrite").parquet(f"{os.environ['OUT']}/batch={batch}")
clicks.writeStream.foreachBatch(save).option("checkpointLocation", "/cp").start()
begun.wait(0.5)
"""

    def read(folder: Path) -> Any:
        import pandas

        return pandas.concat([pandas.read_parquet(file) for file in (folder / "out").rglob("*.parquet")])

    own = DataFrameWriter.parquet
    script = Script(written(HEAD, body), {"clicks": CLICKS}, env={"OUT": "{folder}/out"}, read=read)
    with pytest.raises(Inconclusive, match="agrees"):
        check_job(script, expect=as_batch(), histories=1)
    assert DataFrameWriter.parquet is own
    assert "OUT" not in os.environ


def test_a_source_that_is_read_twice_can_be_joined_with_itself(written: Written) -> None:
    body = """
again = spark.readStream.schema("user string, at timestamp, amount bigint").json("/data/clicks")
one, other = clicks.withWatermark("at", "1 hour"), again.withWatermark("at", "1 hour")
near = (one.user == other.user) & (one.at == other.at)
one.join(other, near).select(one.user, other.at, one.amount).writeStream.start("/data/near")
"""
    script = Script(written(HEAD, body), {"clicks": CLICKS})
    assert check_job(script, expect=as_batch(), histories=40).verdict == "conforms"


def test_notebooks_functions_and_old_contexts_are_lifted(written: Written) -> None:
    notebook = """\
# Databricks notebook source
# MAGIC %run ./setup
from pyspark.sql import functions as F
get_ipython().run_line_magic("matplotlib", "inline")
clicks = spark.readStream.table("shop.bronze.clicks")
level = dbutils.widgets.get("level")
display(clicks.withWatermark("at", level).groupBy("user", F.window("at", "1 hour")).count())
"""

    class Utils:
        class widgets:
            get = staticmethod({"level": "10 minutes"}.get)

    script = Script(written(notebook), {"clicks": CLICKS}, globals={"dbutils": Utils})
    report = check_job(script, expect=as_batch(), histories=40)
    assert "line 2 of" in str(report)
    assert "matplotlib inline isn't run" in str(report)

    def main(spark: Any) -> None:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
        from pyspark.sql import functions as F

        assert spark.version == SparkSession(SparkContext("local", "old")).version
        clicks = spark.readStream.load("/data/clicks")
        counts = clicks.withWatermark("at", "10 minutes").groupBy("user", F.window("at", "1 hour")).count()
        counts.writeStream.start()

    assert check_job(Script(main, {"clicks": CLICKS}), expect=other_job(script), histories=40).verdict == "conforms"


@pytest.mark.usefixtures("unshrunk")
def test_settings_of_the_script_hold_for_its_query_alone(written: Written, spark: Any) -> None:
    before = spark.conf.get("spark.sql.session.timeZone"), spark.conf.get("spark.sql.shuffle.partitions")
    body = 'spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")\n'
    days = 'clicks.select("user", F.to_date("at").cast("string").alias("day")).writeStream.start()\n'
    script = Script(written(HEAD, body, days), {"clicks": CLICKS})
    in_utc = sql("SELECT user, strftime(clicks.at AT TIME ZONE 'UTC', '%Y-%m-%d') AS day FROM clicks")
    with pytest.raises(Violated):
        check_job(script, expect=in_utc, histories=40)
    assert (spark.conf.get("spark.sql.session.timeZone"), spark.conf.get("spark.sql.shuffle.partitions")) == before


LOST = """
lost = (
    clicks.where("nope > 1")
    .writeStream.format("noop")
    .start()
)
"""


@pytest.mark.parametrize(
    "body",
    [
        f"{TOTALS}{START}{LOST}",
        f"{TOTALS}display(totals)\n{LOST}",
        f"{TOTALS}{START}float('x')\nclicks.writeStream.start()\n",
        f"{TOTALS}{START}float('x')\nspark.table('clicks').writeStream.toTable('out')\n",
    ],
)
def test_a_script_that_fails_before_its_last_query_is_refused_unless_the_query_is_named(
    body: str, written: Written
) -> None:
    path = written(HEAD, "display = lambda frame: frame\n" if "display" not in body else "", body)
    assert re.fullmatch(
        r".*job\.py raised \w+, in line \d+: .*; the script starts queries there or later: fix the script, or name .*",
        refused(Script(path, {"clicks": CLICKS})),
    )
    if START in body:
        report = check_job(Script(path, {"clicks": CLICKS}, query=0), expect=as_batch(), histories=10)
        assert re.search(r"Not checked: .*job.py: the code after line \d+, where the script raised", str(report))


def test_a_script_that_fails_after_its_last_query_is_checked(written: Written) -> None:
    path = written(HEAD, TOTALS, START, "query.lastProgress['numInputRows']\n")
    report = check_job(Script(path, {"clicks": CLICKS}), expect=as_batch(), histories=10)
    assert "where the script raised TypeError" in str(report)


def test_a_setting_whose_class_is_missing_is_set_aside_and_a_refused_script_leaves_no_setting(
    written: Written, spark: Any
) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    delta = 'spark.conf.set("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")\n'
    zone = 'spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")\n'
    refused(Script(written(HEAD, delta, zone), {"clicks": CLICKS}))
    assert spark.conf.get("spark.sql.session.timeZone") == before
    report = check_job(Script(written(HEAD, delta, TOTALS, START), {"clicks": CLICKS}), expect=as_batch(), histories=10)
    assert "the setting spark.sql.catalog.spark_catalog, because Spark has no class org.apache" in str(report)


BODIES = {
    "x = 1": "starts no query: it ends without a call of start() or toTable() on a writeStream",
    "sys.exit(3)": "ends with exit(3), in line 5 before it starts a query; give its arguments",
    "import nosuchmodule; str(nosuchmodule.f())": (
        "raised ModuleNotFoundError, in line 5: No module named 'nosuchmodule', and the script uses nosuchmodule.f(…); "
        "install it"
    ),
    "platform.fs.ls('/')": "raised NameError, in line 5: name 'platform' is not defined; define it",
    "while True: pass": "didn't return within 2 s (it was in line 5 of",
    "while True:\n    try: time.monotonic()\n    except Exception: pass": "didn't return within 2 s (it was in line",
    "spark.readStream.format('kafka').option('subscribe', 'orders').load()": "line 5 of",
    "def f(:": "isn't valid Python: ",
    "try: spark.readStream.load('/data/x')\nexcept Exception: pass\nclicks.writeStream.start()": "line 5 of",
    "spark.read.parquet('/data/dim')": "reads /data/dim, which can't be read here: [PATH_NOT_FOUND]",
    'clicks.writeStream.outputMode("sometimes").start()': "Invalid streaming output mode: sometimes",
}


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_script_that_cannot_be_lifted_is_refused_with_its_line(body: str, written: Written) -> None:
    assert BODIES[body] in refused(Script(written(HEAD, body, "\n"), {"clicks": CLICKS}), seconds=2)


def test_what_is_given_must_fit_what_is_read(written: Written) -> None:
    body = written(HEAD, TOTALS, START)
    few = refused(Script(body, {"clicks": Input("user string, at timestamp", key="user")}))
    assert "line 4 of " in few
    assert few.endswith(
        "reads the column amount of /data/clicks, and reads['clicks'] has user, at: give its Input the columns "
        "'user string, at timestamp, amount bigint'"
    )
    small = Input("user string, at timestamp, amount int", key="user")
    assert "reads amount of /data/clicks as bigint, and its type in reads['clicks'] is int" in refused(
        Script(body, {"clicks": small})
    )
    assert "doesn't read 'views', which reads= gives: it reads /data/clicks" in refused(
        Script(body, {"clicks": CLICKS, "views": CLICKS})
    )
    kafka = written('spark.readStream.format("kafka").load().writeStream.start()\n')
    assert 'give it as Input(…, format="kafka")' in refused(Script(kafka, {"clicks": CLICKS}))
    with pytest.raises(BadInput, match="has its inputs in reads="):
        check_job(Script(body, {"clicks": CLICKS}), CLICKS, expect=as_batch())


def test_what_is_no_script_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no file .*job\.py"):
        Script(tmp_path / "job.py", {"clicks": CLICKS})
    (tmp_path / "job.ipynb").write_text("{}")
    with pytest.raises(BadInput, match=r"isn't a notebook of Jupyter.s format 4: save it in a newer Jupyter"):
        Script(tmp_path / "job.ipynb", {"clicks": CLICKS})
    (tmp_path / "job.py").write_text("")
    with pytest.raises(BadInput, match=r"reads has no Input for .*job\.py"):
        Script(tmp_path / "job.py", {"products": [{"a": 1}]})

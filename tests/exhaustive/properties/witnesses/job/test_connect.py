"""Jobs over Spark Connect: they see the client's classes alone, and get the verdicts that they get without it."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from paths import ROOT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor
from streamproof import (
    BadInput,
    Input,
    Script,
    Violated,
    as_batch,
    check_job,
    session_windows,
)
from streamproof.properties.system.installed.module_path import modules_in_front
from streamproof.properties.witnesses.job.row_by_row import row_by_row
from streamproof.properties.witnesses.spark.platform import connect
from streamproof.properties.witnesses.spark.session import session_for_query, session_of_jobs

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")
HISTORIES = 20


@pytest.fixture(autouse=True)
def over_connect(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let jobs run over Connect, as SPARK_REMOTE does, and leave the environment as it was."""
    pytest.importorskip("grpc")
    monkeypatch.setenv("SPARK_REMOTE", "local[2]")
    before = environment()
    yield
    assert environment() == before


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def is_seen(frame: Any) -> bool:
    return "connect" in type(frame).__module__ and "connect" in type(frame.amount).__module__


def visits(clicks: DataFrame) -> DataFrame:
    """Session windows, as a job writes them that knows nothing of Connect."""
    assert is_seen(clicks)
    assert type(SparkSession.getActiveSession()) is type(clicks.sparkSession)
    return (
        clicks.withWatermark("at", "10 minutes")
        .groupBy(F.session_window("at", "5 minutes"), "user")
        .agg(F.count("*").alias("clicks"))
    )


def test_a_job_conforms(spark: SparkSession) -> None:
    report = check_job(
        visits,
        CLICKS,
        expect=session_windows("5 minutes", delay="10 minutes", aggregates={"clicks": "count"}),
        histories=HISTORIES,
    )
    assert report.expecting > 0
    assert ") over Spark Connect conforms to " in str(report)


@pytest.mark.usefixtures("unshrunk")
def test_a_bug_is_found() -> None:
    def wrong(clicks: DataFrame) -> DataFrame:
        return clicks.withWatermark("at", "1 second").dropDuplicatesWithinWatermark(["user"]).select("user", "at")

    with pytest.raises(Violated, match="over Spark Connect"):
        check_job(wrong, CLICKS, expect=lambda clicks: [{"user": c["user"], "at": c["at"]} for c in clicks])


def test_what_connect_lacks_is_refused_with_the_line() -> None:
    def job(clicks: DataFrame) -> DataFrame:
        clicks.sparkSession.sparkContext.setLogLevel("ERROR")
        return clicks

    with pytest.raises(
        BadInput, match=r"`sparkContext` is not supported in Spark Connect .*, in line \d+: `clicks\.spark"
    ):
        check_job(job, CLICKS, expect=as_batch())


class Totals(StatefulProcessor):
    """The sum of a key's amounts, with each row."""

    def init(self, handle: Any) -> None:
        self.total = handle.getValueState("total", "total bigint")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        for frame in rows:
            total = (self.total.get()[0] if self.total.exists() else 0) + added(frame)
            self.total.update((total,))
            yield pd.DataFrame({"user": [key[0]], "total": [total]})

    def close(self) -> None:
        pass


def added(rows: pd.DataFrame) -> int:
    return int(rows["amount"].fillna(0).astype("int64").sum())


def totals(clicks: DataFrame) -> DataFrame:
    assert is_seen(clicks)
    small = clicks.where("user is not null").withColumn("amount", F.col("amount") % 1_000)
    return small.groupBy("user").transformWithStateInPandas(Totals(), "user string, total bigint", "Append", "None")


def test_the_modules_of_a_function_are_sent_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The server's workers can't import a module of a folder that only this process has in front of its path."""
    (tmp_path / "only_here.py").write_text(
        "def lower(frames):\n    return (frame.assign(user=cut(frame['user']))[['user', 'at']] for frame in frames)\n\n"
        "def cut(names):\n    return names.str.slice(0, 1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    lower = importlib.import_module("only_here").lower
    assert __name__.partition(".")[0] in [module.__name__ for module in modules_in_front()]

    def initials(clicks: DataFrame) -> DataFrame:
        return clicks.mapInPandas(lower, "user string, at timestamp")

    report = check_job(initials, CLICKS, expect='SELECT left("user", 1) AS "user", "at" FROM clicks', histories=10)
    assert report.expecting > 0


def test_a_processor_gets_its_rows_one_at_a_time() -> None:
    with session_for_query({}, any_provider=True) as spark, row_by_row():
        clicks = spark.createDataFrame([("a", 1), ("a", 2)], "user string, amount bigint")
        emitted = connect.call(totals, clicks).toArrow().to_pylist()
    assert [row["total"] for row in emitted] in ([1, 3], [2, 3])


def test_a_script_conforms() -> None:
    def script() -> None:
        session = SparkSession.builder.appName("visits").getOrCreate()
        assert "connect" in type(session).__module__
        session.conf.set("spark.sql.session.timeZone", "America/New_York")
        clicks = session.readStream.schema("user string, at timestamp, amount bigint").parquet("/data/clicks")
        prices = session.read.parquet("/data/prices")
        named = clicks.join(prices, "user").withColumn("hour", F.hour("at"))
        named.createOrReplaceTempView("named")
        result = session.sql("SELECT user, price, at, hour FROM named")
        result.writeStream.format("console").start().awaitTermination()

    reads = {"clicks": CLICKS, "prices": [{"user": "a", "price": 3}, {"user": "b", "price": 4}]}
    report = check_job(Script(script, reads=reads), expect=as_batch(), histories=HISTORIES)
    assert report.expecting > 0


def test_a_function_of_batches_shares_no_variable_with_this_process() -> None:
    """The server calls it in a process of its own."""
    seen: list[int] = []

    def note(rows: DataFrame, number: int) -> None:
        seen.append(number)

    with session_for_query({}, any_provider=True):
        sent = connect.as_sent(note)
        sent(None, 3)
        assert not seen
        with pytest.raises(BadInput, match=r"can't be sent to the Connect server.*: let it use only its arguments"):
            connect.as_sent(lambda rows, number: A_LOCK.locked())


A_LOCK = threading.Lock()


def test_the_server_takes_no_client_without_its_token(spark: SparkSession) -> None:
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException
    from pyspark.sql.connect.session import SparkSession as Client

    token = "spark.connect.authenticate.token"
    with session_for_query({}, any_provider=True) as session:
        port = connect.client_of(session).client._builder.endpoint.rpartition(":")[2]
        assert session.sparkContext._jsc.sc().conf().get(token)
        with pytest.raises(SparkConnectGrpcException, match="No authentication token provided"):
            assert Client(f"sc://localhost:{port}").version


def test_settings_of_the_users_session_hold_for_the_query(spark: SparkSession) -> None:
    zone = "spark.sql.session.timeZone"
    client = session_of_jobs()
    client.conf.set(zone, "Asia/Tokyo")
    try:
        with session_for_query({"spark.sql.shuffle.partitions": "3"}, any_provider=True) as checks:
            names = (zone, "spark.sql.shuffle.partitions")
            of_both: list[Mapping[str, Any]] = [
                {name: one.conf.get(name) for name in names} for one in (checks, client)
            ]
            assert of_both == [dict(zip(names, ("Asia/Tokyo", "3"), strict=True))] * 2
    finally:
        client.conf.unset(zone)
    assert spark.conf.get(zone) == "UTC"


@pytest.mark.weekly("CI asks of the modules of a function")
def test_functions_that_a_module_declares_before_any_session_are_for_connect(tmp_path: Path) -> None:
    """PySpark alone would refuse the module, for it has no session yet."""
    (tmp_path / "pages.py").write_text(
        "from pyspark.sql import functions as F\nfrom pyspark.sql.types import StringType\n\n"
        "@F.udf(returnType=StringType())\n"
        "def lower(page):\n    return page and page.lower()\n\n"
        "def pages(clicks):\n    return clicks.select('user', lower('page').alias('page'))\n"
    )
    (tmp_path / "test_pages.py").write_text(
        "from pages import pages\nfrom streamproof import Input, as_batch\n\n"
        "def test_pages(check_job):\n"
        "    clicks = Input(\"user string, at timestamp, page string comment 'path'\", key='user')\n"
        "    print(check_job(pages, clicks, expect=as_batch(), histories=10))\n"
    )
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "test_pages.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert "over Spark Connect conforms to the same job as a batch on 10 histories" in done.stdout, done.stdout


@pytest.mark.weekly("as long as the examples take: seven minutes")
def test_the_examples_have_the_same_verdicts_but_for_two_scripts_that_connect_cannot_run() -> None:
    """A script that sets the log level of its context, and a script that names a master."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "examples",
        "-k",
        "not many",
        "-q",
        "-n",
        "2",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3_000)
    failed = re.findall(r"^FAILED examples/(\S+)", done.stdout, re.MULTILINE)
    verdicts = ("test_the_bug_is_found", "test_the_script_conforms")
    refused = [
        f"test_scripts.py::{verdict}[{name}]" for verdict in verdicts for name in ("hourly_revenue", "payment_ledger")
    ]
    assert sorted(failed) == sorted(refused), done.stdout
    assert "Attribute `sparkContext` is not supported in Spark Connect" in done.stdout
    assert "CANNOT_CONFIGURE_SPARK_CONNECT_MASTER" in done.stdout

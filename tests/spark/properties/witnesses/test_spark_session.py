from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamproof.properties.witnesses.spark import session as spark_session


def test_a_second_call_returns_the_same_session(spark):
    assert spark_session.spark_session() is spark


def test_a_thread_may_have_a_session_of_its_own_with_settings_of_its_own(spark):
    zone = "spark.sql.session.timeZone"

    def own() -> tuple[object, str]:
        spark_session.use_own_session(0)
        mine = spark_session.spark_session()
        mine.conf.set(zone, "Asia/Kathmandu")
        return mine, spark_session.spark_session().sql("SELECT current_timezone()").collect()[0][0]

    with ThreadPoolExecutor(1) as executor:
        mine, found = executor.submit(own).result()
    assert found == "Asia/Kathmandu"
    assert spark_session.spark_session() is spark
    assert spark.conf.get(zone) == "UTC"
    assert mine is not spark
    assert mine in spark_session.sessions()


@pytest.mark.parametrize(("said", "partitions"), [(False, "1"), (True, "2")])
def test_a_thread_s_own_session_has_its_partitions_unless_the_user_says_how_many(spark, monkeypatch, said, partitions):
    setting = "spark.sql.shuffle.partitions"
    monkeypatch.setattr(spark_session, "_partitions_said", said)
    monkeypatch.setattr(spark_session, "_own_sessions", {})

    def own() -> str:
        spark_session.use_own_session(0, partitions=1)
        return spark_session.spark_session().conf.get(setting)

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(own).result() == partitions
    assert spark.conf.get(setting) == "2"


def test_the_session_keeps_state_in_rocksdb_and_emits_time_in_utc(spark):
    assert spark.conf.get("spark.sql.streaming.stateStore.providerClass") == spark_session.ROCKSDB
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_what_the_jvm_writes_reaches_the_log_alone(spark, capfd):
    spark._jvm.System.err.println("a word from the JVM")
    spark._jvm.System.out.println("and another")
    assert capfd.readouterr() == ("", "")
    assert Path(spark_session.spark_log_path()).read_text().count("a word from the JVM\nand another") == 1

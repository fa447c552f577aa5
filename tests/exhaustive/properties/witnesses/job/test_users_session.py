"""A session of the user's own is used as it is: its zone, its state store provider, its settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """\
import os, sys
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
from pyspark.sql import SparkSession, functions as F

spark = (
    SparkSession.builder.master("local[2]").appName("mine")
    .config("spark.sql.session.timeZone", "Europe/Berlin").config("spark.ui.enabled", "false").getOrCreate()
)
ASKED = ("spark.sql.session.timeZone", "spark.sql.streaming.stateStore.providerClass", "spark.sql.shuffle.partitions")
before = [spark.conf.get(name) for name in ASKED]

from streamproof import Input, check_job, windows

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")


def days(clicks):
    return clicks.withWatermark("at", "1 hour").groupBy("user", F.window("at", "6 hours")).agg(F.count("*").alias("n"))


print(check_job(days, CLICKS, expect=windows("6 hours", delay="1 hour", aggregates={"n": "count"}), histories=40))
assert [spark.conf.get(name) for name in ASKED] == before, before
assert SparkSession.getActiveSession() is spark
print("as it was", before)
spark.stop()
"""


def test_a_session_of_the_users_own_is_used_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "days (mine.py:17) conforms to windows(size=6 hours, delay=1 hour) on 40 histories" in done.stdout
    assert "HDFSBackedStateStoreProvider" in done.stdout
    assert "'Europe/Berlin'" in done.stdout

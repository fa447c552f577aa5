"""The decoupled foreign-key join over Kafka topics, on a broker of the test's own, by Spark's connector.

Spark takes the connector only before it starts, so the tests of `test_decoupled_foreign_key_join` run in a process of
their own. Skipped by name where the jars can't be had.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from streamproof.properties.witnesses.kafka.jvm import Coordinates, kafka_jars
from streamproof.properties.witnesses.kafka_broker.broker import broker_jars, own_broker
from streamproof.reference.core.errors import MissingTool

pytestmark = [
    pytest.mark.spark,
    pytest.mark.weekly("on files three queries are in CI at any pace: here they ask Kafka, and 10,000 races"),
]

CONNECTOR = Coordinates("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark.__version__)
BEFORE = CONNECTOR._replace(version="4.2.0")
"""The connector of the release before, which Spark 4.3 takes too: not every mirror has the newest."""
CHOSEN = "kafka and (pace or ten_thousand)"
NEEDED = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")
"""What Spark doesn't bring itself."""


def connector() -> list[Path]:
    """Return the connector's jars, or skip the test."""
    refused = []
    for of in (CONNECTOR, BEFORE):
        try:
            return [jar for jar in kafka_jars(of).glob("*.jar") if jar.name.startswith(NEEDED)]
        except MissingTool as error:
            refused.append(str(error))
    pytest.skip(f"Spark's Kafka connector: {'; '.join(refused)}")


def test_the_tests_with_topics_on_kafka_pass_on_topics_of_two_partitions() -> None:
    jars = connector()
    try:
        broker_jars()
    except MissingTool as error:
        pytest.skip(f"kafka-broker: {error}")
    of_join = Path(__file__).with_name("test_decoupled_foreign_key_join.py")
    with own_broker({"auto.create.topics.enable": "true", "num.partitions": "2"}) as cluster:
        environment = {
            **os.environ,
            "STREAMPROOF_KAFKA_SERVERS": cluster.bootstrap,
            "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jars))} pyspark-shell",
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(of_join), "-k", CHOSEN],
            cwd=of_join.parents[2],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=550,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout, done.stdout

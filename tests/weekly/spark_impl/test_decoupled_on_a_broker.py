"""The decoupled foreign-key join over Kafka topics, on a broker of the test's own, by Spark's connector.

Spark takes the connector only before it starts, so the tests of `test_decoupled_foreign_key_join` run in a process of
their own. Skipped by name where the jars can't be had.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from kafka_connector import environment_with_kafka
from paths import ROOT, TESTS
from streamproof.properties.witnesses.kafka_broker.broker import own_broker

pytestmark = pytest.mark.weekly("on files three queries are in CI at any pace: here they ask Kafka, and 10,000 races")

CHOSEN = "kafka and (pace or ten_thousand)"


def test_the_tests_with_topics_on_kafka_pass_on_topics_of_two_partitions() -> None:
    with_connector = environment_with_kafka()
    of_join = TESTS / "exhaustive" / "spark_impl" / "test_decoupled_foreign_key_join.py"
    with own_broker({"auto.create.topics.enable": "true", "num.partitions": "2"}) as cluster:
        environment = {**with_connector, "STREAMPROOF_KAFKA_SERVERS": cluster.bootstrap}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(of_join), "-k", CHOSEN],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=550,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout, done.stdout

"""Spark's connector to Kafka, for tests that run in a process of their own: Spark takes it only before it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from streamproof.properties.witnesses.kafka.jvm import Coordinates, kafka_jars
from streamproof.properties.witnesses.kafka_broker.broker import broker_jars
from streamproof.reference.core.errors import MissingTool

CONNECTOR = Coordinates("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark.__version__)
BEFORE = CONNECTOR._replace(version="4.2.0")
"""The connector of the release before, which Spark 4.3 takes too: not every mirror has the newest."""
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


def said_with_kafka(program: Path) -> Any:
    """Run a program whose Spark has the connector, and return its last line, read as JSON; or skip the test."""
    done = subprocess.run(
        [sys.executable, str(program)],
        env=environment_with_kafka(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=580,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def environment_with_kafka() -> dict[str, str]:
    """Return the environment of a process whose Spark has the connector, or skip the test by what is missing."""
    jars = connector()
    try:
        broker_jars()
    except MissingTool as error:
        pytest.skip(f"kafka-broker: {error}")
    return {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jars))} pyspark-shell"}

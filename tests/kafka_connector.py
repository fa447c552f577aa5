"""Spark's connector to Kafka, for tests that run in a process of their own: Spark takes it only before it starts."""

from __future__ import annotations

import os
from pathlib import Path

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


def environment_with_kafka() -> dict[str, str]:
    """Return the environment of a process whose Spark has the connector, or skip the test by what is missing."""
    jars = connector()
    try:
        broker_jars()
    except MissingTool as error:
        pytest.skip(f"kafka-broker: {error}")
    return {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {','.join(map(str, jars))} pyspark-shell"}

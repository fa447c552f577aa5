"""`Sink.kafka` on a real broker, by Spark's connector: Spark's writer repeats records, and a reader can know them.

Spark takes the connector only before it starts, so the jobs run in a process of their own.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka_connector import said_with_kafka

JOBS = Path(__file__).with_name("kafka_sinks.py")


@pytest.mark.weekly("a broker, and queries in processes of their own")
def test_a_plain_writer_to_kafka_writes_twice_and_a_reader_that_knows_repeated_records_reads_once() -> None:
    said = said_with_kafka(JOBS)
    assert "twice at the end; without a crash it emits it once" in said["plain"]
    assert said["known by batch and row"] == "conforms"
    assert said["transactions"] == [{"key": "k", "n": 1}]

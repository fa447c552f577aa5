"""The rows that a query has read from Kafka."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference.core.errors import BadInput
from ...generators.columns.forms.rows import Row
from ...system.installed.spark_versions import arrow_table_of, struct_of_arrow
from ..job.rows import rows_of
from .reading import Again, ReadSource, reported_reading, with_time

KAFKA = "kafka"
EARLIEST = -2
"""The start offset of a partition that was added later."""


def read_kafka(place: ReadSource) -> Again:
    """Read the records of a Kafka source, using the offsets of each micro-batch.

    Raises:
        BadInput: The broker's address is unknown, records are deleted, or the input's payload isn't JSON.
    """
    source, reading, checkpoint = place.source, place.reading, place.checkpoint
    encoding = source.encoding
    if encoding is None or encoding.format != KAFKA or encoding.value != "json":
        raise BadInput(
            f'input {source.name} was read from Kafka: declare its payload as JSON, Input(…, format="kafka"); others '
            "can't be judged yet"
        )
    if not any(name.lower() == "kafka.bootstrap.servers" for name in reading.options):
        raise BadInput(
            f"input {source.name} was read from Kafka: give the broker's address, "
            f'reads={{"{source.name}": {{"format": "kafka", "kafka.bootstrap.servers": "host:9092"}}}}'
        )
    start, last = checkpoint.start_of(place.folder), place.ends[-1]
    if start is None:
        raise BadInput(f"{checkpoint.files.where(f'sources/{place.folder}/0')} is missing: copy the whole checkpoint")
    begins = {
        topic: {part: start.get(topic, {}).get(part, EARLIEST) for part in parts} for topic, parts in last.items()
    }
    ends = {
        (topic, int(part)): [(end or {}).get(topic, {}).get(part, -1) for end in place.ends]
        for topic, parts in last.items()
        for part in parts
    }
    return _with_batches(place, _records(place, begins, last), ends)


def _records(place: ReadSource, begins: Mapping[str, Any], ends: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records between offsets, ordered by time."""
    from pyspark.sql import functions as F

    assert place.source.encoding is not None
    options = {
        "assign": json.dumps({topic: [*map(int, parts)] for topic, parts in ends.items()}),
        "startingOffsets": json.dumps(begins),
        "endingOffsets": json.dumps(ends),
        **place.reading.options,
    }
    columns = struct_of_arrow(place.source.encoding.columns)
    with reported_reading(f"input {place.source.name}"):
        frame = place.spark.read.format(KAFKA).options(**options).load()
        payload = F.from_json(F.col("value").cast("string"), columns)
        selected = frame.select(
            *(F.col(name).alias(f"__{name}") for name in ("topic", "partition", "offset", "timestamp")),
            payload.alias("payload"),
            F.get_json_object(F.col("value").cast("string"), "$").isNull().alias("__unreadable"),
        ).orderBy("__timestamp", "__topic", "__partition", "__offset")
        return [*rows_of(arrow_table_of(selected))]


def _with_batches(
    place: ReadSource, rows: Sequence[dict[str, Any]], ends: Mapping[tuple[str, int], Sequence[int]]
) -> Iterator[tuple[int, Row | None]]:
    """Yield each row with the number of its micro-batch."""
    source, encoding, batches = place.source, place.source.encoding, place.checkpoint.batches
    assert encoding is not None
    for row in rows:
        number = batches[bisect_right(ends[row["__topic"], row["__partition"]], row["__offset"])].number
        if row["__unreadable"] or row["payload"] is None:
            yield number, None
        else:
            given = {**row["payload"]}
            if encoding.is_records_time:
                given[source.time] = row["__timestamp"]
            yield number, with_time(source, given)

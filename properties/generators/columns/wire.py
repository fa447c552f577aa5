"""Encode the rows of a source as the job's input rows, such as Kafka records with a JSON payload.

Histories and oracles have rows with the columns of the `Input`. `Encoder` encodes these rows for the job when a query's
input tables are created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zlib import crc32

import pyarrow as pa

from ....reference.core.errors import BadInput
from .debezium import ChangeLog
from .forms.encoding import RECORDS_GRAIN_US, Encoding
from .forms.envelopes import WireMessage
from .forms.payloads import key_text
from .forms.rows import Row, from_microseconds, microseconds
from .model import Source

PARTITIONS = 3
"""The number of partitions of a topic."""


def table_of(source: Source, rows: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table with the columns of the `Input`.

    Raises:
        BadInput: A value doesn't fit its column.
    """
    return _table(source.name, source.schema, rows)


def _table(name: str, schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    columns = []
    for column in schema:
        try:
            columns.append(pa.array([row[column.name] for row in rows], column.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise BadInput(
                f"input {name}: a value of the column {column.name!r} doesn't fit {column.type}: "
                f"{str(error).splitlines()[0]}; give values of that type"
            ) from None
    return pa.table(columns, schema=schema)


class Encoder:
    """Creates the input tables of a query, batch by batch; a broker's offsets continue from batch to batch.

    Args:
        source: The source.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.offsets: Counter[int] = Counter()
        self.reached_us = 0
        self.changes: ChangeLog | None = None
        if source.encoding is not None and source.is_change_log:
            self.changes = ChangeLog([*source.encoding.columns], source.key, source.name)

    def table(
        self, rows: Sequence[Row], unreadable: Sequence[tuple[Row, str]] = (), clock_us: int | None = None
    ) -> pa.Table:
        """Return the rows of a batch as the job's input rows.

        Args:
            rows: The rows.
            unreadable: The unreadable records that arrive after the rows, each as the row that it would contain and the
                fault of its payload.
            clock_us: The largest event time by the end of the batch (µs), which is the timestamp of the batch's Kafka
                records; by default the largest event time of the rows so far.

        Raises:
            BadInput: A value doesn't fit its column, or the user's function can't convert a row to a payload.
        """
        source, encoding = self.source, self.source.encoding
        if encoding is None:
            return table_of(source, rows)
        if encoding.format is None:
            return _table(source.name, encoding.schema, [encoding.plain(row) for row in rows])
        times = [source.time_us(row) for row in rows if row[source.time] is not None]
        self.reached_us = max([self.reached_us, *times] if clock_us is None else [clock_us])
        where = f"input {source.name}"
        payloads = [(row, payload) for row in rows for payload in self._payloads(encoding, row, where)]
        payloads += [(row, encoding.payload(row, where, fault)) for row, fault in unreadable]
        return _table(source.name, encoding.schema, [self._record(encoding, row, value) for row, value in payloads])

    def _payloads(self, encoding: Encoding, row: Row, where: str) -> Sequence[bytes | None]:
        if self.changes is not None:
            return self.changes.events(encoding.plain(row))
        return [encoding.payload(row, where)]

    def _record(self, encoding: Encoding, row: Row, value: bytes | None) -> Mapping[str, Any]:
        source = self.source
        if encoding.envelope is None:
            return {"value": None if value is None else value.decode(errors="replace")}
        key = key_text(row, source.key, source.schema, as_object=self.changes is not None)
        partition = (sum(self.offsets.values()) if key is None else crc32(key)) % PARTITIONS
        offset = self.offsets[partition]
        self.offsets[partition] += 1
        time = row[source.time] if encoding.is_records_time else from_microseconds(self.reached_us)
        return encoding.envelope.values(WireMessage(key, value, source.name, partition, offset, _in_ms(time)))


def _in_ms(time: datetime) -> datetime:
    time_us = microseconds(time)
    return from_microseconds(time_us - time_us % RECORDS_GRAIN_US)

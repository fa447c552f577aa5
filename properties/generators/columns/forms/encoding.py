"""The format of a source's rows: columns, records of a broker or lines of text, and the payload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from .envelopes import ENVELOPES, HEADERS, Envelope
from .nesting import TimePlace
from .payloads import DEBEZIUM, JSON_ARRAY, PayloadForm, payload
from .rows import Row
from .times import TimeForm

Format: TypeAlias = Literal["kafka", "kinesis", "eventhubs", "pubsub", "pulsar", "text"]
"""The format of a source's records: records of a broker, or lines of text, as in files and from sockets."""

TEXT = pa.schema([pa.field("value", pa.string())])
RECORDS_GRAIN_US = 1000
"""The precision of a record's own timestamp (µs)."""


@dataclass(frozen=True)
class Encoding:
    """The format of a source's rows.

    Attributes:
        columns: The declared columns of the `Input`: the columns of the payload, or of the DataFrame if there is no
            payload.
        time: The event-time column.
        form: The format of event times; None if event times are timestamps.
        format: The format of the records; None if the DataFrame has the declared columns.
        value: The format of a record's payload.
        headers: Whether Kafka's records contain headers.
        place: The path of the event time within a struct; None if the event time is a column.
    """

    columns: pa.Schema
    time: str
    form: TimeForm | None = None
    format: Format | None = None
    value: PayloadForm = "json"
    headers: bool = False
    place: TimePlace | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the job's input."""
        if self.format is None:
            return self.columns
        if self.envelope is None:
            return TEXT
        return self.envelope.columns.append(HEADERS) if self.headers else self.envelope.columns

    @property
    def envelope(self) -> Envelope | None:
        """The format of a broker's records; None without a broker."""
        return ENVELOPES.get(self.format or "")

    @property
    def payload_column(self) -> str:
        """The column of the payload."""
        return "value" if self.envelope is None else self.envelope.payload

    @property
    def timestamp(self) -> str | None:
        """The timestamp column with the event time in the job's input; None if the job derives the event time."""
        return self.time if self.is_records_time else None

    @property
    def is_records_time(self) -> bool:
        """Whether the event time is the record's own timestamp, outside the payload."""
        own = None if self.envelope is None else self.envelope.time
        is_column = self.time in self.columns.names or self.place is not None
        return self.time == own and not is_column and not self.is_change_log

    @property
    def is_change_log(self) -> bool:
        """Whether the payloads are Debezium's change events of a table."""
        return self.value == DEBEZIUM

    @property
    def grain_us(self) -> int:
        """The precision of event times (µs): each event time is a multiple of it."""
        if self.is_records_time:
            return RECORDS_GRAIN_US
        return 1 if self.form is None else self.form.grain_us

    @property
    def shown_form(self) -> TimeForm | None:
        """The format in which the job's output contains an event time that the job passes on unchanged; None if it is a
        timestamp.
        """
        in_payload = self.format is not None and self.value in ("json", JSON_ARRAY, "csv") and not self.is_records_time
        return TimeForm(pa.string(), None, 1) if self.form is None and in_payload else self.form

    def plain(self, row: Row) -> Row:
        """Return a row with the event time in the source's format and, if the `Input` names a struct's member, within
        the struct.
        """
        given = row if self.form is None else {**row, self.time: self.form.of(row[self.time])}
        return given if self.place is None else self.place.nested(given)

    def payload(self, row: Row, where: str, fault: str = "") -> bytes | None:
        """Return the payload of a row, optionally with a fault that makes it unreadable; see `payloads.payload`."""
        return payload(self.value, self.plain(row), self.columns, where, fault, self.time)

"""The form of a source's rows: records of a broker or lines of text, and their payload."""

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
"""The form of a source's records: records of a broker, or lines of text, as in files and from sockets."""

TEXT = pa.schema([pa.field("value", pa.string())])
RECORDS_GRAIN_US = 1000
"""The precision of records' timestamps (µs)."""


@dataclass(frozen=True)
class Encoding:
    """The form of a source's rows.

    Attributes:
        columns: The columns of the payload, or of the frame without a payload, as the Input declares them.
        time: The event-time column.
        form: The form of event-time values; None: timestamps.
        format: The form of the records; None: the frame contains the columns themselves.
        value: The form of a record's payload.
        headers: Whether Kafka's records contain headers.
        place: The place of the event time within a struct; None: the event time is a column.
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
        """The form of a broker's records; None: no broker."""
        return ENVELOPES.get(self.format or "")

    @property
    def payload_column(self) -> str:
        """The column of the payload."""
        return "value" if self.envelope is None else self.envelope.payload

    @property
    def timestamp(self) -> str | None:
        """The timestamp column of the event time in the job's input; None: the job derives the event time."""
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
        """The unit of event times (µs): each event time is a multiple."""
        if self.is_records_time:
            return RECORDS_GRAIN_US
        return 1 if self.form is None else self.form.grain_us

    @property
    def shown_form(self) -> TimeForm | None:
        """The form of an event time that the job emits unchanged; None: a timestamp."""
        in_payload = self.format is not None and self.value in ("json", JSON_ARRAY, "csv") and not self.is_records_time
        return TimeForm(pa.string(), None, 1) if self.form is None and in_payload else self.form

    def plain(self, row: Row) -> Row:
        """Return a row with its event time in the source's form and place."""
        given = row if self.form is None else {**row, self.time: self.form.of(row[self.time])}
        return given if self.place is None else self.place.nested(given)

    def payload(self, row: Row, where: str, fault: str = "") -> bytes | None:
        """Return the payload of a row, with a fault if given; as `payloads.payload`."""
        return payload(self.value, self.plain(row), self.columns, where, fault, self.time)

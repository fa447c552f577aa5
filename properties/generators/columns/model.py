"""The data model of a job's check: inputs, histories of rows, and the rows that an oracle expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from .forms.rows import Row, from_microseconds, microseconds

if TYPE_CHECKING:
    import pyarrow as pa

    from .forms.encoding import Encoding

Comparing: TypeAlias = Literal["batches", "cuts", "end"]
"""The compared output: the rows of each batch, the table after each batch, or the table at the end."""


@dataclass(frozen=True)
class Source:
    """A streaming input of a job: the columns of its histories, and the format of the job's input rows.

    Attributes:
        name: The name of the job's parameter.
        schema: The columns and their types, in order.
        time: The event-time column, of a timestamp type.
        key: The columns of the key.
        encoding: The format of the job's input rows; None if the job gets the columns of `schema`.
        null_times: Whether rows may lack an event time.
    """

    name: str
    schema: pa.Schema
    time: str
    key: tuple[str, ...]
    encoding: Encoding | None = None
    null_times: bool = False

    @property
    def wire_schema(self) -> pa.Schema:
        """The columns of the job's input."""
        return self.schema if self.encoding is None else self.encoding.schema

    @property
    def wire_time(self) -> str | None:
        """The timestamp column of the event time in the job's input; None if the job derives the event time."""
        return self.time if self.encoding is None else self.encoding.timestamp

    @property
    def has_payload(self) -> bool:
        """Whether the job gets records with a payload that it parses."""
        return self.encoding is not None and self.encoding.format is not None

    @property
    def records_key(self) -> str | None:
        """The column of a broker's records that contains the key's text; None if there is no such column."""
        envelope = None if self.encoding is None else self.encoding.envelope
        return None if envelope is None or self.is_change_log or len(self.key) != 1 else envelope.key or None

    @property
    def is_change_log(self) -> bool:
        """Whether the job gets Debezium's change events of a table."""
        return self.encoding is not None and self.encoding.is_change_log

    @property
    def grain_us(self) -> int:
        """The precision of event times (µs): each event time is a multiple of it."""
        return 1 if self.encoding is None else self.encoding.grain_us

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """Return the key of a row."""
        return tuple(row[column] for column in self.key)

    def time_us(self, row: Row) -> int:
        """Return a row's event time (µs since 1970)."""
        return microseconds(row[self.time])

    def time_us_of(self, row: Row) -> int | None:
        """Return a row's event time (µs since 1970); None if the row has no event time."""
        return None if row[self.time] is None else self.time_us(row)

    def latest_us(self, batch: Sequence[Arrival]) -> int | None:
        """Return the largest event time (µs) of the source's rows in a batch; None if no row has an event time."""
        times = [self.time_us(row) for name, row in batch if name == self.name and row[self.time] is not None]
        return max(times, default=None)

    def time_of(self, time_us: int) -> datetime:
        """Return an event time as a row contains it: rounded down to the precision, in UTC or without a zone, as the
        column's type requires.
        """
        time = from_microseconds(time_us - time_us % self.grain_us)
        return time if self.schema.field(self.time).type.tz else time.replace(tzinfo=None)


class Arrival(NamedTuple):
    """A row that arrives on an input."""

    input: str
    row: Row


class Unreadable(NamedTuple):
    """A record that arrives on an input with an unreadable payload.

    Attributes:
        batch: The index of the record's batch.
        input: The input.
        row: The row that the record's payload would contain without the fault.
        fault: The payload's fault, such as `truncated`.
    """

    batch: int
    input: str
    row: Row
    fault: str


@dataclass(frozen=True)
class JobHistory:
    """The arrivals at a job, in micro-batches.

    Attributes:
        batches: The rows of each batch, in order of arrival.
        clock: The clock schedule: the largest event time by the end of each batch (µs since 1970), if other rows move
            the watermark too; empty if only the history's own rows move the watermark.
        name: The history's name in reports.
        variation: The invariant that the history violates, and the query's run options; empty for default options.
        seed: The seed of the check that saved the history; None if the history isn't saved.
        unreadable: The unreadable records, which arrive at the end of their batch. Oracles don't see unreadable
            records.
        numbers: The number of each batch in Spark; None for an unknown number. If empty, batches are numbered from 0.
    """

    batches: tuple[tuple[Arrival, ...], ...]
    clock: tuple[int, ...] = ()
    name: str = field(default="history", compare=False)
    variation: Mapping[str, Any] = field(default_factory=dict, compare=False)
    seed: int | None = field(default=None, compare=False, repr=False)
    unreadable: tuple[Unreadable, ...] = ()
    numbers: tuple[int | None, ...] = field(default=(), compare=False, repr=False)

    @property
    def arrivals(self) -> list[Arrival]:
        """All arrivals, in order."""
        return [arrival for batch in self.batches for arrival in batch]

    def name_of(self, batch: int) -> str:
        """Return the name of a batch in tables, by its index."""
        number = self.numbers[batch] if self.numbers else batch
        return "earlier" if number is None else f"batch {number}"

    @property
    def played(self) -> str:
        """The rows, clock schedule and unreadable records as text, to recognize equal histories."""
        return repr((self.batches, self.clock, self.unreadable))

    @property
    def used(self) -> int:
        """The number of batches up to the last batch with an arrival, at least one."""
        with_rows = [number for number, batch in enumerate(self.batches) if batch]
        return 1 + max([*with_rows, *(one.batch for one in self.unreadable)], default=0)

    def times_ms(self, sources: Sequence[Source]) -> list[int]:
        """Return the largest event time by the end of each batch (ms since 1970); 0 before the first event time."""
        if self.clock:
            return [time_us // 1000 for time_us in self.clock]
        latest = (max((source.latest_us(batch) or 0 for source in sources), default=0) for batch in self.batches)
        return [time_us // 1000 for time_us in accumulate(latest, max)]

    def unreadable_in(self, batch: int) -> list[Unreadable]:
        """Return the unreadable records of a batch; the last batch also gets the records of batches that were removed
        after it.
        """
        last = len(self.batches) - 1
        return [one for one in self.unreadable if min(one.batch, last) == batch]

    @property
    def silent(self) -> JobHistory:
        """A history with the same batches and clock, but without arrivals."""
        return replace(self, batches=((),) * len(self.batches), unreadable=())

    def with_batches(self, batches: Sequence[Sequence[Arrival]]) -> JobHistory:
        """Return the history with other batches; if the history has a clock schedule, the number of batches must stay
        the same.
        """
        return replace(self, batches=tuple(map(tuple, batches)))

    def first(self, count: int) -> JobHistory:
        """Return the history of only the first batches."""
        unreadable = tuple(one for one in self.unreadable if one.batch < count)
        first = replace(self, batches=self.batches[:count], clock=self.clock[:count], unreadable=unreadable)
        return replace(first, numbers=self.numbers[:count])

    def with_arrivals(self, arrivals: Iterable[Arrival]) -> JobHistory:
        """Return the history with other arrivals, distributed over batches of the same sizes."""
        remaining = iter(arrivals)
        return self.with_batches([[next(remaining) for _ in batch] for batch in self.batches])


@dataclass(frozen=True)
class Expected:
    """The expected outcome of a history.

    Attributes:
        comparing: The granularity of the comparison: `batches`, `cuts` or `end`.
        rows: The expected rows, in any order. `batches`: the emitted rows of each batch; `cuts`: the table after each
            batch; `end`: one list, the table at the end.
        at_end: Whether the check compares only the final table, which the rows of `batches` build up.
    """

    comparing: Comparing
    rows: Sequence[Sequence[Row]]
    at_end: bool = False

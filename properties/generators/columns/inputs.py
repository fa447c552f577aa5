"""The declaration of a job's input: its columns, its event time and key, and its values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from hypothesis import strategies as st

from .forms.encoding import Format
from .forms.payloads import PayloadForm
from .forms.rows import Row
from .model import Source
from .values import ColumnValues, key_kinds, kinds


@dataclass(frozen=True)
class Input:
    """A streaming input of a job.

    Args:
        schema: The columns: a DDL string, a StructType or a pyarrow schema; optional with a sample. If the source's
            records have a payload, the columns of the payload.
        time: The event-time column; optional if only one column is a timestamp. With a broker's records, the event time
            may be the record's own timestamp, such as Kafka's `timestamp`: the default if no column is a timestamp. A
            member of a struct is named by its path, "meta.at"; histories and oracles contain this time as the column
            `at`, in addition to the rest of the struct. False: the source has no event time. Each row then has an
            arrival time, which only oracles see, as the column `timestamp`.
        key: The key column or columns; empty for a job without a key.
        name: The input's name in reports, different for every input of a job.
        keys: The keys to draw from, as tuples for several key columns. If you give keys, histories can't share a query.
        values: For each column, a Hypothesis strategy or a sequence of values to draw from; at most 1,000 values are
            used.
        sample: Your own rows: the path of a parquet or CSV file, a pandas DataFrame or an Arrow table. Histories
            contain rows of the sample, with other times and keys.
        time_format: The format of an event time that isn't a timestamp: "s", "ms" or "us" since 1970, for a number or
            text; or a `strftime` pattern. Other text is ISO 8601, in UTC with microseconds; a date needs no format.
        null_times: The share of rows without an event time, from 0 to 1.
        format: "kafka": the job gets the columns of Spark's Kafka source; "kinesis", "eventhubs", "pubsub" and
            "pulsar": the columns of these sources; "text": the single column `value`; by default the columns of the
            schema.
        value: The payload of the records: "json" by default, "json_array", the row as an array's only element, "csv",
            or "text", the only column besides the key;
            `avro(…)`; or a function from a row to bytes, or to None. "debezium": the change events of a table with
            these columns and the primary key `key`. Oracles get two more columns of each change, `deleted` (boolean)
            and `ts_ms` (its time, a timestamp); a job gets envelopes, and a tombstone after each delete.
        headers: Whether Kafka's records contain the column `headers`.
        malformed: The share of records with a truncated, empty or otherwise unreadable payload, from 0 to 1. Oracles
            don't see the unreadable records, because the check expects the job to skip such records.
        null_values: The share of Kafka records with a null payload, from 0 to 1. The check expects the job to skip
            records with a null payload too.
        deletes: The share of Debezium's changes that delete their row, from 0 to 1.
        identity: The column or columns that identify an event: rows of a history with equal identity are copies of each
            other, as after a redelivery. By default, each row is an event of its own.
    """

    schema: Any = None
    time: str | Literal[False] | None = None
    key: str | Sequence[str] = ()
    name: str = "events"
    keys: Sequence[Any] | None = None
    values: Mapping[str, st.SearchStrategy[Any] | Sequence[Any]] | None = None
    sample: Any = None
    time_format: str | None = None
    null_times: float = 0
    format: Format | None = None
    value: PayloadForm = "json"
    headers: bool = False
    malformed: float = 0
    null_values: float = 0
    deletes: float = 0.2
    identity: str | Sequence[str] = ()


@dataclass(frozen=True)
class BoundaryValues:
    """The values around the constants of a job's comparisons, to draw for the columns of an input.

    Attributes:
        values: The values around the constants of each comparison, by column.
        seldom: The values around each constant in the code of functions, by column.
        times_us: Event times at which a comparison's result changes (µs since 1970).
        passing: The values that satisfy the largest number of comparisons, by column; rows with these values pass the
            job's filters.
        passing_us: The event times in `times_us` that satisfy the largest number of comparisons.
    """

    values: Mapping[str, Sequence[ColumnValues]] = field(default_factory=dict)
    seldom: Mapping[str, Sequence[ColumnValues]] = field(default_factory=dict)
    times_us: Sequence[int] = ()
    passing: Mapping[str, ColumnValues] = field(default_factory=dict)
    passing_us: Sequence[int] = ()

    @property
    def are_known(self) -> bool:
        """Return whether any values exist."""
        return bool(self.values or self.seldom or self.times_us)


@dataclass(frozen=True)
class ResolvedInput:
    """An `Input` with its columns resolved, and the values to draw for its rows.

    Attributes:
        source: The columns, and the format of the job's input rows.
        keys: The user's own keys; empty if keys are drawn.
        pools: The user's values to draw from, by column.
        sample: The user's own rows; empty without a sample.
        null_times: The share of rows without an event time.
        malformed: The share of records with a malformed payload.
        null_values: The share of records without a payload.
        deletes: The share of a table's changes that delete their row.
        identity: The columns that identify an event; empty if each row is an event of its own.
        constants: The values around the constants of the checked job's comparisons.
    """

    source: Source
    keys: tuple[tuple[Any, ...], ...] = ()
    pools: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sample: tuple[Row, ...] = ()
    null_times: float = 0
    malformed: float = 0
    null_values: float = 0
    deletes: float = 0
    identity: tuple[str, ...] = ()
    constants: BoundaryValues = field(default_factory=BoundaryValues)

    @property
    def name(self) -> str:
        """The input's name."""
        return self.source.name

    @property
    def drawn_columns(self) -> list[str]:
        """The columns with drawn values, without event time and key; with a sample, only columns with `values`."""
        names = [name for name in self.source.schema.names if name not in (self.source.time, *self.source.key)]
        return [name for name in names if name in self.pools] if self.sample else names

    def kinds_of(self, column: str, around: datetime) -> list[ColumnValues]:
        """Return the sets of values that `kinds` returns for a column, or the user's own values."""
        if column in self.pools:
            return [self.pools[column]]
        return [*map(self.taken, kinds(self.source.schema.field(column).type, around))]

    def keys_of(self, column: str, around: datetime) -> list[ColumnValues]:
        """Return the sets of keys that `key_kinds` returns for a column."""
        return [*map(self.taken, key_kinds(self.source.schema.field(column).type, around))]

    def identity_of(self, row: Row) -> str:
        """Return the values of a row's identity columns as a text."""
        return repr([row[column] for column in self.identity])

    def taken(self, kind: ColumnValues) -> ColumnValues:
        """Return the values that the source's format can represent: Spark reads an empty CSV text as null."""
        encoding = self.source.encoding
        is_csv = encoding is not None and encoding.value == "csv"
        return tuple(value for value in kind if value != "") if is_csv else kind


def values_hint(inputs: Sequence[ResolvedInput], mentioned: str = "") -> str:
    """Return the argument of `Input` for a column's values, such as `values={"amount": […]}`, or for keys.

    Args:
        inputs: The job's inputs.
        mentioned: A text, such as code; the function prefers a column that occurs in the text.
    """
    columns = [column for given in inputs for column in given.drawn_columns]
    named = [column for column in columns if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", mentioned)]
    return f'values={{"{[*named, *columns][0]}": […]}}' if columns else "keys=[…]"

"""The declaration of a job's input: its columns, which of them are the event time and the key, and their values."""

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
        schema: The columns: a DDL string, a StructType or a pyarrow schema; may be left out where there is a sample.
            For records with a payload, the payload's columns.
        time: The column of the event time; may be left out where only one column is a timestamp. With records of a
            broker it may be the record's own, such as Kafka's `timestamp`, which is the default if no column is a
            timestamp. A member of a struct is named by its path, "meta.at"; histories and oracles have it as the column
            `at`, beside the rest of the struct. False: the source has no event time. Then the job isn't given the time
            by which its rows arrive; oracles have it as the column `timestamp`.
        key: The column or columns of the key; none for a job without a key.
        name: Its name in reports; every input of a job has its own.
        keys: The keys to draw from, tuples where the key has several columns. Histories then can't share a query.
        values: By column, a Hypothesis strategy or a sequence of values to draw from; of more than 1,000 values, 1,000
            are used.
        sample: Your own rows: the path of a parquet or CSV file, a pandas DataFrame or an Arrow table. Histories take
            rows from it, and change their times and keys.
        time_format: The form of an event time that isn't a timestamp: "s", "ms" or "us" since 1970, for a number or
            text; or a pattern of `strftime`. Other text is ISO 8601, in UTC with microseconds; a date needs no form.
        null_times: The share of rows without an event time, from 0 to 1.
        format: "kafka": the job is given the columns of Spark's Kafka source; "kinesis", "eventhubs", "pubsub" and
            "pulsar": those of these sources; "text": one column, `value`; by default the columns of the schema.
        value: The payload of the records: "json" by default, "json_array", the row as an array's only element, "csv",
            or "text", the one column beside the key;
            `avro(…)`; or a function from a row to bytes, or to None. "debezium": the change events of a table with
            these columns and the primary key `key`. Oracles have two more columns of each change, `deleted` (boolean)
            and `ts_ms` (its time, a timestamp); a job is given envelopes, and a tombstone after each delete.
        headers: Whether Kafka's records have the column `headers`.
        malformed: The share of records whose payload is cut, empty or otherwise no row, from 0 to 1. Oracles don't see
            them: a job is expected to skip them.
        null_values: The share of Kafka records whose payload is null, from 0 to 1. A job is expected to skip them too.
        deletes: The share of Debezium's changes that delete their row, from 0 to 1.
        identity: The column or columns that identify an event: two rows of a history that agree in them are copies of
            each other, as after a redelivery. By default any two rows may differ.
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
    """The values that are drawn for an input around the constants of a job.

    Attributes:
        values: By column, the values for each comparison.
        seldom: By column, the values for each constant in the code of functions.
        times_us: Event times (microseconds since 1970) at which the outcome of a comparison changes.
        passing: By column, those of its values on which the most of its comparisons are true: a filter is passed by a
            row on which all are.
        passing_us: The same of `times_us`.
    """

    values: Mapping[str, Sequence[ColumnValues]] = field(default_factory=dict)
    seldom: Mapping[str, Sequence[ColumnValues]] = field(default_factory=dict)
    times_us: Sequence[int] = ()
    passing: Mapping[str, ColumnValues] = field(default_factory=dict)
    passing_us: Sequence[int] = ()

    @property
    def are_known(self) -> bool:
        """Whether there are any."""
        return bool(self.values or self.seldom or self.times_us)


@dataclass(frozen=True)
class ResolvedInput:
    """An input whose columns are known, and the values that its rows are drawn from.

    Attributes:
        source: Its columns, and the form in which the job is given them.
        keys: The user's own keys; empty if keys are drawn.
        pools: The values to draw from, by column, where the user gives any.
        sample: The user's own rows; empty if there is no sample.
        null_times: The share of rows without an event time.
        malformed: The share of records with a malformed payload.
        null_values: The share of records without a payload.
        deletes: The share of a table's changes that delete their row.
        identity: The columns that identify an event; empty: any two rows may differ.
        constants: The values to draw around the constants of the job that is checked.
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
        """The columns whose values are drawn, beside time and key; with a sample only columns with given values."""
        names = [name for name in self.source.schema.names if name not in (self.source.time, *self.source.key)]
        return [name for name in names if name in self.pools] if self.sample else names

    def kinds_of(self, column: str, around: datetime) -> list[ColumnValues]:
        """Return the kinds of values of a column: the user's own, or those of its type; as `kinds`."""
        if column in self.pools:
            return [self.pools[column]]
        return [*map(self.taken, kinds(self.source.schema.field(column).type, around))]

    def keys_of(self, column: str, around: datetime) -> list[ColumnValues]:
        """Return the kinds of keys of a column; as `key_kinds`."""
        return [*map(self.taken, key_kinds(self.source.schema.field(column).type, around))]

    def identity_of(self, row: Row) -> str:
        """Return the identity of a row's event, as a text."""
        return repr([row[column] for column in self.identity])

    def taken(self, kind: ColumnValues) -> ColumnValues:
        """Return the values that the source's form keeps: in CSV, for example, Spark reads an empty text as null."""
        encoding = self.source.encoding
        is_csv = encoding is not None and encoding.value == "csv"
        return tuple(value for value in kind if value != "") if is_csv else kind


def values_hint(inputs: Sequence[ResolvedInput], mentioned: str = "") -> str:
    """Return how an Input lists values of a column, such as `values={"amount": […]}`, or keys if it has no such column.

    Args:
        inputs: The job's inputs.
        mentioned: A text, such as code. A column that it names is taken before the others.
    """
    columns = [column for given in inputs for column in given.drawn_columns]
    named = [column for column in columns if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", mentioned)]
    return f'values={{"{[*named, *columns][0]}": […]}}' if columns else "keys=[…]"

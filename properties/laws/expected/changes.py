"""The oracles of change data capture: the table that change events build, as a dimension of type 1 or 2."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ....reference.core.errors import BadInput
from ....reference.definitions.changes import Event, Kept
from ....reference.scd1 import current
from ....reference.scd2 import versions
from ...generators.columns.formatting import shown_row
from ...generators.columns.forms.rows import Row
from ...generators.columns.inputs import ResolvedInput
from ...generators.columns.model import Comparing, Expected, JobHistory, Source
from ...generators.columns.wire import table_of
from ...outcomes.equality import comparable
from ...system.arguments import checked
from ...system.visible import first_line
from ...witnesses.job.witness import RowsWitness
from ...witnesses.run_options import Mode, RunOptions
from .oracle import Oracle
from .oracles import in_utc
from .rules.declared import column_names, named

ColumnNames = str | Sequence[str]
ORDERED = ("integer", "decimal", "timestamp", "date", "string")
"""The types of columns that can order events; floating-point numbers can't, because NaN has no order."""
AGAIN, OLDER = "an event that arrives twice", "an event that arrives after a newer event of its key"
DELETED = "an event that is older than a delete, and arrives after the delete"


class _Kept(Kept):
    """The columns and values of a row that the table keeps."""

    def __repr__(self) -> str:
        return shown_row(self.value)


@dataclass(frozen=True, kw_only=True)
class ChangesOracle(Oracle):
    """The table that change events build; the order of arrival, lateness, repeated events and batches don't change it.

    Attributes:
        name: The oracle's name in reports.
        keys: The columns of a row's key.
        sequence_by: The columns that order the events of a key.
        deletes: The condition that is true for events that delete their row; None: no event deletes a row.
        columns: The non-key columns that the table keeps; None: all.
        ties: The columns that order events with equal sequence; empty: such events are copies of one event.
        input: The name of the input, if the job has several inputs.
    """

    name: str
    keys: tuple[str, ...]
    sequence_by: tuple[str, ...]
    deletes: str | None
    columns: tuple[str, ...] | None
    ties: tuple[str, ...]
    input: str | None
    takes_late = True

    @property
    def allows_fewer_columns(self) -> bool:  # type: ignore[override]
        """Whether the job's result may lack columns of the oracle, because the user names no columns."""
        return self.columns is None

    @property
    def written(self) -> Sequence[Any]:
        return [] if self.deletes is None else [self.deletes]

    @property
    def unchecked(self) -> Sequence[str]:
        if self.ties:
            return ()
        return (
            f"events of a key with equal {_listed(self.sequence_by)} that differ: ties=[…] names the columns "
            "that decide which event counts",
        )

    def closes(self, mode: Mode) -> bool:
        return False

    def identity(self, source: Source) -> Sequence[str]:
        is_read = self.input in (None, source.name)
        return [*dict.fromkeys((*self.keys, *self.sequence_by, *self.ties))] if is_read else ()

    def beside(self, witness: RowsWitness) -> ChangesOracle:
        """Return the oracle, or refuse an input that lacks a column of the rule or has an unsuitable type for it.

        Raises:
            BadInput: The input is unsuitable; the message names the column and what to do.
        """
        source = self._source(witness.sources)
        given = next(one for one in witness.inputs if one.name == source.name)
        for argument, columns in self._named.items():
            for column in columns:
                if column not in source.schema.names:
                    raise BadInput(
                        f"{self.name}: {argument} has {column!r}, and {source.name} has the columns "
                        f"{', '.join(source.schema.names)}: name one of them"
                    )
        for argument in ("sequence_by", "ties"):
            for column in self._named[argument]:
                self._check_order(argument, column, given)
        if not {*source.key} <= {*self.keys}:
            raise BadInput(
                f"{self.name}: a row's key is {_listed(self.keys)}, but the key of {source.name} is "
                f"{_listed(source.key)}, which separates histories: give the Input key={[*self.keys]!r}, or add "
                "its key to keys"
            )
        self._deleted(source, [])
        return self

    @property
    def _named(self) -> dict[str, Sequence[str]]:
        """The columns that each argument of the rule names."""
        return {
            "keys": self.keys,
            "sequence_by": self.sequence_by,
            "ties": self.ties,
            "columns": self.columns or (),
        }

    def _check_order(self, argument: str, column: str, given: ResolvedInput) -> None:
        source, kind = given.source, given.source.schema.field(column).type
        if not any(getattr(pa.types, f"is_{one}")(kind) for one in ORDERED):
            raise BadInput(
                f"{self.name}: {argument} has {column!r}, which is {kind} in {source.name} and can't order "
                "events: name a column of whole numbers, decimals, times, dates or texts, or cast it in the "
                "Input's schema"
            )
        is_drawn = column in given.drawn_columns and column not in given.pools
        may_be_null = is_drawn and source.schema.field(column).nullable
        may_be_null |= any(row[column] is None for row in given.sample)
        if source.null_times if column == source.time else may_be_null:
            remedy = "leave null_times out" if column == source.time else f'declare it NOT NULL, "{column} … NOT NULL"'
            raise BadInput(
                f"{self.name}: {argument} has {column!r}, which may be NULL in {source.name}, and an event "
                f"without a value in this column can't be ordered: {remedy}"
            )

    def _source(self, sources: Sequence[Source]) -> Source:
        names = [source.name for source in sources]
        if self.input is None and len(sources) > 1:
            raise BadInput(
                f'{self.name} reads one input, and the job has {_listed(names)}: name the input, input="{names[0]}"'
            )
        if self.input is not None and self.input not in names:
            raise BadInput(f"{self.name}: there is no input {self.input!r}: use {_listed(names)}")
        return next(source for source in sources if self.input in (None, source.name))

    def _deleted(self, source: Source, rows: Sequence[Row]) -> list[bool]:
        """Return, for each row of an input, whether the row is a delete; DuckDB evaluates the user's condition."""
        if self.deletes is None:
            return [False] * len(rows)
        import duckdb

        from ...witnesses.duckdb.connection import connect

        with connect() as connection:
            connection.register("__streamproof_rows", in_utc(table_of(source, rows)))
            try:
                found = connection.sql(f"SELECT ({self.deletes}\n) FROM __streamproof_rows")
                kinds, answer = found.types, found.fetchall()
            except (duckdb.Error, UnicodeError) as error:
                raise BadInput(
                    f"{self.name}: DuckDB refuses the condition of deletes, {self.deletes!r}: "
                    f"{first_line(error)}; the columns are {', '.join(source.schema.names)}: write a condition "
                    "such as deletes=\"op = 'D'\""
                ) from None
        if [str(kind) for kind in kinds] != ["BOOLEAN"]:
            raise BadInput(
                f"{self.name}: deletes is {self.deletes!r}, which is {' and '.join(map(str, kinds))} and no "
                "truth value: write a condition, such as deletes=\"op = 'D'\""
            )
        return [value is True for (value,) in answer]

    def _events(self, histories: Sequence[JobHistory], source: Source) -> Iterator[list[list[Event]]]:
        """Yield the events of each history, batch by batch."""
        rows = [row for history in histories for name, row in history.arrivals if name == source.name]
        deleted = iter(self._deleted(source, rows))
        for history in histories:
            yield [
                [self._event(source, row, next(deleted)) for name, row in batch if name == source.name]
                for batch in history.batches
            ]

    def _event(self, source: Source, row: Row, deleted: bool) -> Event:
        for argument in ("sequence_by", "ties"):
            if missing := [column for column in self._named[argument] if row[column] is None]:
                raise BadInput(
                    f"{self.name}: {missing[0]!r} is NULL in the row {shown_row(row)} of {source.name}, but "
                    f"{argument} uses this column: an event without a value in this column can't be ordered; "
                    "give each event a value"
                )
        columns = source.schema.names if self.columns is None else [*self.keys, *self.columns]
        part = {column: row[column] for column in dict.fromkeys(columns)}
        kept = None if deleted else _Kept(part, comparable([*part.values()]))
        key, sequence, order = (_value(row, columns) for columns in (self.keys, self.sequence_by, self.ties))
        return Event(key, sequence, order, kept)

    def unmet(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[str]:
        """Return the coverage goals of change events that no history meets."""
        source = self._source(sources)
        # A change log can't cover the goal of older events, because it has the changes of a row in order.
        goals = [AGAIN] if source.is_change_log else [AGAIN, OLDER, *([DELETED] if self.deletes is not None else ())]
        met: set[str] = set()
        for batches in self._events(histories, source):
            met |= {*_met([event for batch in batches for event in batch])}
        return [goal for goal in goals if goal not in met]

    def expected(self, histories: Sequence[JobHistory], sources: Sequence[Source], run: RunOptions) -> list[Expected]:
        """Return the final table; in update and complete mode, return the table after each batch.

        Raises:
            BadInput: An event has no sequence, or two different events have equal sequence and no `ties` order them.
        """
        comparing: Comparing = "end" if run.mode == "append" else "cuts"
        found = []
        for batches in self._events(histories, self._source(sources)):
            cuts = [len(batches)] if comparing == "end" else range(1, len(batches) + 1)
            tables = [self._table([event for batch in batches[:cut] for event in batch]) for cut in cuts]
            found.append(Expected(comparing, tables))
        return found

    def _table(self, events: Sequence[Event]) -> list[Row]:
        try:
            return self.rows(events)
        except BadInput as error:
            raise BadInput(f"{self.name}: {error.message}") from None

    @abstractmethod
    def rows(self, events: Sequence[Event]) -> list[Row]:
        """Return the rows of the table after the events."""


def _value(row: Row, columns: Sequence[str]) -> Any:
    values = tuple(row[column] for column in columns)
    return values[0] if len(values) == 1 else values


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _met(events: Sequence[Event]) -> Iterator[str]:
    """Yield the coverage goals that the events of a history meet, in order of arrival."""
    before: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        earlier = before[event.key]
        if event in earlier:
            yield AGAIN
        if any(one.sequence > event.sequence for one in earlier):
            yield OLDER
        if event.row is not None and any(one.sequence > event.sequence and one.row is None for one in earlier):
            yield DELETED
        earlier.append(event)


@dataclass(frozen=True, kw_only=True)
class Scd1Oracle(ChangesOracle):
    """The oracle of a dimension of type 1: the newest version of each row that isn't deleted."""

    def rows(self, events: Sequence[Event]) -> list[Row]:
        return [event.value for event in current(events).values()]


@dataclass(frozen=True, kw_only=True)
class Scd2Oracle(ChangesOracle):
    """The oracle of a dimension of type 2: every version of each row, with the interval of its validity.

    Attributes:
        track: The columns whose change creates a new version.
        start: The name of the column with the sequence at which a version starts.
        end: The name of the column with the sequence at which a version ends (exclusive).
        current: The name of the column that is true in the current version of a row; None: the table has no such
            column.
        open_end: The value of the end column in a current version.
    """

    track: tuple[str, ...]
    start: str
    end: str
    current: str | None
    open_end: Any

    @property
    def _named(self) -> dict[str, Sequence[str]]:
        return {**super()._named, "track": self.track}

    def rows(self, events: Sequence[Event]) -> list[Row]:
        def tracked(kept: Kept) -> Any:
            return comparable([kept.value[column] for column in self.track])

        rows: list[Row] = []
        for of_key in versions(events, tracked).values():
            for one in of_key:
                interval = {self.start: one.start, self.end: self.open_end if one.end is None else one.end}
                flag = {} if self.current is None else {self.current: one.end is None}
                rows.append({**one.row.value, **interval, **flag})
        return rows


@checked
def scd1(
    keys: ColumnNames,
    sequence_by: ColumnNames,
    *,
    deletes: str | None = None,
    columns: ColumnNames | None = None,
    ties: ColumnNames | None = None,
    input: str | None = None,
) -> Scd1Oracle:
    """Expect the newest version of each row of change events: a slowly changing dimension of type 1.

    The table includes late events; the order of arrival, repeated events and batches don't change the table. An event
    that is older than a delete doesn't restore the deleted row. The check compares the table at the end; in update and
    complete mode, it compares the table after each batch.

    Args:
        keys: The columns of a row's key.
        sequence_by: The column or columns that order the events of a key; the event with the largest value is the
            newest. Not NULL.
        deletes: The condition that is true for events that delete their row, such as "op = 'D'", evaluated by DuckDB.
            None: no event deletes a row.
        columns: The non-key columns that the table keeps. By default, the table keeps all columns that the job keeps.
        ties: The columns that order events with equal sequence; the event with the largest value wins. By default,
            drawn events with equal sequence are copies of one event, and examples with different events of equal
            sequence are refused.
        input: The input's name, if the job has several inputs.

    Raises:
        BadInput: The argument `keys` or `sequence_by` contains no column.
    """
    return Scd1Oracle(**_declared("scd1", keys, sequence_by, deletes, columns, ties, input))


@checked
def scd2(
    keys: ColumnNames,
    sequence_by: str,
    columns: ColumnNames,
    *,
    track: ColumnNames | None = None,
    deletes: str | None = None,
    ties: ColumnNames | None = None,
    start: str = "valid_from",
    end: str = "valid_to",
    current: str | None = None,
    open_end: Any = None,
    input: str | None = None,
) -> Scd2Oracle:
    """Expect every version of each row with the interval of its validity: a slowly changing dimension of type 2.

    A version is valid from the sequence of its first event to the sequence of the next version, or of the delete that
    ends it. Intervals neither overlap nor leave gaps, except for deletes, and a key has at most one current version.
    The table includes late events: a late event divides an interval. Otherwise, the rule works like `scd1`.

    Args:
        keys: The columns of a row's key.
        sequence_by: The column that orders the events of a key; its values bound the intervals. Not NULL.
        columns: The non-key columns that a version keeps.
        track: The columns whose change creates a new version; a change of other columns updates the version. By
            default, the rule tracks all columns of a version.
        deletes: The condition that is true for events that delete their row, such as "op = 'D'".
        ties: The columns that order events with equal sequence; the event with the largest value wins.
        start: The column of the result with the start of a version.
        end: The column of the result with the end of a version (exclusive).
        current: The column of the result that is true in the current version; None: the result has no such column.
        open_end: The value of the end column in a current version: NULL by default; some tables use a date far in the
            future.
        input: The input's name, if the job has several inputs.

    Raises:
        BadInput: An argument contains no column, or a tracked column isn't among the kept columns.
    """
    declared = _declared("scd2", keys, sequence_by, deletes, columns, ties, input)
    kept = declared["columns"]
    tracked = kept if track is None else column_names("scd2", "track", track)
    if missing := [column for column in tracked if column not in kept]:
        raise BadInput(
            f"scd2: track names {missing[0]!r}, which is not among the columns {_listed(kept)}: add it to columns="
        )
    return Scd2Oracle(**declared, track=tracked, start=start, end=end, current=current, open_end=open_end)


def _declared(
    rule: str,
    keys: ColumnNames,
    sequence_by: ColumnNames,
    deletes: str | None,
    columns: ColumnNames | None,
    ties: ColumnNames | None,
    input: str | None,
) -> dict[str, Any]:
    of_keys, of_sequence = column_names(rule, "keys", keys), column_names(rule, "sequence_by", sequence_by)
    if deletes is not None and not deletes.strip():
        raise BadInput(f"{rule}: deletes is empty: write a condition such as \"op = 'D'\", or leave it out")
    return {
        "name": named(rule, keys="+".join(of_keys), sequence_by="+".join(of_sequence), deletes=deletes),
        "keys": of_keys,
        "sequence_by": of_sequence,
        "deletes": deletes,
        "columns": None if columns is None else column_names(rule, "columns", columns),
        "ties": () if ties is None else column_names(rule, "ties", ties),
        "input": input,
    }

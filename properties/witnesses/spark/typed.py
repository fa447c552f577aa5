"""The witness that runs an operator of `spark_impl` on columns of other types than a shared query's usual types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.core.errors import BadInput, StreamproofError
from ....reference.core.history import History
from ....reference.core.operator import operator_named
from ....reference.core.play import Entry
from ....reference.core.records import Change, Dropped, Key
from ....spark_impl.runtime.processor import AFTER, BEFORE, WITHIN
from ...generators.cohorts import Cohort, pack
from ...generators.layouts import NULL_KEY, OTHER_GROUPS, OTHER_OPTIONS, Layout, Typed, moved
from ...outcomes.outcomes import Difference, Grain, Outcome
from ...registration.bindings import TIMESTAMP
from ...registration.key_space import owner
from ...registration.registration import Options, registration_of
from ...system.installed.spark_versions import arrow_table_of
from ..run_options import PLAIN, RunOptions
from .answers import Label
from .decode import entries_of, milliseconds_of
from .failures import QueryFailed, in_own_folder, reported_failures
from .query import Build, OperatorQuery, StreamOutput, run_stream, stored_in
from .session import partitions_setting, session_for_query
from .witness import MANY_GROUPS, SPARK, QueryWitness, binding_of, state_groups_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIME_ZONE = "spark.sql.session.timeZone"
RECORD_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
ROWS_OF_RECORD_BATCH = 40
"""The maximum number of rows per record batch, which is small, so that the rows are in several batches, as in
production.
"""
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, pa.ArrowException)
"""The errors from reading a changelog whose columns have wrong types."""


@dataclass
class TypedAnswer:
    """The result of a history in a layout.

    Attributes:
        outcome: The outcome.
        labels: The labels of each change and each dropped row.
        wrong: The keys with equal ordinals, and the keys whose rows a repeated batch wrote differently.
        repeated: Whether a batch was repeated.
        stored: Whether the stored state contains a key of the history.
        refused: The other declarations with which a restart was tried.
        failed: Whether the query of the history failed, with this history alone or with others, any of which may be the
            cause.
    """

    outcome: Outcome
    labels: list[Label] = field(default_factory=list)
    wrong: list[Difference] = field(default_factory=list)
    repeated: bool = False
    stored: bool = False
    refused: Sequence[str] = ()
    failed: Literal["alone", "together"] | None = None


class _Row(NamedTuple):
    """A row of a changelog, whose key and times are the history's own."""

    entry: Entry
    label: Label
    ordinal: int
    wrong_place: str | None


@dataclass
class AtEndOf:
    """The errors found after the end of a query.

    Attributes:
        wrong: The errors of each history, by its number.
        of_all: The errors of all histories.
        stored: The numbers of histories with a stored key.
        refused: The other declarations with which a restart was tried.
    """

    wrong: dict[int, list[Difference]] = field(default_factory=lambda: defaultdict(list))
    of_all: list[Difference] = field(default_factory=list)
    stored: set[int] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)

    def look_at_state(self, ended: OperatorQuery, typed: Typed) -> None:
        """Compare the result of `read_state` with the stored state: each key once, with the same fields and times."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from ....spark_impl.runtime.state import read_state

        for stage in range(ended.stages):
            raw = {parts: (fields, stored) for parts, fields, stored in stored_in(ended.stored(stage))}
            try:
                rows = arrow_table_of(read_state(str(ended.checkpoint), operator=stage)).to_pylist()
            except (StreamproofError, PySparkException, Py4JError) as error:
                self.of_all.append(Difference(None, ["a state"], [f"it can't be read: {error!s:.300}"]))
                continue
            read = {tuple(row["key"].values()): row for row in rows}
            if len(rows) != len(raw):
                self.of_all.append(Difference(None, [f"{len(raw)} keys"], [f"{len(rows)} rows"]))
            for parts, (fields, stored) in raw.items():
                key = typed.keys.get(parts)
                # An operator with a bug may store a key that belongs to no history.
                owned = owner(key) if key and "|" in key else None
                wanted = [fields, stored.emitted, stored.due, bytes(stored.fields)]
                row = read.get(parts)
                has = None if row is None else [row[name] for name in ("state", "closed", "due", "packed")]
                if owned is not None:
                    self.stored.add(owned[0])
                if has is not None and is_same(has, wanted):
                    continue
                differs = Difference(None, [f"{wanted}"], [f"{has}"], None if owned is None else owned[1])
                if owned is None:
                    self.of_all.append(differs)
                else:
                    self.wrong[owned[0]].append(differs)


def is_same(read: Any, stored: Any) -> bool:
    """Return whether a value from Arrow equals a value from MessagePack, which stores some types as texts or as numbers
    of milliseconds.
    """
    match read:
        case datetime() if isinstance(stored, int):
            return read == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=stored)
        case datetime() if isinstance(stored, datetime):
            return read == stored
        case datetime() | date():
            if isinstance(stored, str) and isinstance(read, datetime):
                return read == datetime.fromisoformat(stored)
            return bool(read.isoformat() == stored)
        case Decimal():
            return isinstance(stored, str) and read == Decimal(stored)
        case dict() if isinstance(stored, dict):
            return read.keys() == stored.keys() and all(is_same(read[name], stored[name]) for name in read)
        case dict():
            return isinstance(stored, list) and is_same([*read.values()], stored)
        case list() if isinstance(stored, dict):
            return is_same([[name, one] for name, one in read], [[name, one] for name, one in stored.items()])
        case list() | tuple():
            return isinstance(stored, list) and len(read) == len(stored) and all(map(is_same, read, stored))
    kinds = (int, float) if isinstance(read, float) else (type(read),)
    return type(stored) in kinds and (read == stored or read != read)


@dataclass(frozen=True)
class TypedSparkWitness:
    """An operator of `spark_impl` in a layout of columns; its output is converted back to the history's keys and times.

    Attributes:
        layout: The layout.
        starts_at_ms: The start of the histories (ms since 1970).
        of: The witness whose logic runs.
    """

    layout: Layout
    starts_at_ms: int = 0
    of: QueryWitness = SPARK

    def builder(self, operator: str, options: Options, state_groups: int | None = None) -> Build:
        """Return the query of `spark_impl` in the layout, as `QueryWitness.builder` does."""
        definition, typed = operator_named(operator).declare(options), binding_of(operator).typed
        if typed is None:
            raise BadInput(f"the binding of {operator} names no columns: give it typed")
        return lambda frame: typed(definition, frame, self.of.logic, state_groups, columns=self.layout.columns)

    def typed_answers(self, cohort: Cohort, run: RunOptions = PLAIN) -> list[TypedAnswer]:
        """Run a cohort (many histories) in one query; histories may contain null keys; return the result of each
        history.

        If the query fails, ever smaller groups of histories run until a single failing history is left.

        Raises:
            BadInput: A history is refused, or a value doesn't fit its column.
            StreamproofError: Spark couldn't start.
        """
        try:
            return self._run(cohort, run)
        except QueryFailed as failed:
            return self._failed(cohort, run, failed, 1)

    def _failed(self, cohort: Cohort, run: RunOptions, failed: QueryFailed, count: int) -> list[TypedAnswer]:
        """Return the results of histories whose query fails; the first `count` histories are run separately."""
        histories = cohort.histories

        def failure(history: History, is_own: bool) -> TypedAnswer:
            dropped = Entry(-1, 0, Dropped(None, f"failed: {failed}"))
            return TypedAnswer(Outcome(history.name, Grain.BATCH, [dropped]), failed="alone" if is_own else "together")

        if len(histories) == 1:
            return [failure(histories[0], is_own=True)]
        first, second = (replace(cohort, histories=some) for some in (histories[:count], histories[count:]))
        try:
            found = self._run(first, run)
        except QueryFailed as again:
            apart = self._failed(first, run, again, len(first.histories) // 2)
            return [*apart, *(failure(history, is_own=False) for history in second.histories)]
        return [*found, *self._failed(second, run, failed, len(second.histories) // 2)]

    def _run(self, cohort: Cohort, run: RunOptions) -> list[TypedAnswer]:
        definition = operator_named(cohort.operator).declare(cohort.options)
        binding = binding_of(cohort.operator)
        fields = binding.fields(definition, [record for history in cohort.histories for record in history.records])
        typed = Typed(self.layout, cohort, fields, pack(cohort, fields), self.starts_at_ms)
        build = self.builder(cohort.operator, cohort.options, state_groups_of(cohort, run))
        found = AtEndOf()
        settings = {TIME_ZONE: self.layout.time_zone, RECORD_BATCH: str(ROWS_OF_RECORD_BATCH)}
        tables = [with_null_time(table) for table in typed.tables()] if self.layout.has_null_keys else typed.tables()
        with session_for_query(settings | partitions_setting(run.partitions)) as spark:
            if self.layout.is_batch:
                output = run_batch(spark, pa.concat_tables(tables), build)
            else:
                output = run_stream(
                    spark,
                    tables,
                    build,
                    replace(run, read_state=False),  # `_look_at_end` reads the state
                    at_end=lambda ended: self._look_at_end(ended, cohort, typed, found),
                )
        answers = [
            TypedAnswer(
                Outcome(history.name, Grain.BATCH, is_stream=definition.is_stream),
                wrong=[*found.wrong.get(index, ()), *(one._replace(history=history.name) for one in found.of_all)],
                repeated=bool(output.replayed),
                stored=index in found.stored,
                refused=found.refused,
            )
            for index, history in enumerate(cohort.histories)
        ]
        try:
            for number, table in output.batches:
                for answer, rows in zip(answers, self._rows(typed, definition, number, table), strict=True):
                    answer.outcome.entries += [row.entry for row in rows]
                    answer.labels += [row.label for row in rows]
                    answer.wrong += _without_order(answer.outcome.history, number, rows)
            for before, after in output.replayed:
                number = next((number for number, table in output.batches if table is after), 0)
                first, again = (self._rows(typed, definition, number, table) for table in (before, after))
                for answer, one, other in zip(answers, first, again, strict=True):
                    answer.wrong += _written_otherwise(answer.outcome.history, number, one, other)
        except UNREADABLE as error:
            said = f"failed: the query's output can't be read: {type(error).__name__}: {error}"
            for answer in answers:
                answer.outcome.entries = [Entry(-1, 0, Dropped(None, said))]
                answer.failed = "together" if len(answers) > 1 else "alone"
        return answers

    def _look_at_end(self, ended: OperatorQuery, cohort: Cohort, typed: Typed, found: AtEndOf) -> None:
        """Read the state of an ended query, and restart the query under other declarations, as the layout requires."""
        if self.layout.reads_state:
            found.look_at_state(ended, typed)
        for declared in self.layout.starts_otherwise:
            build, said = self._otherwise(declared, cohort, typed)
            refusal = ended.refusal(build)
            if refusal is None or said not in refusal:
                wanted = f"a start with {declared} is refused: {said}"
                found.of_all.append(Difference(None, [wanted], [refusal or "it went on"]))
            found.refused.append(declared)

    def _otherwise(self, declared: str, cohort: Cohort, typed: Typed) -> tuple[Build, str]:
        """Return the query under another declaration, and the expected message that refuses its start."""
        from pyspark.sql import functions as F

        operator, options = cohort.operator, cohort.options
        written_by, stores = "the checkpoint was written by ", "the checkpoint stores "
        if declared == OTHER_GROUPS:
            return self.builder(operator, options, MANY_GROUPS + 1), written_by
        if declared == OTHER_OPTIONS:
            return self.builder(operator, next(others_of(operator, options))), written_by
        fields = [field for field, holds in typed.holds.items() if holds == "key"]
        keys = [name for field in fields for name in self.layout.columns.of(field)]
        same = self.builder(operator, options, state_groups_of(cohort, PLAIN))

        def of_text(frame: DataFrame) -> DataFrame:
            return same(frame.withColumns({name: F.col(name).cast("string") for name in keys}))

        return of_text, stores

    def _rows(self, typed: Typed, definition: Any, batch: int, table: pa.Table) -> list[list[_Row]]:
        """Return the rows of a batch for each history, with each key's rows in order."""
        binding = binding_of(typed.cohort.operator)
        windows_too = getattr(definition, "unit", None) != "tuple"
        in_order = sorted(range(table.num_rows), key=table.column("ordinal").to_pylist().__getitem__)
        table = table.take(pa.array(in_order, pa.int64()))
        entries = entries_of(
            StreamOutput([(batch, typed.read(table))]),
            lambda value: binding.decode(definition, typed.read_value(value)),
            binding.keys,
        )
        names = ("change", "reason", "window", "ordinal", "place")
        said = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        timestamps = milliseconds_of(table.column("timestamp"))
        rows: list[list[_Row]] = [[] for _ in typed.cohort.histories]
        ends: dict[Key | None, int] = defaultdict(int)
        for entry, of_row, cause, timestamp in zip(entries, said, typed.causes(table), timestamps, strict=True):
            change, reason, window, ordinal, place = of_row
            owned = (0, None) if entry.output.key is None else owner(entry.output.key)
            if owned is None:
                continue  # skip the reserved key's row, which only moves the clock
            index, key = owned
            own = _in_history(entry, key, self.starts_at_ms, windows_too)
            at = None
            if reason is not None:
                at = None if timestamp is None else timestamp - self.starts_at_ms
                change = change if window is None else f"{change} from a window"
            label = Label(batch, own.output.key, str(change), typed.number_of(index, cause), at)
            whole, came = entry.output, None if cause is None else typed.time_of(cause)
            if came is None and isinstance(whole, Change):
                ends[whole.key] = max(ends[whole.key], whole.timestamp if whole.window is None else whole.window[1])
            wrong = self._wrong_in(place, ordinal, came, ends[whole.key])
            rows[index].append(_Row(own, label, ordinal, wrong))
        return rows

    def _wrong_in(self, place: dict[str, Any], ordinal: int, at: int | None, end: int) -> str | None:
        # The next operator orders the changes by their positions. `at` is the time (ms) of the row that caused a
        # change, and `end` the time of changes that the clock caused.
        if place["step"] != ordinal:
            return f"the step {place['step']} of the ordinal {ordinal}"
        if at is not None and (place["phase"], place["at"]) != (WITHIN, at):
            return f"the place {place} of a change caused by a row at {at} ms"
        by_clock = AFTER if self.layout.is_batch else BEFORE, end
        if at is None and self.layout.order is not None and (place["phase"], place["at"]) != by_clock:
            return f"the place {place} of a change caused by the clock at {end} ms"
        return None


def others_of(operator: str, options: Options) -> Iterator[Options]:
    """Yield the profiles that declare an operator differently from the given options."""
    declare = operator_named(operator).declare
    return (one for one in registration_of(operator).profiles.values() if declare(one) != declare(options))


def with_null_time(table: pa.Table) -> pa.Table:
    """Return the rows, and a copy of the reserved key's row without a time at the end."""
    without = table.slice(0, 1)
    place = without.column_names.index(TIMESTAMP)
    nothing = pa.nulls(without.num_rows, without.schema.field(place).type)
    return pa.concat_tables([table, without.set_column(place, TIMESTAMP, nothing)])


def _without_order(history: str, batch: int, rows: Sequence[_Row]) -> Iterator[Difference]:
    """Yield the keys whose rows in a batch share an ordinal or have a wrong position; rows with null keys have no
    order.
    """
    ordinals: dict[Key, list[int]] = defaultdict(list)
    for row in rows:
        if row.entry.output.key is not None:
            ordinals[row.entry.output.key].append(row.ordinal)
        if row.wrong_place is not None:
            yield Difference(batch, ["the place of its row"], [row.wrong_place], row.entry.output.key, history)
    for key, found in ordinals.items():
        if len(set(found)) < len(found):
            yield Difference(batch, ["ordinals that are all different"], [f"the ordinals {found}"], key, history)


def _written_otherwise(history: str, batch: int, first: Sequence[_Row], again: Sequence[_Row]) -> Iterator[Difference]:
    """Yield the keys whose rows a repeated batch wrote differently."""
    ours, theirs = _shown_by_key(first), _shown_by_key(again)
    for key in sorted(ours.keys() | theirs.keys(), key=lambda key: key or ""):
        if ours.get(key) != theirs.get(key):
            yield Difference(batch, ours.get(key, []), theirs.get(key, []), key, history)


def _shown_by_key(rows: Sequence[_Row]) -> dict[Key | None, list[str]]:
    shown: dict[Key | None, list[str]] = defaultdict(list)
    for row in rows:
        shown[row.entry.output.key].append(f"{row.entry.output}, {row.label.change}, caused by {row.label.cause}")
    shown[None].sort()
    return shown


def run_batch(spark: SparkSession, records: pa.Table, build: Build) -> StreamOutput:
    """Run a query over a batch DataFrame, which is a complete history.

    Raises:
        StreamproofError: The query failed.
    """

    def in_folder(folder: Path) -> StreamOutput:
        with reported_failures():
            pq.write_table(records, folder / "records.parquet")
            return StreamOutput([(0, build(spark.read.parquet(str(folder))).toArrow())])

    return in_own_folder(in_folder)


def _in_history(entry: Entry, key: Key | None, starts_at_ms: int, windows_too: bool) -> Entry:
    """Return an output with the history's own key and times, and with a null key for the key that represents null."""
    key = None if key is not None and NULL_KEY in key else key
    output = entry.output
    if isinstance(output, Dropped):
        return entry._replace(output=output._replace(key=key))
    window, timestamp = output.window, output.timestamp
    if window is not None and windows_too:
        window = moved(window, -starts_at_ms)
    return entry._replace(output=Change(key, window, output.value, timestamp - starts_at_ms))

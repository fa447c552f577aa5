"""The witness that runs an operator of `spark_impl` on columns of other types than those of every cohort."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ....reference.core.errors import BadInput
from ....reference.core.history import History
from ....reference.core.operator import operator_named
from ....reference.core.play import Entry
from ....reference.core.records import Change, Dropped, Key
from ...generators.cohorts import Cohort, pack
from ...generators.layouts import NULL_KEY, Layout, Typed
from ...registration.key_space import owner
from ...registration.registration import Options
from ...system.work import temporary_folder
from ..base import PLAIN, RunOptions
from ..outcomes import Difference, Outcome
from .answers import Label
from .decode import entries_of, milliseconds_of
from .query import Build, QueryFailed, StreamOutput, once_more_if_busy, reported_failures, run_stream
from .session import partitions_setting, session_for_query, work_folder
from .witness import SPARK, QueryWitness, Tables, binding_of, state_groups_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME_ZONE = "spark.sql.session.timeZone"
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, pa.ArrowException)
"""What reading a changelog raises whose columns aren't of the types that they should be."""


@dataclass
class TypedAnswer:
    """What came out of a history in a layout.

    Attributes:
        outcome: The outcome.
        labels: How each change, and each dropped row, is labelled.
        wrong: Where the ordinals of a key are no order, and where a batch wrote something else when it was repeated.
        repeated: Whether a batch was repeated.
        failed: Whether its query failed: with it alone, or with others, of which another one may be to blame.
    """

    outcome: Outcome
    labels: list[Label] = field(default_factory=list)
    wrong: list[Difference] = field(default_factory=list)
    repeated: bool = False
    failed: Literal["alone", "together"] | None = None


class _Row(NamedTuple):
    """A row of a changelog, in the keys and times of its history."""

    entry: Entry
    label: Label
    ordinal: int


@dataclass(frozen=True)
class TypedSparkWitness(QueryWitness):
    """An operator of `spark_impl` in a layout of columns; what it emits comes back in the history's keys and times.

    Attributes:
        layout: The layout.
        starts_at_ms: When the histories begin.
        of: The witness whose logic runs.
    """

    layout: Layout
    starts_at_ms: int = 0
    of: QueryWitness = SPARK

    name: ClassVar[str] = "spark"

    def builder(self, operator: str, options: Options, state_groups: int | None = None, batches: Tables = ()) -> Build:
        """Return the query of `spark_impl` in the layout; as `QueryWitness.builder`."""
        definition, typed = operator_named(operator).declare(options), binding_of(operator).typed
        if typed is None:
            raise BadInput(f"the binding of {operator} names no columns: give it typed")
        return lambda frame: typed(definition, frame, self.of.logic, state_groups, columns=self.layout.columns)

    def run(self, cohort: Cohort, run: RunOptions = PLAIN) -> tuple[list[Outcome], StreamOutput]:
        """Run one cohort in one query, whose histories may have null keys; as `QueryWitness.run`.

        Raises:
            BadInput: A history is refused, or a value doesn't fit its column.
            StreamproofError: The query failed, or Spark couldn't be started.
        """
        answers, output = self._run(cohort, run)
        return [answer.outcome for answer in answers], output

    def typed_answers(self, cohort: Cohort, run: RunOptions = PLAIN) -> list[TypedAnswer]:
        """Run one cohort in one query; return what came out of each history.

        Where the query fails, ever smaller parts are run until one history is left that makes it fail.

        Raises:
            BadInput: A history is refused, or a value doesn't fit its column.
            StreamproofError: Spark couldn't be started.
        """
        try:
            return self._run(cohort, run)[0]
        except QueryFailed as failed:
            return self._failed(cohort, run, failed, 1)

    def _failed(self, cohort: Cohort, run: RunOptions, failed: QueryFailed, count: int) -> list[TypedAnswer]:
        """Return what came out of histories whose query fails, the first `count` of which are run apart."""
        histories = cohort.histories

        def failure(history: History, is_own: bool) -> TypedAnswer:
            dropped = Entry(-1, 0, Dropped(None, f"failed: {failed}"))
            return TypedAnswer(Outcome(history.name, self.grain, [dropped]), failed="alone" if is_own else "together")

        if len(histories) == 1:
            return [failure(histories[0], is_own=True)]
        first, second = (replace(cohort, histories=some) for some in (histories[:count], histories[count:]))
        try:
            found = self._run(first, run)[0]
        except QueryFailed as again:
            apart = self._failed(first, run, again, len(first.histories) // 2)
            return [*apart, *(failure(history, is_own=False) for history in second.histories)]
        return [*found, *self._failed(second, run, failed, len(second.histories) // 2)]

    def _run(self, cohort: Cohort, run: RunOptions) -> tuple[list[TypedAnswer], StreamOutput]:
        definition = operator_named(cohort.operator).declare(cohort.options)
        binding = binding_of(cohort.operator)
        fields = binding.fields(definition, [record for history in cohort.histories for record in history.records])
        typed = Typed(self.layout, cohort, fields, pack(cohort, fields), self.starts_at_ms)
        build = self.builder(cohort.operator, cohort.options, state_groups_of(cohort, run))
        settings = {TIME_ZONE: self.layout.time_zone} | partitions_setting(run.partitions)
        with session_for_query(settings) as spark:
            if self.layout.is_batch:
                output = run_batch(spark, pa.concat_tables(typed.tables()), build)
            else:
                output = run_stream(spark, typed.tables(), build, stop_after=run.stop_after, crash_in=run.crash_in)
        answers = [
            TypedAnswer(
                Outcome(history.name, self.grain, is_stream=definition.is_stream), repeated=bool(output.replayed)
            )
            for history in cohort.histories
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
            said = f"failed: what the query wrote can't be read: {type(error).__name__}: {error}"
            for answer in answers:
                answer.outcome.entries = [Entry(-1, 0, Dropped(None, said))]
                answer.failed = "together" if len(answers) > 1 else "alone"
        return answers, output

    def _rows(self, typed: Typed, definition: Any, batch: int, table: pa.Table) -> list[list[_Row]]:
        """Return the rows of a batch for each history, each key's in order."""
        binding = binding_of(typed.cohort.operator)
        windows_too = getattr(definition, "unit", None) != "tuple"
        in_order = sorted(range(table.num_rows), key=table.column("ordinal").to_pylist().__getitem__)
        table = table.take(pa.array(in_order, pa.int64()))
        entries = entries_of(
            StreamOutput([(batch, typed.read(table))]),
            lambda value: binding.decode(definition, typed.read_value(value)),
            binding.keys,
        )
        names = ("change", "reason", "window", "ordinal")
        said = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        timestamps = milliseconds_of(table.column("timestamp"))
        rows: list[list[_Row]] = [[] for _ in typed.cohort.histories]
        for entry, of_row, cause, timestamp in zip(entries, said, typed.causes(table), timestamps, strict=True):
            change, reason, window, ordinal = of_row
            owned = (0, None) if entry.output.key is None else owner(entry.output.key)
            if owned is None:
                continue  # the reserved key's
            index, key = owned
            own = _in_history(entry, key, self.starts_at_ms, windows_too)
            at = None
            if reason is not None:
                at = None if timestamp is None else timestamp - self.starts_at_ms
                change = change if window is None else f"{change} from a window"
            label = Label(batch, own.output.key, str(change), typed.number_of(index, cause), at)
            rows[index].append(_Row(own, label, ordinal))
        return rows


def _without_order(history: str, batch: int, rows: Sequence[_Row]) -> Iterator[Difference]:
    """Yield the keys of which several rows of a batch have one ordinal; between different null keys there is none."""
    ordinals: dict[Key, list[int]] = defaultdict(list)
    for row in rows:
        if row.entry.output.key is not None:
            ordinals[row.entry.output.key].append(row.ordinal)
    for key, found in ordinals.items():
        if len(set(found)) < len(found):
            yield Difference(history, key, batch, ["ordinals that are all different"], [f"the ordinals {found}"])


def _written_otherwise(history: str, batch: int, first: Sequence[_Row], again: Sequence[_Row]) -> Iterator[Difference]:
    """Yield the keys of which a repeated batch wrote something else than at first."""
    ours, theirs = _shown_by_key(first), _shown_by_key(again)
    for key in sorted(ours.keys() | theirs.keys(), key=lambda key: key or ""):
        if ours.get(key) != theirs.get(key):
            yield Difference(history, key, batch, ours.get(key, []), theirs.get(key, []))


def _shown_by_key(rows: Sequence[_Row]) -> dict[Key | None, list[str]]:
    shown: dict[Key | None, list[str]] = defaultdict(list)
    for row in rows:
        shown[row.entry.output.key].append(f"{row.entry.output}, {row.label.change}, caused by {row.label.cause}")
    shown[None].sort()
    return shown


def run_batch(spark: SparkSession, records: pa.Table, build: Build) -> StreamOutput:
    """Run a query over a batch DataFrame: a history that has ended.

    Raises:
        StreamproofError: The query failed.
    """

    def once() -> StreamOutput:
        with temporary_folder(work_folder()) as folder, reported_failures():
            pq.write_table(records, folder / "records.parquet")
            return StreamOutput([(0, build(spark.read.parquet(str(folder))).toArrow())])

    return once_more_if_busy(once)


def _in_history(entry: Entry, key: Key | None, starts_at_ms: int, windows_too: bool) -> Entry:
    """Return what was emitted under a history's own key, null where it stands for one, and in its times."""
    key = None if key is not None and NULL_KEY in key else key
    output = entry.output
    if isinstance(output, Dropped):
        return entry._replace(output=output._replace(key=key))
    window, timestamp = output.window, output.timestamp
    if window is not None and windows_too:
        window = (window[0] - starts_at_ms, window[1] - starts_at_ms)
    return entry._replace(output=Change(key, window, output.value, timestamp - starts_at_ms))

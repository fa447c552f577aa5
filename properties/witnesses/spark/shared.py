"""Run histories of any operators, options and mutants together: all operators without stages share one query, and all
operators with stages share another query.

Histories run in the production runtime (`spark_impl.runtime.keyed`), under keys that begin with a history's number. A
shared query sends values as binaries, because the values have many types; columns of other types need separate queries.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ....reference.core.history import History
from ....reference.core.play import Entry
from ....reference.core.records import Change, Dropped, Key, Record
from ....spark_impl.runtime.logic import DROPPED
from ...generators.cohorts import clock_schedule
from ...outcomes.outcomes import Grain, Outcome
from ...registration.bindings import KEY, ORDER, TIMESTAMP, VALUE
from ...registration.registration import Registration, registration_of
from ...registration.shared import FAILED, Shared, SharedOutput
from ..run_options import PLAIN, RunOptions
from .answers import Answers, Label, StoredState
from .decode import milliseconds_of
from .failures import QueryFailed
from .isolation import isolated
from .query import StreamOutput, run_stream, stored_in
from .session import partitions_setting, session_for_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ....spark_impl.runtime.keyed import StageOf
    from .dispatch import Dispatch, DispatchHop

GROUPS = 64
"""The number of groups of histories; Spark reads and writes the state of a whole group at once."""
_succeeded = threading.Event()
"""Set as soon as a shared query of this process has succeeded."""
PARTITION = "partition"
"""The column with the shuffle partition of a row of changes."""
HISTORY, CLOCK, STAGE = "history", "clock", "stage"
"""The additional columns of a shared query's rows: the row's history, the clock (ms), and the row's stage."""
SCHEMA = pa.schema(
    [
        (HISTORY, pa.int32()),
        (KEY, pa.string()),
        (TIMESTAMP, pa.int64()),
        (CLOCK, pa.int64()),
        (ORDER, pa.int64()),
        (STAGE, pa.int32()),
        (VALUE, pa.binary()),
    ]
)


@dataclass(frozen=True)
class Play:
    """A history and its logic.

    Attributes:
        history: The history; it may contain null keys.
        logic: Returns the logic of the history's definition, for example a mutant's (None for the operator's own).
    """

    history: History
    logic: Callable[[Any], Any] | None = None

    @cached_property
    def registration(self) -> Registration:
        """The registration of the history's operator."""
        return registration_of(self.history.operator)

    @cached_property
    def definition(self) -> Any:
        """The history's definition."""
        return self.registration.declare(self.history.options)

    @property
    def shared(self) -> Shared:
        """The operator's binding for shared queries."""
        binding = self.registration.spark
        assert binding is not None
        assert binding.shared is not None
        return binding.shared

    @cached_property
    def logic_key(self) -> tuple[Any, ...]:
        """The key of a definition and a logic, which is the same for all histories of both."""
        options = tuple(sorted((name, repr(value)) for name, value in self.history.options.items()))
        return self.history.operator, options, self.logic

    @property
    def logics(self) -> tuple[Any, ...]:
        """Return new logics, one for each stage."""
        return self.shared.stages(self.definition, self.logic)

    @property
    def stages(self) -> int:
        """The number of the operator's stages."""
        return 1 if self.shared.hops is None else 1 + len(self.shared.hops())

    @property
    def is_staged(self) -> bool:
        """Return whether the operator runs in stages."""
        return self.shared.hops is not None

    @property
    def by_clock(self) -> bool:
        """Return whether the history depends on the clock."""
        return self.registration.by_clock(self.definition)


def can_share(history: History) -> bool:
    """Return whether a history can run in a shared query: its operator supports shared queries, and its delivery isn't
    manual.
    """
    binding = registration_of(history.operator).spark
    return binding is not None and binding.shared is not None and not history.has_schedule


def shared_queries(plays: Sequence[Play]) -> list[list[int]]:
    """Return the numbers of the histories that run together: one group of all histories with stages, and a group of
    other histories for each clock schedule.

    A history that doesn't depend on the clock can use any schedule that is long enough, and joins the group with the
    longest schedule. Histories with different schedules can't run together, because the shorter history's final output
    would appear in a later batch.
    """
    timed: dict[tuple[int, ...], list[int]] = defaultdict(list)
    staged, others = [], []
    for number, play in enumerate(plays):
        if play.is_staged:
            staged.append(number)
        elif play.by_clock:
            timed[clock_schedule(play.history)].append(number)
        else:
            others.append(number)
    longest = max(timed, key=len, default=())
    riding = [number for number in others if len(plays[number].history.batches) <= len(longest)]
    queries = [sorted(query + riding) if schedule == longest else query for schedule, query in timed.items()]
    alone = [number for number in others if number not in {*riding}]
    return [query for query in (*queries, alone, staged) if query]


def run_shared(plays: Sequence[Play], run: RunOptions = PLAIN) -> Answers:
    """Run histories in the smallest number of queries that their clocks and stages allow.

    If a definition makes a query fail, its histories run separately, and the failure is their only output.

    Raises:
        StreamproofError: More definitions fail than the function isolates, or Spark didn't start.
    """
    nothing: list[Any] = [None] * len(plays)
    found = Answers([*nothing], [*nothing], [*nothing], queries=0, labels=[*nothing])
    each: list[Answers] = []
    for query in shared_queries(plays):
        for numbers, own in isolated(
            _by_definition(plays, query), partial(_run_numbers, plays, run), others_ran=_succeeded.is_set()
        ):
            if isinstance(own, QueryFailed):
                own = _failed([plays[number] for number in numbers], own)
            else:
                each.append(own)
            found.queries, found.replayed = found.queries + own.queries, found.replayed + own.replayed
            for index, number in enumerate(numbers):
                found.outcomes[number], found.labels[number] = own.outcomes[index], own.labels[index]
                found.left[number], found.rewritten[number] = own.left[index], own.rewritten[index]
    found.partitions = min((one.partitions for one in each), default=0)
    found.emitting = min((one.emitting for one in each), default=0)
    found.without_keys = min((one.without_keys for one in each), default=0)
    return found


def _by_definition(plays: Sequence[Play], numbers: Sequence[int]) -> list[list[int]]:
    found: dict[Any, list[int]] = defaultdict(list)
    for number in numbers:
        found[plays[number].logic_key].append(number)
    return [*found.values()]


def _run_numbers(plays: Sequence[Play], run: RunOptions, numbers: Sequence[int]) -> Answers:
    output = _run_query([plays[number] for number in numbers], run)
    _succeeded.set()
    return output


def _failed(plays: Sequence[Play], failure: QueryFailed) -> Answers:
    dropped = Entry(-1, 0, Dropped(None, f"{FAILED}: {failure}"))
    outcomes = [
        Outcome(play.history.name, Grain.BATCH, [dropped], is_stream=play.definition.is_stream) for play in plays
    ]
    labels = [[Label(0, None, FAILED, None)] for _ in plays]
    return Answers(outcomes, [[] for _ in plays], [set() for _ in plays], labels=labels)


def _run_query(plays: Sequence[Play], run: RunOptions) -> Answers:
    from pyspark.sql import functions as F

    tables = tables_of(plays)
    groups = groups_of(plays, run.state_groups)

    def build(frame: DataFrame) -> DataFrame:
        return changelog_of(frame, plays, groups).withColumn(PARTITION, F.spark_partition_id())

    with session_for_query(partitions_setting(run.partitions)) as spark:
        output = run_stream(spark, tables, build, run, stages=max(play.stages for play in plays))
    return _read(plays, output, groups)


def changelog_of(frame: DataFrame, plays: Sequence[Play], groups: int) -> DataFrame:
    """Declare a shared query with new logics, as a restarted job does."""
    from ....spark_impl.runtime.codec import Anything
    from ....spark_impl.runtime.keyed import staged
    from .dispatch import DispatchProcessor

    return staged(
        stages_of(plays, frame),
        value_type=Anything(),
        state_groups=groups,
        report_dropped=True,
        timed=not any(play.is_staged for play in plays),
        declaration="shared_histories()",
        processor=DispatchProcessor,
    )


def stages_of(plays: Sequence[Play], frame: DataFrame) -> list[StageOf]:
    """Declare the stages of a shared query."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    from ....spark_impl.runtime.codec import Anything
    from ....spark_impl.runtime.inputs import OperatorInput
    from ....spark_impl.runtime.keyed import StageOf
    from .dispatch import ROWS

    dispatched = dispatched_of(plays)
    keys = [T.StructField(HISTORY, T.IntegerType()), T.StructField(KEY, T.StringType())]
    stages = []
    for number, (dispatch, hop) in enumerate(dispatched):
        rows = OperatorInput(
            side=ROWS,
            # Without stages no filter is needed, and Spark would filter rows before the watermark, which must see all
            # rows.
            frame=frame if len(dispatched) == 1 else frame.filter(F.col(STAGE) == number),
            keys=[(F.col(field.name), field) for field in keys],
            time=F.timestamp_millis(TIMESTAMP),
            order=F.col(ORDER),
            order_type=T.LongType(),
            value=F.col(VALUE),
            value_type=Anything(),
            clock=F.timestamp_millis(CLOCK),
        )
        stages.append(StageOf(dispatch, [rows], keys, T.StructType(), hop, Anything()))
    return stages


def dispatched_of(plays: Sequence[Play]) -> list[tuple[Dispatch, DispatchHop]]:
    """Return the logic of each stage; an operator with fewer stages than others runs only in the last stages."""
    from .dispatch import Dispatch, DispatchHop

    definitions: dict[Any, Play] = {}
    for play in plays:
        definitions.setdefault(play.logic_key, play)
    numbers = {key: number for number, key in enumerate(definitions)}
    logic_of = [numbers[play.logic_key] for play in plays]
    logics = [play.logics for play in definitions.values()]
    hops = [tuple(play.shared.hops() if play.shared.hops else ()) for play in definitions.values()]
    return [
        (
            Dispatch([_from_end(one, place) for one in logics], logic_of),
            DispatchHop([_from_end(one, place - 1) for one in hops], logic_of),
        )
        for place in range(max(map(len, logics)), 0, -1)
    ]


def _from_end(items: Sequence[Any], place: int) -> Any:
    """Return an item by its position from the end, 1 for the last (None if there is no such item)."""
    return items[-place] if 0 < place <= len(items) else None


def groups_of(plays: Sequence[Play], state_groups: int | None = None) -> int:
    """Return the number of groups of keys, at most `state_groups` or by default `GROUPS`."""
    return min(state_groups or GROUPS, len(plays))


def tables_of(plays: Sequence[Play]) -> list[pa.Table]:
    """Convert histories to one table per batch; the rows are in random order, because Spark guarantees no order after a
    shuffle.
    """
    from ....spark_impl.runtime.codec import encode
    from .dispatch import NOBODY

    schedules = {clock_schedule(play.history) for play in plays if play.by_clock}
    assert len(schedules) <= 1, "one query has one clock"
    count = max(len(play.history.batches) for play in plays)
    # The clock moves even if no history depends on it, to detect an operator that uses the clock.
    schedule = next(iter(schedules), None) or max((clock_schedule(play.history) for play in plays), key=len)
    schedule += (schedule[-1],) * (count - len(schedule))
    stages = max(play.stages for play in plays)
    batches: list[list[tuple[Any, ...]]] = [[(NOBODY, "", clock, clock, -1, 0, None)] for clock in schedule]
    order = 0
    for number, play in enumerate(plays):
        definition, content, first = play.definition, play.shared.content, stages - play.stages
        for batch, lines in zip(batches, play.history.batches, strict=False):
            for line in lines:
                if isinstance(line, Record):
                    value, stage = content(definition, line)
                    # The record's time moves the clock only if the history depends on the clock.
                    clock = line.timestamp if play.by_clock else None
                    packed = encode((line.input, value))
                    batch.append((number, line.key, line.timestamp, clock, order, first + stage, packed))
                    order += 1
    return [pa.Table.from_arrays(_columns(rows), schema=SCHEMA) for rows in batches]


def _columns(rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    columns = zip(*(rows[::-2] + rows[-2::-2]), strict=True)
    return [pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]


def _read(plays: Sequence[Play], output: StreamOutput, groups: int) -> Answers:
    """Return each history's own output, from an output whose keys are in `groups` groups."""
    changes: list[list[tuple[int, SharedOutput]]] = [[] for _ in plays]
    # The query numbers the rows of all histories, but a change's cause is a record's number in its own history.
    firsts = list(accumulate((len(play.history.records) for play in plays), initial=0))
    for batch, table in output.batches:
        for change in changes_in(table):
            own = None if change.cause is None else change.cause - firsts[change.history]
            changes[change.history].append((batch, change._replace(cause=own)))
    outcomes, labels = [], []
    for play, own in zip(plays, changes, strict=True):
        definition, shared = play.definition, play.shared
        windowed = shared.windowed(definition)
        entries, own_labels = [], []
        for batch, change in own:
            key = shared.key(definition, change)
            dropped_at = change.timestamp if change.change == DROPPED else None
            own_labels.append(Label(batch, key, change.change, change.cause, dropped_at))
            if change.change in (DROPPED, FAILED):
                entries.append(Entry(-1, batch, Dropped(key, change.reason or "")))
                continue
            window = (change.start, change.end) if windowed and change.start is not None else None
            value = shared.decode(definition, change)
            entries.append(Entry(-1, batch, Change(key, window, value, change.timestamp)))  # type: ignore[arg-type]
        outcomes.append(Outcome(play.history.name, Grain.BATCH, entries, is_stream=definition.is_stream))
        labels.append(own_labels)
    left: list[list[StoredState]] = [[] for _ in plays]
    for (history, key, *_), fields, _ in stored_in(output.leftover):
        left[history].append(StoredState(str(key), fields))
    emitting = {partition for _, table in output.batches for partition in table.column(PARTITION).to_pylist()}
    return Answers(
        outcomes,
        [sorted(stored, key=attrgetter("key")) for stored in left],
        _rewritten(len(plays), output),
        len(output.replayed),
        output.partitions,
        labels=labels,
        emitting=len(emitting),
        without_keys=max(0, output.partitions - groups),  # a group's rows are in one partition
    )


def changes_in(table: pa.Table) -> Iterator[SharedOutput]:
    """List the changes that a shared query wrote in a batch, with the changes of each group in order."""
    import msgspec

    decode = msgspec.msgpack.Decoder().decode
    table = table.sort_by([("ordinal", "ascending")])
    bounds = table.column("window").combine_chunks()
    columns = (
        table.column(HISTORY).to_pylist(),
        table.column(KEY).to_pylist(),
        *(milliseconds_of(pc.struct_field(bounds, name)) for name in ("start", "end")),
        [None if value is None else decode(value) for value in table.column("value").to_pylist()],
        milliseconds_of(table.column("timestamp")),
        *(table.column(name).to_pylist() for name in ("change", "reason", "cause")),
    )
    for history, key, *rest in zip(*columns, strict=True):
        yield SharedOutput(history, (key,), *rest)


def _rewritten(count: int, output: StreamOutput) -> list[set[Key]]:
    """Return for each history the keys whose rows a repeated batch wrote differently."""
    found: list[set[Key]] = [set() for _ in range(count)]
    for tables in output.replayed:
        first, second = map(_changes_by_key, tables)
        for history, key in first.keys() | second.keys():
            if first.get((history, key)) != second.get((history, key)):
                found[history].add(str(key[0]))
    return found


def _changes_by_key(table: pa.Table) -> dict[tuple[int, Any], list[SharedOutput]]:
    changes: dict[tuple[int, Any], list[SharedOutput]] = defaultdict(list)
    for change in changes_in(table):
        changes[change.history, change.key].append(change)
    return changes

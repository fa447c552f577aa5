"""Runs histories of any operators, options and mutants together: those without stages in one query, the others in one.

Rows, state and changes travel as binaries (`spark_impl.runtime.shared`), so that a query's cost hardly depends on how
many definitions ride in it. The typed columns of production have queries of their own.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....reference.core.history import History
from ....reference.core.play import Entry
from ....reference.core.records import Change, Dropped, Key, Record
from ....spark_impl.runtime.keyed import DROPPED, STATE
from ...generators.cohorts import clock_schedule
from ...registration.registration import Registration, registration_of
from ...registration.shared import Shared
from ..base import PLAIN, RunOptions
from ..outcomes import Grain, Outcome
from .isolation import isolated
from .query import QueryFailed, StreamOutput, run_stream
from .session import partitions_setting, session_for_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ....spark_impl.runtime.shared import PackedChange, PackedRow, PackedState, SharedLogic

GROUPS = 64
"""Over so many groups the histories are spread; each is read and written whole."""
PARTS = 2
"""In so many rows of a group its records come, mixed, for a shuffle promises no order."""
_succeeded = threading.Event()
"""Whether a shared query of this process has succeeded."""
PARTITION = "partition"
"""The column that says from which shuffle partition a row of changes comes."""


@dataclass(frozen=True)
class Play:
    """A history, and what decides about it.

    Attributes:
        history: The history; it may have null keys.
        logic: Makes the logic of its definition, a mutant's for example; None: the operator's own.
    """

    history: History
    logic: Callable[[Any], Any] | None = None

    @cached_property
    def registration(self) -> Registration:
        """The registration of the history's operator."""
        return registration_of(self.history.operator)

    @cached_property
    def definition(self) -> Any:
        """What the history declares."""
        return self.registration.declare(self.history.options)

    @property
    def shared(self) -> Shared:
        """How it runs in a shared query."""
        binding = self.registration.spark
        assert binding is not None
        assert binding.shared is not None
        return binding.shared

    @cached_property
    def logic_key(self) -> tuple[Any, ...]:
        """What histories of one definition and one logic have in common."""
        options = tuple(sorted((name, repr(value)) for name, value in self.history.options.items()))
        return self.history.operator, options, self.logic

    @property
    def is_staged(self) -> bool:
        """Whether it runs in stages."""
        return bool(self.shared.hops)

    @property
    def by_clock(self) -> bool:
        """Whether the clock means something to it."""
        return self.registration.by_clock(self.definition)


@dataclass
class SharedOutput:
    """What came out of histories that shared queries.

    Attributes:
        outcomes: The outcome of each.
        changes: Of each: what was emitted, with the batch, as it was emitted.
        state: Of each: what is stored at the end, by stage and key, where it was read.
        rewritten: Of each: the keys of which a batch wrote something else when it ran again after a crash.
        replayed: How many batches ran again after a crash.
        partitions: In how many shuffle partitions the state lay, at the least.
        emitting: From how many of them something came, at the least.
        without_keys: In how many of them no key fell, at the least.
        queries: How many queries that took.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    changes: list[list[tuple[int, PackedChange]]] = field(default_factory=list)
    state: list[list[PackedState]] = field(default_factory=list)
    rewritten: list[set[Key]] = field(default_factory=list)
    replayed: int = 0
    partitions: int = 0
    emitting: int = 0
    without_keys: int = 0
    queries: int = 0


def can_share(history: History) -> bool:
    """Whether a history can run in a shared query: its operator says how, and it has no schedule of delivery."""
    binding = registration_of(history.operator).spark
    return binding is not None and binding.shared is not None and not history.has_schedule


def shared_queries(plays: Sequence[Play]) -> list[list[int]]:
    """Return which plays run together, by their numbers: those in stages, and by clock schedule all others.

    Where the clock means nothing, a history goes with any schedule, so with the first one.
    """
    staged = [number for number, play in enumerate(plays) if play.is_staged]
    timed: dict[tuple[int, ...], list[int]] = defaultdict(list)
    others = []
    for number, play in enumerate(plays):
        if play.is_staged:
            continue
        if play.by_clock:
            timed[clock_schedule(play.history)].append(number)
        else:
            others.append(number)
    queries = list(timed.values()) or [[]]
    queries[0] = sorted(queries[0] + others)
    return [query for query in (*queries, staged) if query]


def run_shared(plays: Sequence[Play], run: RunOptions = PLAIN) -> SharedOutput:
    """Run histories in as few queries as their clocks and stages allow.

    A definition that makes a query fail is isolated: what comes out of its histories is the failure alone.

    Raises:
        StreamproofError: Queries fail for another reason than one of a few definitions, or Spark couldn't be started.
    """
    nothing: list[Any] = [None] * len(plays)
    found = SharedOutput(list(nothing), list(nothing), list(nothing), list(nothing))
    each: list[SharedOutput] = []
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
                found.outcomes[number], found.changes[number] = own.outcomes[index], own.changes[index]
                found.state[number], found.rewritten[number] = own.state[index], own.rewritten[index]
    found.partitions = min((one.partitions for one in each), default=0)
    found.emitting = min((one.emitting for one in each), default=0)
    found.without_keys = min((one.without_keys for one in each), default=0)
    return found


def _by_definition(plays: Sequence[Play], numbers: Sequence[int]) -> list[list[int]]:
    """Return the numbers of the plays of each definition and logic."""
    found: dict[Any, list[int]] = defaultdict(list)
    for number in numbers:
        found[plays[number].logic_key].append(number)
    return [*found.values()]


def _run_numbers(plays: Sequence[Play], run: RunOptions, numbers: Sequence[int]) -> SharedOutput:
    output = _run_query([plays[number] for number in numbers], run)
    _succeeded.set()
    return output


def _failed(plays: Sequence[Play], failure: QueryFailed) -> SharedOutput:
    """Return what came out of histories that make their query fail."""
    from ....spark_impl.runtime.shared import FAILED, PackedChange

    dropped = Entry(-1, 0, Dropped(None, f"failed: {failure}"))
    outcomes = [
        Outcome(play.history.name, Grain.BATCH, [dropped], is_stream=play.definition.is_stream) for play in plays
    ]
    change = PackedChange(0, (None,), None, None, None, None, FAILED, str(failure), None)
    changes = [[(0, change._replace(history=number))] for number in range(len(plays))]
    return SharedOutput(outcomes, changes, [[] for _ in plays], [set() for _ in plays], queries=1)


def _run_query(plays: Sequence[Play], run: RunOptions) -> SharedOutput:
    from pyspark.sql import functions as F

    from ....spark_impl.runtime.shared import shared

    tables, groups = pack_plays(plays, run.state_groups), groups_of(plays, run.state_groups)

    def build(frame: DataFrame) -> DataFrame:
        # Logics are made anew, as by a job that is restarted.
        return shared(frame, *_logics(plays)).withColumn(PARTITION, F.spark_partition_id())

    with session_for_query(partitions_setting(run.partitions)) as spark:
        output = run_stream(
            spark,
            tables,
            build,
            stop_after=run.stop_after,
            crash_in=run.crash_in,
            state=STATE if run.read_state else None,
            stages=max(len(play.shared.hops) + 1 for play in plays),
        )
    return _read(plays, output, groups)


def _logics(plays: Sequence[Play]) -> tuple[list[SharedLogic], list[int]]:
    """Return the different logics, and for each play the index of its own."""
    found: dict[Any, int] = {}
    logics: list[SharedLogic] = []
    logic_of = []
    for play in plays:
        if play.logic_key not in found:
            found[play.logic_key] = len(logics)
            logics.append(play.shared.packed(play.definition, play.logic))
        logic_of.append(found[play.logic_key])
    return logics, logic_of


def groups_of(plays: Sequence[Play], state_groups: int | None = None) -> int:
    """Return over how many groups histories are spread; `state_groups`: at the most, or None for the usual number."""
    return min(state_groups or GROUPS, len(plays))


def pack_plays(plays: Sequence[Play], state_groups: int | None = None) -> list[pa.Table]:
    """Lay histories out as one table a batch, with the columns of `spark_impl.runtime.shared.shared`."""
    from ....spark_impl.runtime.shared import CLOCK, GROUP, PACKED, STAGE, PackedRow, pack_rows

    schedules = {clock_schedule(play.history) for play in plays if play.by_clock}
    assert len(schedules) <= 1, "one query has one clock"
    count = max(len(play.history.batches) for play in plays)
    # Where the clock means nothing to any of them it moves all the same: one that looks at it shows.
    schedule = next(iter(schedules), None) or max((clock_schedule(play.history) for play in plays), key=len)
    schedule += (schedule[-1],) * (count - len(schedule))
    groups = groups_of(plays, state_groups)
    batches: list[dict[tuple[int, int, int], list[PackedRow]]] = [defaultdict(list) for _ in schedule]
    order = 0
    for number, play in enumerate(plays):
        definition, content, is_staged = play.definition, play.shared.content, play.is_staged
        for batch, lines in zip(batches, play.history.batches, strict=False):
            for line in lines:
                if isinstance(line, Record):
                    value, stage = content(definition, line)
                    place = order if not is_staged else _place(order, line.timestamp, stage)
                    # Odd ones come in another row than even ones.
                    rows = batch[number % groups, stage, order % PARTS]
                    rows.append(PackedRow(number, (line.key,), line.timestamp, place, line.input, value))
                    order += 1
    tables = []
    for clock, rows_of in zip(schedule, batches, strict=True):
        places = [(0, 0), *((group, stage) for group, stage, _ in rows_of)]
        packed = [pack_rows([]), *(pack_rows(reversed(rows)) for rows in rows_of.values())]
        tables.append(
            pa.table(
                {
                    GROUP: pa.array([group for group, _ in places], pa.int32()),
                    CLOCK: pa.array([clock] * len(places), pa.int64()),
                    STAGE: pa.array([stage for _, stage in places], pa.int32()),
                    PACKED: pa.array(packed, pa.binary()),
                }
            )
        )
    return tables


def _place(order: int, timestamp: int, stage: int) -> dict[str, int]:
    """Return a row's place at a stage; of equal places a row comes before the messages of other rows."""
    return {"order": order, "at": timestamp, **{f"step_{step}": -1 for step in range(1, stage + 1)}}


def _read(plays: Sequence[Play], output: StreamOutput, groups: int) -> SharedOutput:
    """Hand each history what was emitted of it; they were spread over so many groups."""
    from ....spark_impl.runtime.shared import FAILED, PACKED, unpack_changes, unpack_state

    changes: list[list[tuple[int, PackedChange]]] = [[] for _ in plays]
    # Orders go over all histories; a cause is the number of the record in its own.
    firsts = list(accumulate((len(play.history.records) for play in plays), initial=0))
    for batch, table in output.batches:
        for packed in table.column(PACKED).to_pylist():
            for change in unpack_changes(packed):
                own = None if change.cause is None else change.cause - firsts[change.history]
                changes[change.history].append((batch, change._replace(cause=own)))
    outcomes = []
    for play, own in zip(plays, changes, strict=True):
        definition, shared = play.definition, play.shared
        windowed = shared.windowed(definition)
        entries = []
        for batch, change in own:
            key = shared.key(definition, change)
            if change.change in (DROPPED, FAILED):
                reason = change.reason or ""
                dropped = Dropped(key, f"failed: {reason}" if change.change == FAILED else reason)
                entries.append(Entry(-1, batch, dropped))
                continue
            window = (change.start, change.end) if windowed and change.start is not None else None
            value = shared.decode(definition, change)
            entries.append(Entry(-1, batch, Change(key, window, value, change.timestamp)))  # type: ignore[arg-type]
        outcomes.append(Outcome(play.history.name, Grain.BATCH, entries, is_stream=definition.is_stream))
    state: list[list[PackedState]] = [[] for _ in plays]
    for row in output.leftover:
        for one in unpack_state(row["value"][PACKED]):  # type: ignore[index]
            state[one.history].append(one)
    rewritten = _rewritten(len(plays), output)
    emitting = {partition for _, table in output.batches for partition in table.column(PARTITION).to_pylist()}
    return SharedOutput(
        outcomes,
        changes,
        state,
        rewritten,
        len(output.replayed),
        output.partitions,
        len(emitting),
        # A group lies in one partition.
        max(0, output.partitions - groups),
        queries=1,
    )


def _rewritten(count: int, output: StreamOutput) -> list[set[Key]]:
    """Return of each history the keys of which a batch wrote something else when it ran again."""
    found: list[set[Key]] = [set() for _ in range(count)]
    for tables in output.replayed:
        first, second = map(_changes_by_key, tables)
        for history, key in first.keys() | second.keys():
            if first.get((history, key)) != second.get((history, key)):
                found[history].add(str(key[0]))
    return found


def _changes_by_key(table: pa.Table) -> dict[tuple[int, Any], list[PackedChange]]:
    from ....spark_impl.runtime.shared import PACKED, unpack_changes

    changes: dict[tuple[int, Any], list[PackedChange]] = defaultdict(list)
    for packed in table.column(PACKED).to_pylist():
        for change in unpack_changes(packed):
            changes[change.history, change.key].append(change)
    return changes

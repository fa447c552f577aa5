"""The witnesses that run on Spark: the operator of `spark_impl`, Spark's own operator, or a user's job."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import pyarrow as pa

from ....reference.core.errors import BadInput
from ....reference.core.history import History
from ....reference.core.operator import operator_named
from ....reference.core.play import Entry
from ....reference.core.records import Change
from ...generators.cohorts import Cohort, cohorts_of, one_cohort, pack, unpack
from ...outcomes.outcomes import Grain, Outcome
from ...registration.bindings import Binding, Native
from ...registration.registration import Options, registration_of
from ..base import Witness
from ..run_options import PLAIN, WATERMARK_POLICY, RunOptions
from .answers import Answers, of_query
from .decode import entries_of
from .query import Build, StreamOutput, run_stream
from .session import default_store, partitions_setting, session_for_query
from .shared import Play, can_share, run_shared
from .staged import play_staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    OperatorJob: TypeAlias = Callable[[DataFrame], DataFrame]

CohortTables: TypeAlias = Sequence[pa.Table]

MANY_KEYS = 200
MANY_GROUPS = 64


class QueryWitness(Witness):
    """A witness that runs a streaming query for each cohort, which is a group of histories that can share a query.

    Attributes:
        stepwise: Whether the query gets one batch at a time.
        knows_dropped: Whether the witness's entries include the dropped records.
        logic: The logic that replaces the operator's own, for an operator of streamproof.
        mutant: The name of the mutant `logic`, if it is a mutant.
    """

    name: ClassVar[str]
    grain = Grain.BATCH
    stepwise: ClassVar[bool] = False
    knows_dropped: ClassVar[bool] = False
    logic: Callable[[Any], Any] | None = None
    mutant: str | None = None

    @abstractmethod
    def builder(
        self, operator: str, options: Options, state_groups: int | None = None, batches: CohortTables = ()
    ) -> Build:
        """Return the function that builds a cohort's streaming result from its streaming input.

        Args:
            operator: The operator's name.
            options: The operator's options, as in a history file.
            state_groups: The number of groups of the state's keys (None for one group per key).
            batches: All batches, for an operator of Spark that looks up rows in a static table.

        Raises:
            BadInput: The witness has no query for these options.
        """

    def refuses(self, history: History) -> str | None:
        """Return the reason why the witness can't run a history, or None if it can."""
        try:
            self.builder(history.operator, history.options)
        except BadInput as error:
            return str(error)
        return None

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the outcome of each history; histories that can share a query run together.

        Raises:
            BadInput: A history is refused, or a value doesn't fit its column.
            StreamproofError: The query failed, or Spark didn't start.
        """
        outcomes: dict[int, Outcome] = {}
        for cohort, indexes in cohorts_of(histories):
            outcomes |= zip(indexes, self.run(cohort, run)[0], strict=True)
        return [outcomes[index] for index in range(len(histories))]

    def run(self, cohort: Cohort, run: RunOptions = PLAIN) -> tuple[list[Outcome], StreamOutput]:
        """Run a cohort of histories in one query; return each history's outcome, and the query's output.

        Raises:
            BadInput: A history is refused, or a value doesn't fit its column.
            StreamproofError: The query failed, or Spark didn't start.
        """
        for history in cohort.histories:
            if (reason := self.refuses(history)) is not None:
                raise BadInput(reason)
        definition = operator_named(cohort.operator).declare(cohort.options)
        binding = binding_of(cohort.operator)
        records = [record for history in cohort.histories for record in history.records]
        tables = pack(cohort, binding.fields(definition, records))
        with session_for_query(self.settings() | partitions_setting(run.partitions)) as spark:
            output = run_stream(
                spark,
                tables,
                self.builder(cohort.operator, cohort.options, state_groups_of(cohort, run), tables),
                run,
                stepwise=self.stepwise,
            )
        entries = self.in_order(entries_of(output, partial(binding.decode, definition), binding.keys))
        return [
            Outcome(history.name, self.grain, own, knows_dropped=self.knows_dropped, is_stream=definition.is_stream)
            for history, own in zip(cohort.histories, unpack(cohort, entries), strict=True)
        ], output

    def answers(self, histories: Sequence[History], run: RunOptions = PLAIN) -> Answers:
        """Run histories that can share a query; return their results.

        Raises:
            ValueError: The histories can't share a query.
            BadInput: A history is refused, or a value doesn't fit its column.
            StreamproofError: A query failed, or Spark didn't start.
        """
        return of_query(*self.run(one_cohort(histories), run), self.is_left)

    def shares(self, histories: Sequence[History]) -> bool:
        """Return whether `answers` accepts the histories together, with any operators, options, clocks and keys."""
        return False

    def is_left(self, fields: Sequence[Any]) -> bool:
        """Return whether a key's stored fields at the end count as remaining state."""
        return True

    def settings(self) -> dict[str, str]:
        """Return the settings of the session for the query."""
        return {}

    def in_order(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries in the order in which they count as emitted."""
        return entries


@dataclass(frozen=True)
class SparkWitness(QueryWitness):
    """The operators of `spark_impl`.

    Three queries run a foreign-key join with manual delivery, with outcomes by arrival.

    Attributes:
        logic: The logic that replaces the operator's own, or its stages' logics: a mutant.
        mutant: The name of the mutant `logic`, if it is a mutant; its counterexamples are rechecked with it.
        logics: For shared queries, the logic that replaces the operator's own, by the identity of the history.
    """

    logic: Callable[[Any], Any] | None = None
    mutant: str | None = None
    logics: Mapping[int, Callable[[Any], Any]] = field(default_factory=dict, hash=False)

    name = "spark"
    knows_dropped = True

    def builder(
        self, operator: str, options: Options, state_groups: int | None = None, batches: CohortTables = ()
    ) -> Build:
        """Return the query of `spark_impl`, as `QueryWitness.builder` does."""
        definition, binding = operator_named(operator).declare(options), binding_of(operator)
        return lambda frame: binding.build(definition, frame, self.logic, state_groups)

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return the outcome of each history, as `QueryWitness.evaluate` does.

        Raises:
            BadInput: A value doesn't fit its column, or a history delivers from a route without waiting messages.
            StreamproofError: A query failed, or Spark didn't start.
        """
        scheduled = [index for index, history in enumerate(histories) if history.has_schedule]
        others = [index for index, history in enumerate(histories) if not history.has_schedule]
        logics = None if self.logic is None else [self.logic] * len(scheduled)
        staged = play_staged([histories[index] for index in scheduled], logics, strict=logics is None)
        outcomes = dict(zip(scheduled, (played.outcome for played in staged), strict=True))
        outcomes |= zip(others, super().evaluate([histories[index] for index in others], run), strict=True)
        return [outcomes[index] for index in range(len(histories))]

    def answers(self, histories: Sequence[History], run: RunOptions = PLAIN) -> Answers:
        """Run histories in shared queries, if their operators support it, as `QueryWitness.answers` does."""
        if not self.shares(histories):
            return super().answers(histories, run)
        logics = [self.logics[id(history)] if self.logics else self.logic for history in histories]
        return run_shared([Play(*each) for each in zip(histories, logics, strict=True)], run)

    def shares(self, histories: Sequence[History]) -> bool:
        """Return whether the histories can run in shared queries."""
        return all(map(can_share, histories))


@dataclass(frozen=True)
class NativeSparkWitness(QueryWitness):
    """Spark's own operators, for operators of streamproof with the same meaning.

    Attributes:
        further_settings: Additional settings of the session, such as a profile's.
    """

    further_settings: Mapping[str, str] = field(default_factory=dict)

    name = "spark-native"
    stepwise = True

    def builder(
        self, operator: str, options: Options, state_groups: int | None = None, batches: CohortTables = ()
    ) -> Build:
        """Return the query of Spark's own operator, as `QueryWitness.builder` does."""
        definition = operator_named(operator).declare(options)
        native = native_of(operator)
        native.check(definition)
        return lambda frame: native.build(definition, frame, batches)

    def refuses(self, history: History) -> str | None:
        """Return the reason why Spark's own operator can't run a history, as `QueryWitness.refuses` does."""
        if (reason := super().refuses(history)) is not None:
            return reason
        try:
            native_of(history.operator).check_history(history)
        except BadInput as error:
            return str(error)
        return None

    def settings(self) -> dict[str, str]:
        """Return the settings of Spark's own operators; their state is in Spark's default store."""
        return {WATERMARK_POLICY: "max", **default_store(), **self.further_settings}

    def in_order(self, entries: list[Entry]) -> list[Entry]:
        """Return a batch's windows by end and its joined rows by timestamp, because Spark guarantees no order."""
        return sorted(entries, key=_sort_key)


@dataclass(frozen=True)
class JobWitness(QueryWitness):
    """A user's job, which replaces an operator.

    Attributes:
        job: A function from the streaming input (key string, value, timestamp bigint ms, order bigint) to the columns
            of the operator's changelog; the columns `change`, `reason`, `cause` and `ordinal` are optional.
        counts: A function that gets a key's stored fields at the end, and returns whether they count as remaining
            state. By default all fields count.
    """

    job: OperatorJob
    counts: Callable[[Sequence[Any]], bool] = lambda fields: True

    name = "the job"

    def builder(
        self, operator: str, options: Options, state_groups: int | None = None, batches: CohortTables = ()
    ) -> Build:
        """Return the job."""
        return self.job

    def is_left(self, fields: Sequence[Any]) -> bool:
        """Return whether a key's stored fields at the end count as remaining state."""
        return self.counts(fields)

    def refuses(self, history: History) -> str | None:
        """Refuse histories with manual delivery, because a job's channels are unknown."""
        if history.has_schedule:
            return f"{history.name}: a job decides its own deliveries: leave out the lines with deliver"
        return None


SPARK = SparkWitness()
NATIVE = NativeSparkWitness()


def binding_of(operator: str) -> Binding:
    """Return the binding of the operator in `spark_impl`.

    Raises:
        BadInput: The operator is unknown, or has no Spark implementation.
    """
    binding = registration_of(operator).spark
    if binding is None:
        raise BadInput(f"spark has no {operator}: its registration names no Spark implementation; use the reference")
    return binding


def native_of(operator: str) -> Native:
    """Return the binding of Spark's own operator.

    Raises:
        BadInput: Spark has no operator with the same meaning.
    """
    native = registration_of(operator).native
    if native is None:
        raise BadInput(f"spark-native has no {operator}: Spark has no operator with the same meaning; use spark")
    return native


def state_groups_of(cohort: Cohort, run: RunOptions) -> int | None:
    """Return the number of groups of the state's keys; with many keys, a group contains several."""
    if run.state_groups is not None:
        return run.state_groups
    keys = max((len({record.key for record in history.records}) for history in cohort.histories), default=0)
    return MANY_GROUPS if max(len(cohort.histories), keys) > MANY_KEYS else None


def _sort_key(entry: Entry) -> tuple[Any, ...]:
    _, batch, output = entry
    if not isinstance(output, Change):
        return batch, 0
    if output.window is not None:
        return batch, output.window[1]
    return batch, output.timestamp, json.dumps(output.value, sort_keys=True)

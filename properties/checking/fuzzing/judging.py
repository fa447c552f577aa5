"""Compares Spark's rows of a case with the reference, with related queries, and with the batch query."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from ....reference.spark.groups import Groups
from ....reference.spark.plans import (
    Aggregation,
    Deduplication,
    Join,
    Limit,
    Node,
    Processing,
    WithWatermark,
    pruned,
    rebuilt,
    with_joins,
)
from ....reference.spark.session_windows import SessionAggregation
from ....reference.spark.stream_join import dialect_of
from ....reference.spark.subtraction import Subtraction, as_aggregation
from ...generators.plans.rows import CLOCK, MS
from ...system.installed.spark_versions import spark_version
from ...witnesses.plans.running import PlanRunner, Ran, Refused, Rows
from ...witnesses.spark.failures import TOO_BUSY
from .cases import Bags, PlanCase, RowBag
from .divergences import (
    ALL,
    BY_RULES,
    EARLY_SESSIONS,
    EVICTED_UNJOINED,
    EXCLUDED_RULES,
    FILTERED_WATERMARK,
    FORGOTTEN_TIMES,
    NULL_KEYS,
    PRUNED_TIME,
    SEMI_EVICTS,
    SEMI_LEFT_FIRST,
    SUBTRACT_REPEATS,
    Divergence,
)
from .relations import SETTINGS, Relation

REFERENCE, BATCH, REFUSED = (Relation(name, lambda case: None) for name in ("reference", "batch", "refused"))
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled"
(_EARLY,) = SETTINGS["sessions merged early"]
INTERNAL = (
    *("INTERNAL_ERROR", "PLAN_VALIDATION_FAILED", "MatchError", "NullPointerException", "assertion failed"),
    *("NoSuchElementException", "IllegalStateException", "ClassCastException", "IndexOutOfBounds"),
)
"""Texts of errors that no plan should cause."""
CLOSED_MS = 60_000
"""A watermark delay (ms) above the sum of all durations of a plan: a watermark so far ahead has closed everything."""
UNSUPPORTED = ("UNSUPPORTED_", "not supported", "SPARK-26154")
"""Texts of errors by which Spark refuses a plan; for some plans, Spark raises them in the first batch."""
Explanation: TypeAlias = "tuple[Divergence, ...] | None"
"""The divergences with which the reference emits a run's rows; empty: no divergence is needed; None: no known
divergence explains the rows.
"""


class Finding(NamedTuple):
    """A case whose rows or error on Spark differ from the expected result.

    Attributes:
        relation: The relation that the case violates: `REFERENCE`, `BATCH`, `REFUSED`, or a metamorphic relation.
        case: The case.
        other: The second case of the relation; None: the relation has no second case.
        wanted: The expected rows of each batch, or of the whole run; empty if Spark refuses the query.
        found: Spark's rows.
        named: The known divergences that explain the difference; empty: none explains it.
        error: The error that ended the query; empty: the query ran.
    """

    relation: Relation
    case: PlanCase
    other: PlanCase | None = None
    wanted: Sequence[RowBag] = ()
    found: Sequence[RowBag] = ()
    named: tuple[Divergence, ...] = ()
    error: str = ""


@dataclass
class PlanJudge:
    """Runs cases on Spark and judges the results.

    Attributes:
        runner: Runs cases on Spark.
        pairs: The number of judged pairs of a plan and a history.
        runs: The number of checks of each relation.
        refusals: The number of plans that Spark refused, by Spark's error condition.
        digest: A digest of the last case's rows, from the run with default options.
    """

    runner: PlanRunner
    pairs: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    digest: str = ""
    _rows: tuple[object, Rows] | None = None

    def rows(self, case: PlanCase) -> Rows:
        """Return the rows that Spark emits for a case."""
        if self._rows is None or self._rows[0] is not case.batches:
            self._rows = (case.batches, self.runner.rows(case.batches))
        return self._rows[1]

    def run(self, case: PlanCase, settings: Mapping[str, str] | None = None) -> Ran:
        """Run a case on Spark, optionally with additional settings."""
        how = replace(case.how, settings={**case.how.settings, **(settings or {})})
        return self.runner.run(case.query, self.rows(case), how)

    def judge(self, case: PlanCase, relations: Sequence[Relation]) -> Iterator[Finding]:
        """Compare Spark's rows of a case with the reference, the batch query and related queries; yield the
        differences.
        """
        self.asked(REFERENCE, case)
        try:
            ran = self.run(case)
        except Refused as refused:
            yield from self.refused(case, refused)
            return
        self.digest = digest_of(case.bags(ran.batches))
        explained = self.explain(case, ran)
        if explained is None or explained:
            yield Finding(REFERENCE, case, None, case.expected(), case.bags(ran.batches), explained or ())
        if case.nothing_late:
            yield from self.by_batch(case, ran, explained)
        for relation in relations:
            other = relation.vary(case)
            if other is not None:
                yield from self.by_relation(case, ran, explained, relation, other)

    def again(self, finding: Finding, case: PlanCase) -> Finding | None:
        """Check another case by the relation of a finding; return the new finding if the same divergences explain it,
        otherwise None.
        """
        asked = () if finding.relation in (REFERENCE, BATCH, REFUSED) else (finding.relation,)
        for one in self.judge(case, asked):
            if one.relation is finding.relation and one.named == finding.named:
                return one
        return None

    def asked(self, relation: Relation, case: PlanCase) -> None:
        """Add one check of a relation to the counts."""
        self.pairs += len(case.histories)
        self.runs[relation.name] += 1

    def explain(self, case: PlanCase, ran: Ran) -> Explanation:
        """Return the known divergences that make the reference emit the rows of a run."""
        found = case.bags(ran.batches)
        named = self.by_readings(case, found)
        if named is not None:
            return named
        for plan, named in self.readings(case):
            if case.expected(plan, ran.watermarks_ms) == found and self.is_as_written(case, FILTERED_WATERMARK):
                return (FILTERED_WATERMARK, *named)
        return self.by_rules(case)

    def by_readings(self, case: PlanCase, found: Bags) -> Explanation:
        """Return the divergences whose plan makes the reference emit the rows that Spark emitted."""
        for plan, named in self.readings(case):
            if case.expected(plan) == found:
                return named
        for plan, named in self.readings(case) if case.starts else ():
            if case.expected(plan, starts=case.starts) == found:
                return (*named, FORGOTTEN_TIMES)
        return None

    def by_rules(self, case: PlanCase) -> Explanation:
        """Return the divergences whose optimizer rules cause the difference: without these rules, Spark runs the plan
        as written.
        """
        alone = [one for one in BY_RULES if one.is_of_this_spark]
        combined = [*((one,) for one in alone), *((FILTERED_WATERMARK, one) for one in alone[1:])]
        return next((named for named in combined if self.is_as_written(case, *named)), None)

    def readings(self, case: PlanCase) -> list[tuple[Node, tuple[Divergence, ...]]]:
        """Yield plans that Spark may run for a case, each with its divergences; the first is the written plan."""
        plan = case.query.plan
        readings: list[tuple[Node, tuple[Divergence, ...]]] = [(plan, ()), (pruned(plan), (PRUNED_TIME,))]
        joins = [node.by for node in plan.walk() if isinstance(node, Join)]
        if joins:
            own, named = dialect_of(spark_version()), []
            if not own.keeps_evicted:
                named.append(EVICTED_UNJOINED)
            if any(join.join == "left_semi" for join in joins):
                named.append(SEMI_EVICTS if own.semi_takes == "right" else SEMI_LEFT_FIRST)
            if named:
                readings += [(with_joins(one, dialect=own), (*others, *named)) for one, others in readings]
        if any(isinstance(node, Subtraction) for node in plan.walk()):
            readings += [(as_aggregation(one), (*others, SUBTRACT_REPEATS)) for one, others in readings]
        if case.how.settings.get(_EARLY) == "true":
            readings += [(_with_early_sessions(one), (*others, EARLY_SESSIONS)) for one, others in readings]
        rules = case.how.settings.get(EXCLUDED_RULES, "")
        unfiltered = case.how.settings.get(_CONSTRAINTS) == "false" or "InferFiltersFromConstraints" in rules
        if joins and (unfiltered or any(join.join == "full" for join in joins)):
            equal = True if unfiltered else None
            readings += [(with_joins(one, null_keys=equal), (*others, NULL_KEYS)) for one, others in readings]
        return readings

    def is_as_written(self, case: PlanCase, *divergences: Divergence) -> bool:
        """Return whether Spark runs the plan as written, apart from pruned columns, if the divergences' rules are
        excluded.
        """
        excluded = {**case.how.settings, EXCLUDED_RULES: ",".join(one.excluded for one in divergences)}
        case = replace(case, how=replace(case.how, settings=excluded))
        try:
            found = case.bags(self.run(case).batches)
        except Refused:
            return False
        return self.by_readings(case, found) is not None

    def by_relation(
        self, case: PlanCase, ran: Ran, explained: Explanation, relation: Relation, other: PlanCase
    ) -> Iterator[Finding]:
        """Run the second case of a relation, and compare its rows with the rows of the first case."""
        self.asked(relation, other)
        try:
            second = self.run(other)
        except Refused as refused:
            yield from self.refused(other, refused)
            return
        columns = [name for name in case.columns or () if name in (other.columns or ())]
        wanted, found = (case.bags(one.batches, columns) for one in (ran, second))
        if wanted != found:
            again = self.explain(other, second)
            both = () if explained is None or again is None else dict.fromkeys([*explained, *again])
            yield Finding(relation, case, other, wanted, found, tuple(both))

    def by_batch(self, case: PlanCase, ran: Ran, explained: Explanation) -> Iterator[Finding]:
        """Compare a run without late rows with the batch query over all rows."""
        columns = case.columns or []
        if case.query.mode != "append" or "h" not in columns or not is_whole_at_end(case.query.plan):
            return
        times = {row["ts"] for batch in case.batches for of_input in batch.values() for row in of_input}
        if None in times and keeps_untimed(case.query.plan):
            return
        if any(time and time % MS for time in times) and loses_sessions(case.query.plan):
            return
        of_histories = (
            row["ts"] for batch in case.batches for rows in batch.values() for row in rows if row["h"] != CLOCK
        )
        last_us = max(filter(None, of_histories), default=0)
        is_timed = any(isinstance(node, WithWatermark) for node in case.query.plan.walk())
        if is_timed and max((ms for _, ms in ran.watermarks_ms), default=0) <= last_us // MS + CLOSED_MS:
            return  # the clock's rows haven't closed all windows, so the batch query has more rows
        self.asked(BATCH, case)
        try:
            rows = self.runner.as_batch(case.query, case.batches, case.how)
        except Refused as refused:
            yield Finding(REFUSED, case, error=f"as a batch query: {refused.condition} {refused}")
            return
        wanted, found = (_of_histories(case.bags(batches), columns) for batches in ([rows], ran.batches))
        if wanted != found:
            yield Finding(BATCH, case, None, [wanted], [found], explained or ())

    def refused(self, case: PlanCase, refused: Refused) -> Iterator[Finding]:
        """Judge an error of a query: internal errors of Spark, and failures of queries that Spark accepted, are
        findings.
        """
        if TOO_BUSY in refused.details:
            self.refusals["no Python worker, as the machine was too busy"] += 1
            return
        self.refusals[refused.condition or "no condition"] += 1
        dies = refused.has_started and not any(one in str(refused) for one in UNSUPPORTED)
        if dies or any(one in refused.details for one in INTERNAL):
            said = (one for one in ALL if one.message and one.message in refused.details and one.is_of_this_spark)
            named = tuple(said) or self.by_rules(case) or ()
            yield Finding(REFUSED, case, named=named, error=f"{refused.condition} {refused}".strip())


def is_whole_at_end(plan: Node) -> bool:
    """Return whether a streaming query without late rows ends with the rows of the batch query; four kinds of plans
    don't.

    A join without both time bounds emits matches that are behind the watermark, and an operator above the join drops
    these matches as late. A limit keeps the rows that arrive first. `dropDuplicatesWithinWatermark` emits a duplicate
    again after the watermark has passed the first row by the delay. Event-time timers don't fire in a batch query.
    """
    stateful = [node for node in plan.walk() if node.is_stateful]
    below = [one for node in stateful for side in node.inputs for one in side.walk()]
    late = (one for one in below if isinstance(one, Join) and None in (one.by.before_us, one.by.after_us))
    forgets = (
        isinstance(one, Limit | Processing) or (isinstance(one, Deduplication) and one.within_watermark)
        for one in stateful
    )
    return bool(stateful) and not any(late) and not any(forgets)


def keeps_untimed(plan: Node) -> bool:
    """Return whether rows without an event time may stay in the state forever, in an outer join or in a group by event
    time.
    """
    outer = (isinstance(one, Join) and one.by.join in ("left", "right", "full") for one in plan.walk())
    by_time = (isinstance(one, Aggregation) and isinstance(one.by, Groups) for one in plan.walk())
    return any(outer) or any(by_time)


def loses_sessions(plan: Node) -> bool:
    """Return whether an operator drops a session that ends 1 µs after the watermark, because its event time is already
    late.
    """
    below = (one for node in plan.walk() if node.is_stateful for side in node.inputs for one in side.walk())
    return any(isinstance(one, Aggregation) and isinstance(one.by, SessionAggregation) for one in below)


def _with_early_sessions(plan: Node) -> Node:
    def change(node: Node) -> Node:
        is_session = isinstance(node, Aggregation) and isinstance(node.by, SessionAggregation)
        return replace(node, by=replace(node.by, merges_early=True)) if is_session else node  # type: ignore[attr-defined, call-arg]

    return rebuilt(plan, change)


def digest_of(bags: Bags) -> str:
    """Return a digest of the rows of all batches."""
    return hashlib.sha256(repr([sorted(map(repr, bag.elements())) for bag in bags]).encode()).hexdigest()[:16]


def _of_histories(bags: Bags, columns: Sequence[str]) -> RowBag:
    """Return the rows of all batches, without the fuzzer's own rows that only move the watermark."""
    at = columns.index("h")
    rows = (row for bag in bags for row in bag.elements())
    return Counter(row for row in rows if row[at] not in (CLOCK, None))

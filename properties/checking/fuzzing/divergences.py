"""The known divergences: cases in which Spark's result of a streaming plan differs from the written plan, each with the
plan that Spark runs instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...system.installed.requirements import installed, release
from ...witnesses.job.plan import optimized

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
"""The Spark setting that lists optimizer rules to exclude."""
_RULE = "org.apache.spark.sql.catalyst.optimizer."


@dataclass(frozen=True)
class Divergence:
    """A known difference between a written plan and the plan that Spark runs.

    Attributes:
        name: The divergence's name in reports.
        ticket: The number of Spark's issue, or `not reported`.
        says: The effect on a query's result, in a sentence.
        remedy: What a user can do to avoid the divergence.
        rules: The optimizer rules that cause the divergence; empty: no optimizer rule causes it.
        message: A part of the text of the error that ends the query; empty: the query doesn't fail.
        until: The first Spark version without the divergence; empty: no such version.
    """

    name: str
    ticket: str
    says: str
    remedy: str
    rules: tuple[str, ...] = ()
    message: str = ""
    until: str = ""

    @property
    def issue(self) -> str:
        """The number of Spark's issue, and the first version without the divergence."""
        return f"{self.ticket}, until {self.until}" if self.until else self.ticket

    @property
    def is_of_this_spark(self) -> bool:
        """Return whether the installed PySpark is known to have the divergence."""
        return self.is_of(installed("pyspark"))

    def is_of(self, version: str) -> bool:
        """Return whether a version of PySpark is known to have the divergence."""
        return not self.until or release(version) < release(self.until)

    @property
    def excluded(self) -> str:
        """The value of the setting `EXCLUDED_RULES` that excludes the divergence's optimizer rules."""
        return ",".join(_RULE + rule for rule in self.rules)


FILTERED_WATERMARK = Divergence(
    optimized.FILTERED_WATERMARK,
    "by design since SPARK-21587; not documented",
    "Spark moves a filter, or a join's condition on one side (that a key isn't null or equals a constant), "
    "below withWatermark: filtered rows no longer move the watermark, so results come later, and late rows "
    "count.",
    "write the filter before withWatermark if that is meant; otherwise exclude the optimizer's rules "
    "PushDownPredicates and PushPredicateThroughNonJoin",
    ("PushDownPredicates", "PushPredicateThroughNonJoin", "PushDownLeftSemiAntiJoin", "InferFiltersFromConstraints"),
)
PRUNED_TIME = Divergence(
    optimized.PRUNED_TIME,
    "SPARK-58979",
    "Spark prunes an event time that isn't selected above a deduplication or a join without bounds, and the "
    "operator drops no late rows.",
    "keep the event time among the selected columns",
)
REDUNDANT_SESSIONS = Divergence(
    optimized.REDUNDANT_SESSIONS,
    "not reported",
    "If no column above session windows needs their aggregates, Spark removes the windows below another "
    "aggregate, and each row becomes its own session.",
    "keep an aggregate of the sessions among the columns, or exclude the optimizer's rule RemoveRedundantAggregates",
    ("RemoveRedundantAggregates",),
)
SEMI_JOIN_ABOVE_UNION = Divergence(
    "semi join above a union",
    "not reported",
    "A left semi or anti join with a table above a union fails with PLAN_VALIDATION_FAILED_RULE_IN_BATCH; the "
    "batch query runs.",
    "exclude the optimizer's rule PushDownLeftSemiAntiJoin",
    ("PushDownLeftSemiAntiJoin",),
    "PushDownLeftSemiAntiJoin",
)
NULL_KEYS = Divergence(
    "null keys joined",
    "not reported",
    "A full join matches null keys; so does any join if spark.sql.constraintPropagation.enabled is false, "
    "because the operator looks up keys as stored. In SQL, and in a batch query, a null key matches no row.",
    "filter null keys before the join",
)
SEMI_EVICTS = Divergence(
    "semi join loses an evicted row",
    "not reported; since SPARK-55973 (4.2.0)",
    "A left semi join doesn't keep a right row that is evicted in its own batch: a left row of this batch loses "
    "its partner.",
    "use an inner join and a deduplication",
)
SEMI_LEFT_FIRST = Divergence(
    "semi join takes left rows first",
    "SPARK-55973",
    "A left semi join loses a left row that is evicted in the batch in which its partner arrives.",
    "use an inner join and a deduplication",
    until="4.2.0",
)
EVICTED_UNJOINED = Divergence(
    "evicted row unjoined",
    "SPARK-49829",
    "A row that is evicted in its own batch isn't joined with other rows of this batch, and an outer join "
    "doesn't emit it.",
    "use PySpark 3.5.4 or newer",
    until="3.5.4",
)
SUBTRACT_REPEATS = Divergence(
    "subtract repeats rows",
    "SPARK-59290",
    "subtract (EXCEPT) of a table emits the same row in each batch that contains it, not once.",
    "use dropDuplicates and a left anti join",
)
LIMIT_ABOVE_AGGREGATE = Divergence(
    "limit above an aggregate",
    "not reported",
    "With RocksDB as the provider, a limit above an aggregate fails: Spark opens the limit's state store as the "
    "aggregate's.",
    "use the default provider of state stores, or limit what the sink writes",
    message="Can only upgrade readStore to writeStore",
)
ZERO_FOR_NULL = Divergence(
    "zero for null",
    "not reported",
    "In a batch without new data in a union's inputs, Spark replaces the union by its first side. If a column "
    "there is a constant, and so not nullable, an operator above reads nulls in its state as 0.",
    "make the column nullable on the first side, for example by nullif(1, 0), or exclude the optimizer's rule "
    "PropagateEmptyRelation",
    ("PropagateEmptyRelation",),
)
LIMIT_BELOW_JOIN = Divergence(
    "limit below an outer join",
    "not reported",
    "Spark moves a limit above an outer join below it: it takes rows before the join, and skips rows that the "
    "join would emit now, so the limit is reached later.",
    "exclude the optimizer's rule LimitPushDown",
    ("LimitPushDown",),
)
OUTER_JOIN_REMOVED = Divergence(
    "outer join removed",
    "not reported",
    "An outer join is removed if nothing above it needs the other side's columns, and duplicates don't matter: below "
    "max, min or no aggregate. Its rows come at once, not when they can find no partner any more, and the other side "
    "doesn't hold the watermark back.",
    "count the rows in the aggregate too, or exclude the optimizer's rule EliminateOuterJoin",
    ("EliminateOuterJoin",),
)
FALSE_FILTER = Divergence(
    "plan below a false filter removed",
    "SPARK-49699",
    "If a filter is false for every row, Spark removes the plan below the filter, with its watermark and its "
    "stateful operators.",
    "use PySpark 3.5.4 or newer",
    ("PruneFilters",),
    until="3.5.4",
)
ONE_ROW = Divergence(
    "aggregate of one row removed",
    "SPARK-48481",
    "In a batch with no new data, or with one row, Spark removes an aggregate whose values aren't needed, and "
    "with it the state.",
    "use PySpark 3.5.2 or newer",
    ("OptimizeOneRowPlan",),
    until="3.5.2",
)
CONSTANT_OF_ONE_SIDE = Divergence(
    "constant of one side for both",
    "SPARK-47840",
    "In a batch in which one side of a union has no new data, Spark uses the other side's constant for all groups.",
    "use PySpark 3.5.2 or newer",
    ("FoldablePropagation",),
    until="3.5.2",
)
TIME_ABOVE_DEDUPLICATION = Divergence(
    "deduplication without its time",
    "SPARK-50492",
    "A deduplication within the watermark fails if its event time isn't selected above it.",
    "use PySpark 3.5.4 or newer, or keep the event time among the selected columns",
    message="NoSuchElementException",
    until="3.5.4",
)
JOIN_STATE_1 = Divergence(
    "join state version 1",
    "not reported; in 4.1.4 and 4.3.0, not in 3.5.1",
    "An inner join of streams fails in its first batch if spark.sql.streaming.join.stateFormatVersion is 1.",
    "leave the setting at its default, with a new checkpoint",
    message="createSchemaWriter",
)
EARLY_SESSIONS = Divergence(
    "late rows in sessions merged early",
    "not reported",
    "With spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition, a late row counts if its session "
    "contains a row of the same batch and partition that isn't late.",
    "leave the setting at its default",
)
FORGOTTEN_TIMES = Divergence(
    "times forgotten at a restart",
    "not reported",
    "A query that restarts from its checkpoint has forgotten each input's largest event time: until each input "
    "has new rows, the watermark stands still, and results come later than without the restart.",
    "expect late results after a restart until each input has new rows",
)
BY_RULES = (
    *(FILTERED_WATERMARK, REDUNDANT_SESSIONS, FALSE_FILTER, ONE_ROW, CONSTANT_OF_ONE_SIDE),
    *(SEMI_JOIN_ABOVE_UNION, ZERO_FOR_NULL, LIMIT_BELOW_JOIN, OUTER_JOIN_REMOVED),
)
"""The divergences that don't occur without their optimizer rules, those with the fewest rules first."""
ALL = (
    FILTERED_WATERMARK,
    PRUNED_TIME,
    REDUNDANT_SESSIONS,
    SEMI_JOIN_ABOVE_UNION,
    NULL_KEYS,
    SEMI_EVICTS,
    SEMI_LEFT_FIRST,
    EVICTED_UNJOINED,
    SUBTRACT_REPEATS,
    LIMIT_ABOVE_AGGREGATE,
    ZERO_FOR_NULL,
    LIMIT_BELOW_JOIN,
    OUTER_JOIN_REMOVED,
    FALSE_FILTER,
    ONE_ROW,
    CONSTANT_OF_ONE_SIDE,
    TIME_ABOVE_DEDUPLICATION,
    JOIN_STATE_1,
    EARLY_SESSIONS,
    FORGOTTEN_TIMES,
)


def divergence_named(name: str) -> Divergence:
    """Return a known divergence by its name."""
    return next(one for one in ALL if one.name == name)


def sentences(names: Iterable[str]) -> list[str]:
    """Return a sentence for each known divergence of a job's plan, without the full stop."""
    return [
        f"Spark runs this plan differently from how it is written ({one.name}, {one.issue}): {one.says} Remedy: "
        f"{one.remedy}"
        for one in map(divergence_named, names)
    ]

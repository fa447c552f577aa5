"""The known differences between Spark's streaming plans and the written query, each with a plan that explains it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...system.installed.requirements import installed, release
from ...witnesses.job.plan import optimized

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
"""The Spark setting of the optimizer rules to exclude."""
_RULE = "org.apache.spark.sql.catalyst.optimizer."


@dataclass(frozen=True)
class Divergence:
    """A known difference between a written plan and the plan that Spark runs.

    Attributes:
        name: Its name in reports.
        ticket: Spark's issue, or `not reported`.
        says: The effect, in a sentence.
        remedy: The user's remedy.
        rules: The optimizer rules that cause the difference; empty: no rule is the cause.
        message: A part of the error that ends the query; empty: the query doesn't fail.
        until: The first Spark version without the difference; empty: no such version.
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
        """Spark's issue, and the first version without the difference."""
        return f"{self.ticket}, until {self.until}" if self.until else self.ticket

    @property
    def is_of_this_spark(self) -> bool:
        """Return whether the installed PySpark is known to have the difference."""
        return self.is_of(installed("pyspark"))

    def is_of(self, version: str) -> bool:
        """Return whether a version of PySpark has the difference, as far as is known."""
        return not self.until or release(version) < release(self.until)

    @property
    def excluded(self) -> str:
        """The value of `EXCLUDED_RULES`."""
        return ",".join(_RULE + rule for rule in self.rules)


FILTERED_WATERMARK = Divergence(
    optimized.FILTERED_WATERMARK,
    "by design since SPARK-21587; its effect is not documented",
    "A filter, or what a join asks of one side (that its key isn't null, or equals a constant), is moved below "
    "withWatermark: rows that it drops no longer move the watermark, so results come later, and rows count that were "
    "late.",
    "filter before withWatermark where that is meant; otherwise exclude the optimizer's rules "
    "PushDownPredicates and PushPredicateThroughNonJoin",
    ("PushDownPredicates", "PushPredicateThroughNonJoin", "PushDownLeftSemiAntiJoin", "InferFiltersFromConstraints"),
)
PRUNED_TIME = Divergence(
    optimized.PRUNED_TIME,
    "SPARK-58979",
    "The event time isn't among the columns that are needed above a deduplication or a join without bounds: it is "
    "pruned, and the operator drops no late rows.",
    "keep the event time among the selected columns",
)
REDUNDANT_SESSIONS = Divergence(
    optimized.REDUNDANT_SESSIONS,
    "not reported",
    "Session windows whose aggregates aren't needed, below another aggregate, are taken for redundant: each row is a "
    "session of its own.",
    "keep an aggregate of the sessions among the columns, or exclude the optimizer's rule RemoveRedundantAggregates",
    ("RemoveRedundantAggregates",),
)
SEMI_JOIN_ABOVE_UNION = Divergence(
    "semi join above a union",
    "not reported",
    "A left semi or anti join with a table above a union fails with PLAN_VALIDATION_FAILED_RULE_IN_BATCH; the batch "
    "query runs.",
    "exclude the optimizer's rule PushDownLeftSemiAntiJoin",
    ("PushDownLeftSemiAntiJoin",),
    "PushDownLeftSemiAntiJoin",
)
NULL_KEYS = Divergence(
    "null keys joined",
    "not reported",
    "Rows with null keys are partners in a full join, and in any join if spark.sql.constraintPropagation.enabled is "
    "false: the operator looks a key up as it is stored. In SQL, and in a batch query, a null key has no partner.",
    "filter null keys before the join",
)
SEMI_EVICTS = Divergence(
    "semi join loses an evicted row",
    "not reported; since SPARK-55973 (4.2.0)",
    "A left semi join doesn't keep a right row that its own batch evicts: a left row of that batch loses its partner.",
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
    "A row that its own batch evicts isn't joined with other rows of that batch, and an outer join doesn't emit it.",
    "use PySpark 3.5.4 or newer",
    until="3.5.4",
)
SUBTRACT_REPEATS = Divergence(
    "subtract repeats rows",
    "SPARK-59290",
    "subtract (EXCEPT) of a table emits a row again in each batch that has it, not once.",
    "use dropDuplicates and a left anti join",
)
LIMIT_ABOVE_AGGREGATE = Divergence(
    "limit above an aggregate",
    "not reported",
    "With RocksDB as the provider, a limit above an aggregate fails: the limit's state store is taken for the "
    "aggregate's.",
    "use the default provider of state stores, or limit what the sink writes",
    message="Can only upgrade readStore to writeStore",
)
ZERO_FOR_NULL = Divergence(
    "zero for null",
    "not reported",
    "In a batch in which a union's inputs have no new data, the union becomes its first side, whose column isn't "
    "nullable if it is a constant there: an operator above reads the nulls that it keeps in its state as 0.",
    "let the column be nullable on the first side, as by nullif(1, 0), or exclude the optimizer's rule "
    "PropagateEmptyRelation",
    ("PropagateEmptyRelation",),
)
LIMIT_BELOW_JOIN = Divergence(
    "limit below an outer join",
    "not reported",
    "A limit above an outer join is moved below it: rows are taken before they are joined, and those that could be "
    "emitted now are left out, so the limit is reached later.",
    "exclude the optimizer's rule LimitPushDown",
    ("LimitPushDown",),
)
FALSE_FILTER = Divergence(
    "plan below a false filter removed",
    "SPARK-49699",
    "A filter that is false for every row removes the plan below it, with its watermark and its stateful operators.",
    "use PySpark 3.5.4 or newer",
    ("PruneFilters",),
    until="3.5.4",
)
ONE_ROW = Divergence(
    "aggregate of one row removed",
    "SPARK-48481",
    "In a batch with no new data, or with one row, an aggregate whose values aren't needed is removed, and its state "
    "with it.",
    "use PySpark 3.5.2 or newer",
    ("OptimizeOneRowPlan",),
    until="3.5.2",
)
CONSTANT_OF_ONE_SIDE = Divergence(
    "constant of one side for both",
    "SPARK-47840",
    "In a batch in which one side of a union has no new data, the other side's constant is taken for all groups.",
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
    "With spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition, a late row counts if another row of its "
    "batch and partition is in its session and isn't late.",
    "leave the setting at its default",
)
FORGOTTEN_TIMES = Divergence(
    "times forgotten at a restart",
    "not reported",
    "A query that starts again from its checkpoint has forgotten which times each of its inputs had reached: where one "
    "is silent since, the watermark stands still, and results come later than without the restart.",
    "expect late results after a restart until each input has new rows",
)
BY_RULES = (
    *(FILTERED_WATERMARK, REDUNDANT_SESSIONS, FALSE_FILTER, ONE_ROW, CONSTANT_OF_ONE_SIDE),
    *(SEMI_JOIN_ABOVE_UNION, ZERO_FOR_NULL, LIMIT_BELOW_JOIN),
)
"""The divergences that disappear without their optimizer rules, those with narrower rules first."""
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
    """Return a sentence for each known divergence in a job's plan, without the full stop."""
    return [
        f"Spark is known to run this plan otherwise than it is written ({one.name}, {one.issue}): {one.says} "
        f"Remedy: {one.remedy}"
        for one in map(divergence_named, names)
    ]

"""Metamorphic relations: a second query, or other run options, that must emit the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ....reference.spark.expressions import Expression, column
from ....reference.spark.plans import Filter, Join, Node, Project, Union, rebuilt
from ....reference.spark.stream_join import StreamJoinKind
from ...witnesses.plans.running import ROCKSDB_STORE
from .cases import PlanCase

SETTINGS: dict[str, dict[str, str]] = {
    "rocksdb": ROCKSDB_STORE,
    "rocksdb with a changelog": {
        **ROCKSDB_STORE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
    "three partitions": {"spark.sql.shuffle.partitions": "3"},
    "code generation": {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"},
    "adaptive execution": {"spark.sql.adaptive.enabled": "true"},
    "no inferred filters": {"spark.sql.constraintPropagation.enabled": "false"},
    "broadcast joins": {"spark.sql.autoBroadcastJoinThreshold": "10000000"},
    "join state version 1": {"spark.sql.streaming.join.stateFormatVersion": "1"},
    "aggregation state version 1": {"spark.sql.streaming.aggregation.stateFormatVersion": "1"},
    "sessions merged early": {"spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition": "true"},
}
"""Spark settings that may change the speed of a query, but not its rows."""
CHECKPOINT = ("offsets", "state", "commits")
"""The folders of a checkpoint; a query that can't write to such a folder fails before, in or after its batch."""


EQUIVALENCE = "equivalence"
NAMES = (
    EQUIVALENCE,
    *("fewer columns", "without the event time", "constants as columns", "union's sides", "join mirrored"),
    *("full join in two", "restarts", "deaths", *SETTINGS),
)
"""The names of all metamorphic relations."""


@dataclass(frozen=True)
class Relation:
    """A relation between two cases, whose results must be equal in the common columns.

    Attributes:
        name: The relation's name in reports.
        vary: The function that returns the second case for a first case; None: the relation doesn't apply to the first
            case.
    """

    name: str
    vary: Callable[[PlanCase], PlanCase | None]


def relations(generator: random.Random, case: PlanCase) -> Iterator[Relation]:
    """Yield the relations that the fuzzer checks on a case, with random options, in the order of the checks."""
    drawn = [*_drawn(generator, case)]
    generator.shuffle(drawn)
    yield from drawn


def _drawn(generator: random.Random, case: PlanCase) -> Iterator[Relation]:
    plan, count = case.query.plan, len(case.batches)
    nodes = [*plan.walk()]
    columns = [name for name in case.columns or () if name != "h"]
    fewer = frozenset(["h", *generator.sample(columns, generator.randint(0, len(columns)))])
    yield Relation("fewer columns", lambda one: with_plan(one, _kept(one, fewer)))
    yield Relation("without the event time", lambda one: with_plan(one, _kept(one, {*columns, "h"} - {"ts"})))
    yield Relation("constants as columns", lambda one: with_plan(one, rebuilt(one.query.plan, _constants)))
    for kind, swap in ((Union, _union_sides), (Join, _mirrored), (Join, _split)):
        if any(isinstance(node, kind) for node in nodes):
            name = {_union_sides: "union's sides", _mirrored: "join mirrored", _split: "full join in two"}[swap]
            yield Relation(name, lambda one, swap=swap: with_plan(one, rebuilt(one.query.plan, swap)))  # type: ignore[misc]
    if case.query.stateful:
        stops = frozenset(number for number in range(count) if generator.random() < 0.7)
        if case.query.mode != "complete":
            deaths = {number: generator.choice(CHECKPOINT) for number in range(1, count) if generator.random() < 0.5}
            yield Relation("restarts", lambda one: replace(one, how=replace(one.how, restarts=stops)))
            if deaths:
                yield Relation("deaths", lambda one: replace(one, how=replace(one.how, deaths=deaths)))
        for name in generator.sample([*SETTINGS], len(SETTINGS)):
            yield Relation(name, lambda one, name=name: _with_settings(one, name))  # type: ignore[misc]


def with_plan(case: PlanCase, plan: Node | None) -> PlanCase | None:
    """Return the case with another plan; None: there is no other plan, or it is the case's own plan."""
    if plan is None or plan is case.query.plan:
        return None
    return replace(case, query=replace(case.query, plan=plan))


def _with_settings(case: PlanCase, name: str) -> PlanCase | None:
    nodes = [*case.query.plan.walk()]
    joins = [node.by for node in nodes if isinstance(node, Join)]
    if name == "join state version 1" and not (joins and all(by.join == "inner" for by in joins)):
        return None  # with state version 1, Spark runs only inner joins: SPARK-26154
    if name == "sessions merged early" and any(isinstance(node, Union) for node in nodes):
        return None  # early merging needs a key's rows in one partition; a union splits them
    return replace(case, how=replace(case.how, settings={**case.how.settings, **SETTINGS[name]}))


def _kept(case: PlanCase, names: frozenset[str] | set[str]) -> Node | None:
    kept = [name for name in case.columns or () if name in names]
    plan = case.query.plan
    if not kept or len(kept) == len(plan.columns):
        return None
    return Project((plan,), tuple((name, column(name)) for name in kept))


def _constants(node: Node) -> Node:
    """Replace each constant by a column with the same value, because no optimizer rule can fold a column."""
    if isinstance(node, Project):
        made = tuple((name, _opaque(node.input, of)) for name, of in node.made)
        return node if made == node.made else replace(node, made=made)
    if isinstance(node, Filter):
        condition = _opaque(node.input, node.condition)
        return node if condition == node.condition else replace(node, condition=condition)
    return node


def _opaque(below: Node, made: Expression) -> Expression:
    if made.function != "constant" or made.value is None or "h" not in below.columns:
        return made
    if isinstance(made.value, bool):
        return Expression("is not null" if made.value else "is null", (column("h"),))
    other = "k" if isinstance(made.value, str) else "v"
    if other not in below.columns:
        return made
    return Expression("case", (Expression("is null", (column("h"),)), column(other), made))


def _union_sides(node: Node) -> Node:
    if not isinstance(node, Union):
        return node
    left, right = node.inputs
    if left.event_times != right.event_times:  # a union uses its first input's event time, so a swap changes it
        return node
    return Union((right, left))


def _mirrored(node: Node) -> Node:
    if not isinstance(node, Join) or node.by.join == "left_semi":
        return node
    mirrored: dict[StreamJoinKind, StreamJoinKind] = {"left": "right", "right": "left"}
    kind = mirrored.get(node.by.join, node.by.join)
    keys, times = node.by.keys[::-1], node.by.times[::-1]
    by = replace(node.by, join=kind, keys=keys, times=times, before_us=node.by.after_us, after_us=node.by.before_us)
    return Project((Join(node.inputs[::-1], by),), tuple((name, column(name)) for name in node.columns))


def _split(node: Node) -> Node:
    """Rewrite a full outer join as the union of a left outer join and the unmatched right rows."""
    if not isinstance(node, Join) or node.by.join != "full":
        return node
    left = Join(node.inputs, replace(node.by, join="left"))
    right = Join(node.inputs, replace(node.by, join="right"))
    key = node.by.keys[0][0]
    return Union((left, Filter((right,), Expression("is null", (column(key),)))))

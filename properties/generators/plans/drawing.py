"""Draw query plans in which any operator may process the output of any other; Spark accepts most of the plans.

Each node returns the columns `h` (the history), `k` (a key), `ts` (the event time) and `v` (a number), so that any
operator fits above any node. All joins and groups include `h`, so that histories in a query share only the watermark.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ....reference.spark import static_join, stream_join
from ....reference.spark.aggregates import AggregateFunction, Mode
from ....reference.spark.expressions import Expression, column, constant
from ....reference.spark.groups import Groups
from ....reference.spark.plans import (
    Aggregation,
    Deduplication,
    Explode,
    Filter,
    Join,
    Limit,
    Lookup,
    Node,
    Processing,
    Project,
    Scan,
    Union,
    WithWatermark,
)
from ....reference.spark.processor import Processor
from ....reference.spark.session_windows import SessionAggregation
from ....reference.spark.static_join import StaticJoin
from ....reference.spark.stream_join import AS_WRITTEN, StreamJoin
from ....reference.spark.subtraction import Subtraction
from ....reference.spark.windows import Windows

Policy: TypeAlias = Literal["min", "max"]
SECOND_US = 1_000_000
COLUMNS = ("h", "k", "ts", "v")
NAMES = ("a", "b", "c")
TABLE = tuple({"tk": key, "x": number} for key, number in (("a", 1), ("b", 2), ("b", 3), ("c", 4), (None, 5)))
"""The rows of the static table."""
KINDS: tuple[stream_join.StreamJoinKind, ...] = ("inner", "left", "right", "full", "left_semi")


@dataclass(frozen=True)
class Query:
    """A plan with the options of its query.

    Attributes:
        plan: The plan.
        mode: The output mode.
        without_data: Whether Spark runs batches without data.
        policy: Whether the query's watermark is the smallest or the largest of several watermarks.
    """

    plan: Node
    mode: Mode = "append"
    without_data: bool = True
    policy: Policy = "min"

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs."""
        return sorted({node.name for node in self.plan.walk() if isinstance(node, Scan)})

    @property
    def stateful(self) -> list[Node]:
        """The stateful operators."""
        return [node for node in self.plan.walk() if node.is_stateful]


def is_(function: str, *inputs: Any) -> Expression:
    """Return an expression; a text operand names a column, any other operand is a constant."""
    made = (
        one if isinstance(one, Expression) else column(one) if isinstance(one, str) else constant(one) for one in inputs
    )
    return Expression(function, tuple(made))


def keep(node: Node, **made: Expression) -> Project:
    """Return a projection of a node to the columns `COLUMNS`; `made` contains the expressions of some columns."""
    names = [*COLUMNS, *(name for name in made if name not in COLUMNS)]
    return Project((node,), tuple((name, made.get(name, column(name))) for name in names))


A = constant("a")
UNTIMED = is_("as timestamp", None)
NEVER = is_("and", is_(">", "v", 1), False)
"""A condition that an optimizer finds false."""
CONDITIONS = (
    is_("=", "k", A),
    is_("<>", "k", A),
    is_("is not null", "k"),
    is_(">", "v", 1),
    is_("is null", "v"),
    is_("or", is_("=", "k", A), is_(">", "v", 2)),
    is_("and", is_("=", "k", A), is_("not", is_("=", "v", 0))),
    is_("not", is_("and", is_("=", "k", A), is_(">", "v", 0))),
    constant(False),
    NEVER,
    constant(True),
)
PROJECTIONS: tuple[dict[str, Expression], ...] = (
    {"v": constant(1)},
    {"v": constant(None)},
    {"k": A},
    {"v": is_("+", "v", 1)},
    {"v": is_("case", is_("=", "k", A), 1, is_("=", "k", constant("b")), "v", constant(None))},
    {"k": is_("coalesce", is_("lower", is_("upper", "k")), constant("n"))},
    {"v": is_("coalesce", "v", 0)},
    {},
)


def draw_query(generator: random.Random) -> Query:
    """Draw a query."""
    return _Drawer(generator).query()


class _Drawer:
    def __init__(self, generator: random.Random) -> None:
        self.generator = generator
        self.choice = generator.choice
        self.delays_us = [SECOND_US * one for one in (0, 5, 10)]

    def chance(self, share: float) -> bool:
        return self.generator.random() < share

    def query(self) -> Query:
        names = NAMES[: self.choice((1, 2, 2, 3))]
        mode: Mode = "append" if self.chance(0.75) else self.choice(("update", "complete", "complete"))
        left = self.choice((1, 1, 2, 2, 3, 3)) if mode == "append" else 1  # the most stateful operators to add
        everywhere = self.chance(0.8)
        branches = [self.branch(Scan(name, COLUMNS), everywhere) for name in names]
        if len(branches) == 1 and self.chance(0.15):  # a self-join
            branches.append(self.stateless(branches[0], 0.6))
        while len(branches) > 1:
            at = self.generator.randint(0, len(branches) - 2)  # random pairs make left-deep and right-deep trees
            sides = branches.pop(at), branches.pop(at)
            timed = all(side.event_times for side in sides)
            joined = mode == "append" and left > 0 and timed and self.chance(0.65)
            left -= joined
            if left and self.chance(0.35):
                sides = self.stateless(self.stateful(sides[0], last=False, mode=mode), 0.35), sides[1]
                left -= 1
            node = self.join(*sides) if joined else self.union(*sides)
            branches.insert(at, self.stateless(node, 0.35))
        node = branches[0]
        if not _watermarks(node) and self.chance(0.85):
            node = self.stateless(WithWatermark((node,), "ts", self.choice(self.delays_us)), 0.3)
        while left > 0:
            node = self.stateful(node, last=left == 1, mode=mode)
            left -= 1
            node = self.stateless(node, 0.35)
        return Query(node, mode, self.chance(0.5), self.choice(("min", "min", "max")) if len(names) > 1 else "min")

    def branch(self, source: Node, watermark: bool) -> Node:
        node = self.stateless(source, 0.35)
        if watermark or self.chance(0.4):
            node = self.stateless(WithWatermark((node,), "ts", self.choice(self.delays_us)), 0.4)
        return node

    def stateless(self, node: Node, share: float) -> Node:
        """Put random stateless operators above a node; each further operator has a smaller probability."""
        while self.chance(share):
            share *= 0.7
            match self.choice((*["filter"] * 5, *["project"] * 6, *["explode"] * 2, *["lookup"] * 2)):
                case "filter":
                    node = Filter((node,), self.condition())
                case "project":
                    node = keep(node, **self.choice(PROJECTIONS))
                case "explode":
                    node = Explode((node,), "v", (column("v"), is_("+", "v", 1)))
                case "lookup":
                    node = self.lookup(node)
        return node

    def condition(self) -> Expression:
        """Draw a condition; most conditions that depend on rows also accept the clock rows, whose `h` is negative."""
        condition = self.choice(CONDITIONS)
        is_constant = condition in (NEVER, constant(False), constant(True))
        return condition if is_constant or self.chance(0.25) else is_("or", condition, is_("<", "h", 0))

    def lookup(self, node: Node) -> Node:
        join: static_join.StaticJoinKind = self.choice(("inner", "left", "left_semi", "left_anti"))
        added = looked_up(join, node)
        if join in ("left_semi", "left_anti"):
            return added
        return keep(added, v=self.choice((column("v"), column("x"), is_("coalesce", "x", "v"))))

    def union(self, left: Node, right: Node) -> Node:
        """Draw a union; in some unions, the column `k` identifies the side of a row."""
        if self.chance(0.5):
            left, right = keep(left, k=A), keep(right, k=constant("b"))
        sides = [side if side.columns == COLUMNS else keep(side) for side in (left, right)]
        return Union(tuple(sides))

    def join(self, left: Node, right: Node) -> Node:
        kind = self.choice(KINDS)
        bounds_us = [SECOND_US * one for one in (0, 5, 10)]
        may_lack = (None,) * (kind == "inner" and self.chance(0.7))
        before_us, after_us = self.choice((*may_lack * 3, *bounds_us)), self.choice((*may_lack * 3, *bounds_us))
        joined = join_of(kind, left, right, before_us, after_us)
        if kind == "left_semi":
            return joined
        if kind == "right":
            return Project((joined,), (*((name, column(f"{name}2")) for name in COLUMNS), ("w", column("v"))))
        if kind == "full":
            either = {name: is_("coalesce", name, f"{name}2") for name in COLUMNS}
            return keep(joined, **either, w=column("v2"))
        return keep(joined, v=self.choice((column("v"), column("v2"))))

    def stateful(self, node: Node, *, last: bool, mode: Mode = "append") -> Node:
        if mode == "update" and self.chance(0.15):
            return subtraction(node)
        if mode in ("update", "complete"):
            return self.aggregation(node, mode)
        # Rarely draw an aggregation without an event time, which Spark refuses in append mode.
        aggregations = 5 if node.event_times or self.chance(0.1) else 0
        # `within` is drawn only as the first stateful operator: above another, the kept duplicate changes the rows.
        first = not any(one.is_stateful for one in node.walk())
        lasts = [*["within"] * 5 * first, "limit", *["processor"] * bool(node.event_times)] * last
        match self.choice((*["aggregation"] * aggregations, *["duplicates"] * 4, *lasts)):
            case "aggregation":
                return self.aggregation(node, mode)
            case "within":
                return Deduplication((node,), self.choice((("h", "k"), ("h", "k", "v"))), within_watermark=True)
            case "limit":
                return Limit((node,), self.choice((1, 3)))
            case "processor":
                return processing(node, self.choice((0, 5_000)))
        by = self.choice((("h", "k", "ts", "v"), ("h", "k", "ts"), ("h", "ts"), *[("h", "k"), ("h", "k", "v")] * last))
        return Deduplication((node,), by)

    def aggregation(self, node: Node, mode: Any) -> Node:
        size_us = SECOND_US * self.choice((5, 10))
        keys = self.choice((("h", "k"), ("h", "k"), ("h",)))
        one = AggregateFunction(self.choice(("sum", "count", "max", "min")), "v")
        many = {"v": one, "w": self.choice((AggregateFunction("count", None), AggregateFunction("avg", "v")))}
        aggregates = self.choice(({"v": one}, {"v": one}, {"v": AggregateFunction("count", None)}, many))
        kinds = ["tumbling", "tumbling", "sliding", "time", "session"][: 4 if mode == "update" else 5]
        match self.choice((*kinds, *["columns"] * (mode != "append"))):
            case "session":
                model: Any = SessionAggregation("ts", keys, size_us, aggregates, mode)
            case "time":
                model = Groups((*keys, "ts"), "ts", aggregates, mode)
            case "columns":
                model = Groups(self.choice((keys, keys, ())), None, aggregates, mode)
            case kind:
                slide_us = size_us if kind == "tumbling" else size_us // 2
                model = Windows("ts", keys, size_us, slide_us, 0, aggregates, mode)
        aggregated = Aggregation((node,), model, "" if isinstance(model, Groups) else "ts")
        missing = {"h": constant(0), "k": A, "ts": UNTIMED}
        lacking = {name: made for name, made in missing.items() if name not in aggregated.columns}
        return keep(aggregated, **lacking) if lacking else aggregated


def looked_up(kind: static_join.StaticJoinKind, node: Node) -> Lookup:
    """Return the join of a node with the static table."""
    return Lookup((node,), StaticJoin(kind, ("k",), ("tk",), ("tk", "x"), TABLE))


def join_of(
    kind: stream_join.StreamJoinKind, left: Node, right: Node, before_us: int | None, after_us: int | None
) -> Join:
    """Return a stream-stream join by history and key; the right columns' names end in 2."""
    renamed = Project((right,), tuple((f"{name}2", column(name)) for name in COLUMNS))
    by = StreamJoin(
        kind, (("h", "k"), ("h2", "k2")), ("ts", "ts2"), before_us, after_us, dialect=AS_WRITTEN, null_keys=False
    )
    return Join((left, renamed), by)


def processing(node: Node, wait_ms: int = 5_000) -> Node:
    """Return a processor that counts a node's rows by history and key, with a timer."""
    return keep(Processing((node,), Processor(("h", "k"), None, "v", wait_ms)), ts=UNTIMED)


def subtraction(node: Node) -> Node:
    """Return the histories and keys of a node's rows that the static table doesn't contain."""
    table = tuple({"h": row["x"], "k": row["tk"]} for row in TABLE)
    node = Subtraction((Project((node,), (("h", column("h")), ("k", column("k")))),), table)
    return Project(
        (node,),
        (*((name, column(name)) for name in node.columns), ("ts", UNTIMED), ("v", constant(0))),
    )


def _watermarks(node: Node) -> bool:
    return any(isinstance(one, WithWatermark) for one in node.walk())

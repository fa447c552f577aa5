"""Pairs of hand-written plans that must emit the same rows in each batch; each run of the fuzzer checks all pairs.

Each pair has the name of the relational-algebra rule by which its plans are equal. Rules that hold only for batch
queries are left out: a streaming deduplication may drop a late row that a window above it would accept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ....reference.spark.aggregates import AggregateFunction, Mode
from ....reference.spark.expressions import Expression, column, constant
from ....reference.spark.groups import Groups
from ....reference.spark.plans import (
    Aggregation,
    Deduplication,
    Explode,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Union,
    WithWatermark,
)
from ....reference.spark.session_windows import SessionAggregation
from ....reference.spark.static_join import StaticJoinKind
from ....reference.spark.stream_join import StreamJoinKind
from ....reference.spark.windows import Windows
from ...generators.plans.drawing import COLUMNS, SECOND_US, Query, is_, join_of, keep, looked_up, subtraction
from .cases import PlanCase
from .relations import EQUIVALENCE, Relation, with_plan

COUNT = {"v": AggregateFunction("count", None)}
A, B, C = (Scan(name, COLUMNS) for name in ("a", "b", "c"))


def timed(node: Node, seconds: int = 0) -> Node:
    """Return a node with a watermark on the column `ts`."""
    return WithWatermark((node,), "ts", seconds * SECOND_US)


def windows(node: Node, seconds: int = 10, by: tuple[str, ...] = ("h", "k"), mode: Any = "append", **made: Any) -> Node:
    """Return an aggregation by time windows, by default with the row count as column `v`."""
    size_us = seconds * SECOND_US
    return Aggregation((node,), Windows("ts", by, size_us, size_us, 0, made or COUNT, mode), "ts")


def sessions(node: Node, seconds: int = 10, **made: Any) -> Node:
    """Return an aggregation by session windows, by default with the row count as column `v`."""
    return Aggregation((node,), SessionAggregation("ts", ("h", "k"), seconds * SECOND_US, made or COUNT), "ts")


def groups(node: Node, mode: Mode = "complete", **made: Any) -> Node:
    """Return an aggregation by history and key, by default with the row count as column `v`."""
    return Aggregation((node,), Groups(("h", "k"), None, made or COUNT, mode))


def join(kind: StreamJoinKind, left: Node, right: Node, before: int | None = 5, after: int | None = 5) -> Join:
    """Return a stream-stream join by history and key, with event times at most some seconds apart."""
    before_us, after_us = (None if one is None else one * SECOND_US for one in (before, after))
    return join_of(kind, left, right, before_us, after_us)


def only(node: Node, *names: str) -> Node:
    """Return a projection of a node to the named columns."""
    return Project((node,), tuple((name, column(name)) for name in names))


def _where(node: Node, condition: Expression) -> Filter:
    return Filter((node,), condition)


def _once(node: Node, *by: str) -> Deduplication:
    return Deduplication((node,), by or COLUMNS)


def _looked_up(kind: StaticJoinKind, node: Node) -> Project:
    return keep(looked_up(kind, node), v=column("x"))


def _max(of: Callable[..., Node], node: Node) -> Node:
    return of(node, v=AggregateFunction("max", "v"))


def _sum(of: Callable[..., Node], node: Node, made: Expression) -> Node:
    return of(keep(node, v=made), v=AggregateFunction("sum", "v"))


def _both(node: Node, other: Node | None = None) -> Union:
    return Union((node, other or node))


class Equivalence(NamedTuple):
    """Two plans that must emit the same rows in each batch.

    Attributes:
        query: The first plan and its run options.
        other: The second plan.
    """

    query: Query
    other: Node

    @property
    def relation(self) -> Relation:
        """The relation between the two plans; it doesn't apply to a case with another plan, such as a shrunk plan."""
        return Relation(EQUIVALENCE, self._vary)

    def _vary(self, case: PlanCase) -> PlanCase | None:
        return with_plan(case, self.other) if case.query.plan == self.query.plan else None


_IS_A = is_("or", is_("=", "k", constant("a")), is_("<", "h", 0))
"""A condition that keeps rows of the clock; without it, filters below the watermark would change each pair's output."""
_MANY = is_(">", "v", 1)
_A, _B, _C = timed(A), timed(B), timed(C)
_ABC = is_("or", *(is_("=", "k", constant(key)) for key in "abc"))
_NEXT = (column("v"), is_("+", "v", 1))
_WITHOUT_STATE: dict[str, tuple[Node, Node]] = {
    "filters in turn": (_where(_where(_A, _IS_A), _MANY), _where(_A, is_("and", _IS_A, _MANY))),
    "no or not": (_where(_A, is_("not", is_("not", _MANY))), _where(_A, _MANY)),
    "a value equals itself": (_where(_A, is_("=", "v", "v")), _where(_A, is_("is not null", "v"))),
    "a true filter": (_where(_A, constant(True)), _A),
    "or as a union": (
        _both(_where(_A, _IS_A), _where(_A, is_("and", is_("not", is_("coalesce", _IS_A, False)), _MANY))),
        _where(_A, is_("or", _IS_A, _MANY)),
    ),
    "a union with nothing": (_both(_A, _where(_B, constant(False))), _both(_A, _where(_B, is_("<>", "h", "h")))),
    "a union in either order": (_both(_A, _B), _both(_B, _A)),
    "unions in turn": (_both(_both(_A, _B), _C), _both(_A, _both(_B, _C))),
    "a filter of a union": (_where(_both(_A, _B), _MANY), _both(_where(_A, _MANY), _where(_B, _MANY))),
    "explode as a union": (
        Explode((_A,), "v", _NEXT),
        _both(_A, keep(_A, v=is_("+", "v", 1))),
    ),
    "explode of one": (Explode((_A,), "v", (column("v"),)), _A),
    "coalesce of one": (keep(_A, k=is_("coalesce", "k", "k")), _A),
    "a case for each": (keep(_A, v=is_("case", is_("is null", "v"), constant(None), "v")), _A),
    "upper and lower": (keep(_A, k=is_("lower", is_("upper", "k"))), _A),
    "one and one": (keep(keep(_A, v=is_("+", "v", 1)), v=is_("+", "v", 1)), keep(_A, v=is_("+", "v", 2))),
    "a filter of a projection": (
        _where(keep(_A, v=is_("+", "v", 1)), is_(">", "v", 2)),
        keep(_where(_A, _MANY), v=is_("+", "v", 1)),
    ),
    "renamed and back": (
        keep(Project((_A,), (*((one, column(one)) for one in ("h", "ts", "v")), ("w", column("k")))), k=column("w")),
        keep(_A, w=column("k")),
    ),
    "an outer lookup's partners": (
        keep(_where(looked_up("left", _A), is_("is not null", "x")), v=column("x")),
        _looked_up("inner", _A),
    ),
    "an outer lookup's others": (keep(_where(looked_up("left", _A), is_("is null", "x"))), looked_up("left_anti", _A)),
    "a semi lookup": (_where(_A, _ABC), looked_up("left_semi", _A)),
    "an anti lookup": (_where(_A, is_("not", is_("coalesce", _ABC, False))), looked_up("left_anti", _A)),
    "a filter of a lookup": (
        _where(_looked_up("inner", _A), _IS_A),
        _looked_up("inner", _where(_A, _IS_A)),
    ),
    "a watermark above a projection": (timed(keep(A, v=is_("+", "v", 1))), keep(_A, v=is_("+", "v", 1))),
    "a watermark above explode": (
        timed(Explode((A,), "v", _NEXT)),
        Explode((_A,), "v", _NEXT),
    ),
    "a watermark above a lookup": (
        timed(keep(looked_up("left", A), v=column("x"))),
        keep(looked_up("left", _A), v=column("x")),
    ),
}
_ABOVE: tuple[Callable[[Node], Node], ...] = (
    windows,
    lambda node: _once(node, "h", "k", "ts"),
    lambda node: _max(sessions, node),
    lambda node: keep(join("left", keep(node), _B)),
)
"""Stateful operators to put above both plans of a stateless pair, because optimizers move filters across them."""
_WITH_STATE: dict[str, tuple[Node, Node]] = {
    "duplicates of duplicates": (_once(_once(_A)), _once(_A)),
    "duplicates of a union with itself": (_once(_both(_A)), _once(_A)),
    "duplicates of explode": (_once(Explode((_A,), "v", (column("v"), column("v")))), _once(_A)),
    "duplicates in another order": (_once(_A, "ts", "k", "h"), _once(_A, "h", "k", "ts")),
    "duplicates of one key": (
        only(_once(_where(_A, _IS_A), "h", "k", "ts"), "h", "ts"),
        only(_once(keep(_where(_A, _IS_A), k=constant("a")), "h", "ts"), "h", "ts"),
    ),
    "a filter of duplicates": (_where(_once(_A, "h", "k", "ts"), _IS_A), _once(_where(_A, _IS_A), "h", "k", "ts")),
    "a filter of windows": (_where(windows(_A), _IS_A), windows(_where(_A, _IS_A))),
    "a count as a sum": (windows(_A), _sum(windows, _A, constant(1))),
    "a count of values as a sum": (
        windows(_A, v=AggregateFunction("count", "v")),
        _sum(windows, _A, is_("case", is_("is null", "v"), 0, 1)),
    ),
    "the largest of a union with itself": (_max(windows, _both(_A)), _max(windows, _A)),
    "windows of a union in either order": (windows(_both(_A, _B)), windows(_both(_B, _A))),
    "windows of one key": (
        windows(keep(_A, k=constant("a"))),
        keep(windows(_A, by=("h",)), k=constant("a")),
    ),
    "windows of the same windows": (windows(windows(_A, 5), 5), keep(windows(_A, 5), v=constant(1))),
    "windows of rows with a time": (windows(_where(_A, is_("is not null", "ts"))), windows(_A)),
    "windows have a time": (_where(windows(_A), is_("is not null", "ts")), windows(_A)),
    "a filter of sessions": (_where(sessions(_A), _IS_A), sessions(_where(_A, _IS_A))),
    "sessions counted as a sum": (sessions(_A), _sum(sessions, _A, constant(1))),
    "sessions of a union with itself": (_max(sessions, _both(_A)), _max(sessions, _A)),
    "sessions of rows with a time": (sessions(_where(_A, is_("is not null", "ts"))), sessions(_A)),
    "partners of a left join": (_where(join("left", _A, _B), is_("is not null", "h2")), join("inner", _A, _B)),
    "partners of a right join": (_where(join("right", _A, _B), is_("is not null", "h")), join("inner", _A, _B)),
    "left rows of a full join": (_where(join("full", _A, _B), is_("is not null", "h")), join("left", _A, _B)),
    "right rows of a full join": (_where(join("full", _A, _B), is_("is not null", "h2")), join("right", _A, _B)),
    "a filter of a join": (_where(join("inner", _A, _B), _IS_A), join("inner", _where(_A, _IS_A), _B)),
    "a filter of an outer join": (_where(join("left", _A, _B), _IS_A), join("left", _where(_A, _IS_A), _B)),
    "a filter of a semi join": (_where(join("left_semi", _A, _B), _IS_A), join("left_semi", _where(_A, _IS_A), _B)),
    "a join of a union": (join("inner", _both(_A, _C), _B), _both(join("inner", _A, _B), join("inner", _C, _B))),
    "an outer join of a union": (join("left", _both(_A, _C), _B), _both(join("left", _A, _B), join("left", _C, _B))),
    "a semi join of a union": (
        join("left_semi", _both(_A, _C), _B),
        _both(join("left_semi", _A, _B), join("left_semi", _C, _B)),
    ),
    "a lookup of a join": (
        _looked_up("inner", join("inner", _A, _B)),
        keep(join("inner", _looked_up("inner", _A), _B)),
    ),
    "explode of a join": (
        Explode((keep(join("inner", _A, _B)),), "v", _NEXT),
        keep(join("inner", Explode((_A,), "v", _NEXT), _B)),
    ),
    "a bound as a filter": (_where(join("inner", _A, _B), is_(">=", "ts2", "ts")), join("inner", _A, _B, 0, 5)),
    "a bound's end as a filter": (_where(join("inner", _A, _B), is_("<=", "ts2", "ts")), join("inner", _A, _B, 5, 0)),
}
_ONE = keep(A, v=constant(1))
_OF_A_MODE: dict[str, tuple[Mode, Node, Node]] = {
    "a filter of groups": ("complete", _where(groups(A), _IS_A), groups(_where(A, _IS_A))),
    "groups counted as a sum": ("complete", groups(A), _sum(groups, A, constant(1))),
    "the largest of groups twice": ("complete", _max(groups, _both(A)), _max(groups, A)),
    "updated groups counted as a sum": (
        "update",
        groups(A, "update"),
        groups(_ONE, "update", v=AggregateFunction("sum", "v")),
    ),
    "updated windows counted as a sum": (
        "update",
        windows(_A, mode="update"),
        windows(keep(_A, v=constant(1)), mode="update", v=AggregateFunction("sum", "v")),
    ),
    "subtract of a union with itself": ("update", subtraction(_both(A)), subtraction(A)),
    "subtract of other values": ("update", subtraction(_ONE), subtraction(A)),
}
EQUIVALENCES: dict[str, Equivalence] = {
    **{
        name: Equivalence(Query(above(one)), above(other))
        for at, (name, (one, other)) in enumerate(_WITHOUT_STATE.items())
        for above in (_ABOVE[at % len(_ABOVE)],)
    },
    **{name: Equivalence(Query(one), other) for name, (one, other) in _WITH_STATE.items()},
    **{name: Equivalence(Query(one, mode), other) for name, (mode, one, other) in _OF_A_MODE.items()},
}
"""The pairs of plans, by name."""

"""Translates a job's analyzed plan into the plans of `reference/spark`, which run histories without Spark.

A skeleton contains only the operators that determine the state and the time of output: watermarks and stateful
operators, with the columns that these operators compare. In place of a computed expression, a skeleton has a column of
the operator's input or, above an aggregate, of the source. A skeleton has no filters and lookups, because its histories
contain no rows that filters and lookups drop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .....reference.core.durations import microseconds_of
from .....reference.core.errors import BadInput
from .....reference.spark.aggregates import AggregateFunction
from .....reference.spark.expressions import Expression as Made
from .....reference.spark.expressions import column
from .....reference.spark.groups import Groups
from .....reference.spark.plans import (
    Aggregation,
    Deduplication,
    Join,
    Node,
    Processing,
    Project,
    Scan,
    Union,
    WithWatermark,
)
from .....reference.spark.processor import Processor
from .....reference.spark.session_windows import SessionAggregation
from .....reference.spark.stream_join import StreamJoin, StreamJoinKind
from .....reference.spark.windows import Windows
from .expressions import DELAY_MS, JsonExpression, Tree, read_expression, trees_of

UNKNOWN = "?"
"""The name prefix of an input that replaces an operator without a model, such as a function with state."""
_NUMBERS = re.compile(r"#\d+L?|@[0-9a-f]+")
_PASSED = (
    *("SubqueryAlias", "View", "ResolvedHint", "Repartition", "RepartitionByExpression", "RebalancePartitions"),
    *("CollectMetrics", "GlobalLimit", "LocalLimit", "Sort", "Filter"),
)
"""Operators that keep columns and times unchanged."""
_KINDS: Mapping[str, StreamJoinKind] = {
    **{"Inner": "inner", "Cross": "inner", "LeftOuter": "left", "RightOuter": "right", "FullOuter": "full"},
    "LeftSemi": "left_semi",
}
_DEDUPLICATIONS = ("Deduplicate", "DeduplicateWithinWatermark")
OF_FUNCTION = ("FlatMapGroupsInPandasWithState", "TransformWithStateIn")
"""The name prefixes of operators that call a Python function with state."""
_NO_CLOCK = ("No", "NoTime")
_NO_TIMER_MS = 1_000 * 366 * 86_400_000
"""The delay of a timer that fires in no history."""
_ORDERED = ("First", "Last")
_SUMS = {"Add": 1, "TimeAdd": 1, "TimestampAddInterval": 1, "Subtract": -1}
_BOUNDS = {"LessThanOrEqual": (-1, 0), "LessThan": (-1, -1), "GreaterThanOrEqual": (1, 0), "GreaterThan": (1, -1)}
"""For each comparison, the sign of the sides' difference that is at least 0, and the bound's offset from equality
(µs).
"""
_STRICT = (
    *("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "EqualTo", "Cast", "Add", "Subtract"),
    *("Multiply", "Divide", "Remainder", "Upper", "Lower", "Like", "RLike", "StartsWith", "EndsWith", "Contains"),
    *("StringTrim", "Length", "Substring", "GetStructField", "In", "InSet", "Year", "Month", "Hour"),
    *("Abs", "UnaryMinus", "ParseToDate", "ParseToTimestamp"),
)
"""Expressions that are null if their first input is null, or if one of two is null."""
ANY = frozenset({"true", "false", "null"})


@dataclass(frozen=True)
class PlanOperator:
    """An operator of an analyzed plan.

    Attributes:
        kind: The class name.
        node: The operator in the JVM.
        expressions: Its expressions.
        inputs: The child operators, without subqueries.
    """

    kind: str
    node: Any
    expressions: Sequence[JsonExpression]
    inputs: list[PlanOperator] = field(default_factory=list)


class TableLookup(NamedTuple):
    """A stream-static join.

    Attributes:
        is_inner: Whether rows without a match are dropped.
        keys: The looked-up columns of the stream.
    """

    is_inner: bool
    keys: Sequence[str]


class Filtered(NamedTuple):
    """An outer join followed by a filter that drops the unmatched rows of one side.

    Attributes:
        join: The join in the skeleton (None: a join with a table).
        kept: The side whose rows the join keeps.
        keys: The join columns of the kept side.
        columns: The columns of the other side that the filter needs.
    """

    join: Join | None
    kept: str
    keys: Sequence[str]
    columns: Sequence[str]


@dataclass(frozen=True)
class Skeleton:
    """The parts of a plan for which the reference has models.

    Attributes:
        parts: Plans of the reference: the whole plan, and the inputs of each operator without a model. Column names
            include their ids, as in `user#12`.
        types: The type of each column, as Spark's JSON form.
        lookups: The joins with tables.
        filtered: The outer joins that a filter turns into inner joins.
        by_order: The aggregates that depend on the order of rows: each function with the column that it reads.
        untimed: Whether a function with state has neither timeouts nor timers.
        policy: The rule that combines several inputs' watermarks into the query's watermark, `max` or `min`.
    """

    parts: Sequence[Node] = ()
    types: Mapping[str, Any] = field(default_factory=dict)
    lookups: Sequence[TableLookup] = ()
    filtered: Sequence[Filtered] = ()
    by_order: Sequence[tuple[str, str]] = ()
    untimed: bool = False
    policy: str = "min"


class _NoModel(Exception):
    """The reference contains no model of an operator."""


def skeleton_of(root: PlanOperator, clock: str, mode: str, policy: str) -> Skeleton:
    """Translate a plan.

    Args:
        root: The top operator.
        clock: The marker column of the check's own rows that move the watermark; the skeleton leaves these rows out.
        mode: The output mode.
        policy: The rule that combines several inputs' watermarks into the query's watermark, `max` or `min`.
    """
    translation = _Translation(clock, mode)
    whole = translation.of(root)
    return Skeleton(
        (*translation.parts, whole),
        translation.types,
        translation.lookups,
        translation.filtered,
        translation.by_order,
        translation.untimed,
        policy,
    )


class _Window(NamedTuple):
    """A column of windows; a session window has no slide."""

    size_us: int
    slide_us: int | None = None
    start_us: int = 0


class _Translation:
    def __init__(self, clock: str, mode: str) -> None:
        self.clock, self.mode = clock, mode
        self.parts: list[Node] = []
        self.types: dict[str, Any] = {}
        self.lookups: list[TableLookup] = []
        self.filtered: list[Filtered] = []
        self.by_order: list[tuple[str, str]] = []
        self.untimed = False
        self.windows: dict[str, _Window] = {}
        self.made: dict[str, Tree] = {}
        self.joins: dict[int, tuple[PlanOperator, Join | None]] = {}
        self.sources: dict[str, str] = {}

    def of(self, operator: PlanOperator) -> Node:
        """Translate an operator and its descendants."""
        try:
            return _sound(self._of(operator))
        except (_NoModel, LookupError, TypeError, ValueError):  # no model of the operator
            self.parts += [one for one in map(self.of, _streams(operator)) if not isinstance(one, Scan)]
            return self._unknown(operator)

    def _unknown(self, operator: PlanOperator) -> Node:
        """Return a plan's input in place of an operator without a model."""
        return Scan(f"{UNKNOWN}{len(self.sources)}", tuple(self._output(operator)))

    def _function(self, operator: PlanOperator, stream: PlanOperator) -> None:
        """Add a plan for the input of a stateful function; if the function has event-time timers, the plan drops late
        rows.
        """
        clock, below = clock_of(operator.kind, operator.node), self.of(stream)
        self.untimed |= clock in _NO_CLOCK
        if clock == "EventTime" and below.event_times:
            self.parts.append(Processing((below,), Processor((), None, "count", _NO_TIMER_MS)))
        elif not isinstance(below, Scan):
            self.parts.append(below)

    def _of(self, operator: PlanOperator) -> Node:
        kind, inputs = operator.kind, operator.inputs
        if kind.startswith("StreamingRelation"):
            names = tuple(self._output(operator))
            output = operator.node.output()
            self.types |= {name: str(output.apply(at).dataType().typeName()) for at, name in enumerate(names)}
            return Scan(self._source(operator), names)
        streams = _streams(operator)
        if kind == "Join" and len(streams) == 2:
            return self._join(operator)
        if kind == "Join" and len(streams) == 1:
            return self._lookup(operator, streams[0])
        if kind == "Union":
            return self._union(operator)
        if kind.startswith(OF_FUNCTION):
            self._function(operator, streams[0])
            return self._unknown(operator)
        if len(inputs) != 1:
            raise _NoModel
        below = self.of(inputs[0])
        if kind == "Filter":
            self._filter(operator)
        if kind in _PASSED:
            return below
        if kind == "EventTimeWatermark":
            name = _name(operator.expressions[0][0])
            return WithWatermark((below,), name, _delay_us(operator))
        if kind in _DEDUPLICATIONS:
            return Deduplication((below,), tuple(_attributes(operator)), kind != "Deduplicate")
        if kind == "Distinct":
            return self._groups(below, below.columns, below.columns)
        if kind == "Project":
            return self._project(below, operator.expressions)
        if kind == "Expand":
            return self._expand(operator, below)
        if kind == "Aggregate":
            return self._aggregate(operator, below)
        if kind == "Generate":
            for name in self._output(operator):
                below = _freed(below, name)
            return below
        raise _NoModel

    def _source(self, operator: PlanOperator) -> str:
        # If a job reads an input twice, the two texts differ only in column ids.
        names = [name.rpartition("#")[0] for name in self._output(operator)]
        text = f"{_NUMBERS.sub('', str(operator.node.toString()))} {names}"
        return self.sources.setdefault(text, str(len(self.sources)))

    def _output(self, operator: PlanOperator) -> Iterator[str]:
        output = operator.node.output()
        for index in range(output.size()):
            yield f"{output.apply(index).name()}#{output.apply(index).exprId().id()}"

    def _union(self, operator: PlanOperator) -> Node:
        if any(name.startswith(f"{self.clock}#") for name in self._output(operator)):
            return self.of(operator.inputs[0])
        whole, *others = map(self.of, operator.inputs)
        names = [*self._output(operator)]
        for one, child in zip(others, operator.inputs[1:], strict=True):
            pairs = zip(names, self._output(child), strict=True)
            whole = Union((whole, Project((one,), tuple((name, column(own)) for name, own in pairs))))
        return whole

    def _project(self, below: Node, expressions: Sequence[JsonExpression]) -> Node:
        trees = [trees_of(expression)[-1] for expression in expressions]
        made: list[tuple[str, Made]] = []
        for tree in trees:
            if tree.kind == "AttributeReference":
                name = self._known(tree)
                if not name.startswith(f"{self.clock}#"):
                    made.append((name, column(name)))
                continue
            if tree.kind != "Alias":
                raise _NoModel
            name, (value,) = _name(tree.node), tree.children
            self.made[name] = value
            below, of = self._computed(below, name, value)
            made.append((name, of))
        return Project((below,), tuple(dict(made).items()))

    def _computed(self, below: Node, name: str, value: Tree) -> tuple[Node, Made]:
        """Return a column's expression, and the node below with an additional column if the expression needs one."""
        if value.kind == "Literal":
            return below, Made("constant", value=value.node["value"])
        if value.kind == "AttributeReference":
            own = self._known(value)
            if own in self.windows:
                self.windows[name] = self.windows[own]
            self.types[name] = self.types.get(own)
            return below, column(own)
        if (time := _time_of_window(value)) is not None:
            return below, column(self._known(time))
        if (window := _window_of(value)) is not None:
            self.windows[name], time = window
            return below, column(self._known(time))
        self.types.setdefault(name, _type_of(value))
        try:
            return _freed(below, name), column(name)
        except _NoModel:
            used = [self._known(one) for one in _columns(value)]
            # A bare column would keep its watermark, which the computed column loses.
            return below, Made("as timestamp", (column(used[0]),)) if used else Made("constant", value=1)

    def _expand(self, operator: PlanOperator, below: Node) -> Node:
        outputs = [*self._output(operator)]
        first = operator.node.projections().apply(0)
        trees = [trees_of(read_expression(first.apply(at)))[-1] for at in range(first.size())]
        made = {}
        for name, tree in zip(outputs, trees, strict=True):
            if tree.kind == "AttributeReference":
                made[name] = column(self._known(tree))
            elif (window := _window_of(tree)) is not None:
                self.windows[name], time = window
                made[name] = column(self._known(time))
            else:
                raise _NoModel
        return Project((below,), tuple(made.items()))

    def _aggregate(self, operator: PlanOperator, below: Node) -> Node:
        count = operator.node.groupingExpressions().size()
        grouping = [trees_of(one)[-1] for one in operator.expressions[:count]]
        results = [trees_of(one)[-1] for one in operator.expressions[count:]]
        for tree in (one for result in results for one in _within(result)):
            if tree.kind in _ORDERED and tree.children:
                named = [self._known(each) for each in _columns(tree.children[0])]
                self.by_order.append((tree.kind.lower(), named[0] if named else ""))
        of_result = {str(_plain(one.children[0])): _name(one.node) for one in results if one.kind == "Alias"}
        keys: list[str] = []
        for number, tree in enumerate(grouping):
            if tree.kind == "AttributeReference":
                keys.append(self._known(tree))
                continue
            name = of_result.get(str(_plain(tree)), f"key {number}#{number}")
            below, of = self._computed(below, name, tree)
            if name not in below.columns:
                below = Project((below,), (*((one, column(one)) for one in below.columns), (name, of)))
            keys.append(name)
        wanted: list[tuple[str, Made]] = []
        aggregates: list[str] = []
        for tree in results:
            if tree.kind == "AttributeReference":
                name = self._known(tree)
                wanted.append((name, column(name)))
                continue
            name, value = _name(tree.node), tree.children[0]
            if name in keys:
                wanted.append((name, column(name)))
            elif value.kind == "AttributeReference":
                own = self._known(value)
                if own in self.windows:
                    self.windows[name] = self.windows[own]
                wanted.append((name, column(own)))
            elif any(one.kind == "AggregateExpression" for one in _within(value)):
                aggregates.append(name)
                wanted.append((name, column(name)))
            else:
                used = [one for one in map(self._known, _columns(value)) if one in keys]
                wanted.append((name, Made("as timestamp", (column(used[0]),)) if used else Made("constant", value=1)))
        grouped = self._groups(below, tuple(keys), tuple(aggregates))
        return Project((grouped,), tuple(wanted))

    def _groups(self, below: Node, keys: tuple[str, ...], aggregates: tuple[str, ...]) -> Node:
        """Return an aggregation with the row count in place of each aggregate."""
        counts = {name: AggregateFunction("count", None) for name in aggregates if name not in keys}
        windows = [name for name in keys if name in self.windows]
        mode: Any = self.mode
        if not windows:
            times = [name for name in keys if name in {time.column for time in below.event_times}]
            return Aggregation((below,), Groups(keys, times[0] if times else None, counts, mode))
        (time,) = windows[:1]
        others = tuple(name for name in keys if name != time)
        size_us, slide_us, start_us = self.windows[time]
        if slide_us is None:
            return Aggregation((below,), SessionAggregation(time, others, size_us, counts, mode), time)
        return Aggregation((below,), Windows(time, others, size_us, slide_us, start_us, counts, mode), time)

    def _lookup(self, operator: PlanOperator, stream: PlanOperator) -> Node:
        below = self.of(stream)
        kind, own = str(operator.node.joinType().toString()), {*self._output(stream)}
        equal = [
            one
            for part in self._condition(operator)
            for one in [self._known(each) for each in _columns(part)]
            if one in own
        ]
        self.lookups.append(TableLookup(kind == "Inner" and bool(equal), tuple(dict.fromkeys(equal))))
        for name in self._output(operator):
            below = _freed(below, name)
        self.joins[id(operator)] = (operator, None)
        return below

    def _join(self, operator: PlanOperator) -> Node:
        kind = _KINDS.get(str(operator.node.joinType().toString()))
        if kind is None:
            raise _NoModel
        left, right = sides = tuple(map(self.of, operator.inputs))
        times = [{time.column for time in one.event_times} for one in sides]
        keys: list[tuple[str, str]] = []
        before: list[int] = []
        after: list[int] = []
        bounded: set[tuple[str, str]] = set()
        for part in self._condition(operator):
            pair = self._pair(part, left, right)
            if pair is None:
                if {*map(self._known, _columns(part))} & (times[0] | times[1]):
                    raise _NoModel  # Spark may derive time bounds from it
                continue
            (one, other), offset_us, sign = pair
            if sign == 0 and offset_us == 0:
                keys.append((one, other))
                if one in times[0] and other in times[1]:
                    bounded.add((one, other))
                    before.append(0)
                    after.append(0)
                elif one in times[0] or other in times[1]:
                    raise _NoModel
            elif sign == 0:
                raise _NoModel
            else:
                bounded.add((one, other))
                (before if sign > 0 else after).append(offset_us)
        if len(bounded) > 1:
            raise _NoModel
        firsts = [next(iter(sorted(some)), one.columns[0]) for some, one in zip(times, sides, strict=True)]
        on = next(iter(bounded), (firsts[0], firsts[1]))
        if bounded and not (on[0] in times[0] or on[1] in times[1]):
            # The bounds compare columns without watermarks, so Spark never removes state by them.
            before, after, on = [], [], (firsts[0], firsts[1])
        by = StreamJoin(
            kind,
            (tuple(one for one, _ in keys), tuple(other for _, other in keys)),
            on,
            min(before, default=None),
            min(after, default=None),
        )
        join = Join((left, right), by)
        self.joins[id(operator)] = (operator, join)
        return join

    def _condition(self, operator: PlanOperator) -> Iterator[Tree]:
        """Yield the conditions that a join combines by AND."""
        left = [trees_of(one)[-1] for one in operator.expressions]
        while left:
            tree = _inlined(left.pop())
            if tree.kind in ("And", "Between"):
                left += tree.children
            else:
                yield tree

    def _pair(self, tree: Tree, left: Node, right: Node) -> tuple[tuple[str, str], int, int] | None:
        """Return a comparison as a left column, a right column, an offset (µs) and a sign (None: another expression).

        Sign 1 means right ≥ left - offset, -1 means right ≤ left + offset, and 0 means equality.
        """
        if tree.kind not in (*_BOUNDS, "EqualTo", "EqualNullSafe") or len(tree.children) != 2:
            return None
        terms = [_linear(child) for child in tree.children]
        if None in terms:
            return None
        (one, one_us), (other, other_us) = ((self._known(name), us) for name, us in terms if name)  # type: ignore[misc]
        sign, short_us = _BOUNDS.get(tree.kind, (0, 0))
        if one in left.columns and other in right.columns:  # the left side of the comparison is the left input's
            offset_us, sign = (one_us - other_us), -sign
        elif one in right.columns and other in left.columns:
            (one, other), offset_us = (other, one), other_us - one_us
        else:
            return None
        if sign == 0:
            return (one, other), offset_us, 0
        # right ≥ left + offset is right ≥ left - (-offset)
        return (one, other), (-offset_us if sign > 0 else offset_us) + short_us, sign

    def _filter(self, operator: PlanOperator) -> None:
        """Record the outer joins below a filter that drops the rows without a match."""
        for expression in operator.expressions:
            condition = trees_of(expression)[-1]
            if any(one.node.get("name") == self.clock for one in _within(condition)):
                return
            for join, kept, null in self._outer(operator.inputs[0]):
                used = {name for name in self._origins(condition) if name in null}
                if used and "true" not in self._possible(condition, null):
                    node = self.joins.get(id(join), (join, None))[1]
                    own = {*self._output(join.inputs[kept == "right"])}
                    keys = [
                        name
                        for part in self._condition(join)
                        if part.kind == "EqualTo"
                        for name in map(self._known, _columns(part))
                        if name in own
                    ]
                    self.filtered.append(Filtered(node, kept, tuple(keys), tuple(sorted(used))))

    def _outer(self, operator: PlanOperator) -> Iterator[tuple[PlanOperator, str, frozenset[str]]]:
        """Yield the outer joins below an operator, each with its preserved side, and the columns of the other side."""
        if operator.kind == "Join":
            kind = str(operator.node.joinType().toString())
            left, right = operator.inputs
            sides = {"LeftOuter": ["left"], "RightOuter": ["right"], "FullOuter": ["left", "right"]}.get(kind, [])
            for kept in sides:
                yield operator, kept, frozenset(self._output(right if kept == "left" else left))
            if kind in ("Inner", "LeftOuter", "LeftSemi", "LeftAnti"):
                yield from self._outer(left)
            if kind in ("Inner", "RightOuter"):
                yield from self._outer(right)
        elif operator.kind in (*_PASSED, "Project", *_DEDUPLICATIONS, "EventTimeWatermark"):
            yield from self._outer(operator.inputs[0])

    def _origins(self, tree: Tree) -> Iterator[str]:
        """Yield the columns in an expression, and the columns that they derive from."""
        for one in _columns(tree):
            name = _name(one.node)
            yield name
            if name in self.made:
                yield from self._origins(self.made[name])

    def _possible(self, tree: Tree, null: frozenset[str]) -> frozenset[str]:
        """Return the possible values of an expression (true, false, null) if the given columns are null."""
        tree = _inlined(tree)
        kind, children = tree.kind, tree.children
        if kind == "AttributeReference":
            name = _name(tree.node)
            if name in null:
                return frozenset({"null"})
            return self._possible(self.made[name], null) if name in self.made else ANY
        if kind == "Alias":
            return self._possible(children[0], null)
        if kind == "Literal":
            value = tree.node["value"]
            return frozenset({"null"}) if value is None else frozenset({"true" if value in (True, "true") else "false"})
        within = [self._possible(child, null) for child in children]
        if kind == "Not":
            return frozenset({"true": "false", "false": "true", "null": "null"}[one] for one in within[0])
        if kind == "Between" and len(children) == 1:
            return within[0]
        if kind in ("And", "Or") and len(within) == 2:
            short, other = ("false", "true") if kind == "And" else ("true", "false")
            results = set()
            for one in within[0]:
                for two in within[1]:
                    results.add(short if short in (one, two) else "null" if "null" in (one, two) else other)
            return frozenset(results)
        if kind == "IsNotNull":
            return frozenset("false" if one == "null" else "true" for one in within[0])
        if kind == "IsNull":
            return frozenset("true" if one == "null" else "false" for one in within[0])
        if kind in _STRICT and children:
            first = within[:1] if kind in ("In", "InSet", "GetStructField") else within[:2]
            if any(one == {"null"} for one in first):
                return frozenset({"null"})
        return ANY

    def _known(self, tree: Tree) -> str:
        """Return the name of a column, and record its type."""
        name = _name(tree.node)
        if tree.node.get("dataType") is not None:
            self.types.setdefault(name, tree.node["dataType"])
        return name


def _sound(node: Node) -> Node:
    """Return a node, after checking that it refers only to columns of its inputs.

    Raises:
        _NoModel: The node refers to another column, such as a hidden column.
    """
    used: set[str] = set(node.needs)
    if isinstance(node, Project):
        used |= {name for _, made in node.made for name in made.columns}
    elif isinstance(node, Deduplication):
        used |= {*node.by}
    elif isinstance(node, WithWatermark):
        used.add(node.column)
    elif isinstance(node, Join):
        used |= {*node.by.times}
    if not used <= {name for one in node.inputs for name in one.columns}:
        raise _NoModel
    return node


def _freed(node: Node, name: str) -> Node:
    """Return a plan with an additional input column, which all operators pass up to the top.

    Raises:
        _NoModel: An aggregation is between the input and the top.
    """
    if name in node.columns:
        return node
    if isinstance(node, Scan):
        return replace(node, has=(*node.has, name))
    if isinstance(node, Aggregation):
        raise _NoModel
    first, *others = node.inputs
    if isinstance(node, Union):
        return replace(node, inputs=(_freed(first, name), *(_freed(one, name) for one in others)))
    inputs = (_freed(first, name), *others)
    if isinstance(node, Project):
        return replace(node, inputs=inputs, made=(*node.made, (name, column(name))))
    return replace(node, inputs=inputs)


def clock_of(kind: str, node: Any) -> str:
    """Return the clock of an operator's timeouts or timers: `EventTime`, `ProcessingTime`, or another text if the
    operator has neither timeouts nor timers.
    """
    clock = node.timeMode() if kind.startswith("TransformWithState") else node.timeout()
    return str(clock.toString()).removesuffix("Timeout").removesuffix("$")


def _streams(operator: PlanOperator) -> list[PlanOperator]:
    return [one for one in operator.inputs if one.node.isStreaming()]


def _name(node: Mapping[str, Any]) -> str:
    return f"{node['name']}#{node['exprId']['id']}"


def _attributes(operator: PlanOperator) -> Iterator[str]:
    firsts = (expression[0] for expression in operator.expressions)
    return (_name(first) for first in firsts if first["class"] == "AttributeReference")


def _inlined(tree: Tree) -> Tree:
    """Return an expression without `With`: each definition replaces its references."""
    if tree.kind != "With" or len(tree.children) != 2:
        return tree
    value = tree.children[1].children[0]

    def inline(one: Tree) -> Tree:
        return value if one.kind == "CommonExpressionRef" else Tree(one.node, [*map(inline, one.children)])

    return inline(tree.children[0])


def _within(tree: Tree) -> Iterator[Tree]:
    yield tree
    for child in tree.children:
        yield from _within(child)


def _columns(tree: Tree) -> Iterator[Tree]:
    return (one for one in _within(tree) if one.kind == "AttributeReference")


def _plain(tree: Tree) -> Any:
    """Return an expression in a canonical form, which is equal for equal expressions."""
    return (tree.kind, tree.node.get("value"), tree.node.get("exprId", {}).get("id"), [*map(_plain, tree.children)])


def _type_of(tree: Tree) -> Any:
    return tree.node.get("dataType") or tree.node.get("toType")


def _delay_us(operator: PlanOperator) -> int:
    name = operator.expressions[0][0]["name"]
    fields = json.loads(operator.node.schema().json())["fields"]
    delays_ms = [one["metadata"][DELAY_MS] for one in fields if DELAY_MS in one["metadata"] and one.get("name") == name]
    if not delays_ms:
        raise _NoModel
    return int(delays_ms[0]) * 1_000


def _linear(tree: Tree) -> tuple[Tree | None, int] | None:
    """Return an expression as a column plus a number of microseconds (None: another expression)."""
    if tree.kind == "AttributeReference":
        return tree, 0
    if tree.kind in ("Cast", "DatetimeAdd", "DatetimeSub") and len(tree.children) == 1:
        return _linear(tree.children[0])
    if tree.kind == "Literal":
        us = _interval_us(tree)
        return None if us is None else (None, us)
    if tree.kind == "UnaryMinus" and (one := _linear(tree.children[0])) is not None and one[0] is None:
        return None, -one[1]
    if tree.kind in _SUMS and len(tree.children) == 2:
        one, other = map(_linear, tree.children)
        if one is None or other is None or (one[0] is not None and other[0] is not None):
            return None
        sign = _SUMS[tree.kind]
        if other[0] is not None and sign < 0:
            return None
        return one[0] or other[0], one[1] + sign * other[1]
    return None


def _interval_us(tree: Tree) -> int | None:
    kind, value = tree.node.get("dataType"), tree.node.get("value")
    if isinstance(kind, str) and kind.startswith("interval") and value is not None:
        if kind == "interval":
            try:
                return microseconds_of("", value)
            except BadInput:
                return None
        return None if kind.endswith(("year", "month")) else int(value)
    return None


def _time_of_window(value: Tree) -> Tree | None:
    """Return the window column of a `window_time` (None: another expression)."""
    kinds: list[str] = []
    tree = value
    while tree.children and tree.kind != "AttributeReference":
        kinds.append(tree.kind)
        tree = tree.children[0]
    expected = ["PreciseTimestampConversion", "Subtract", "PreciseTimestampConversion", "GetStructField"]
    return tree if kinds == expected and tree.kind == "AttributeReference" else None


def _window_of(value: Tree) -> tuple[_Window, Tree] | None:
    """Return the windows that an expression computes, and their time column (None: another expression)."""
    if value.kind != "CreateNamedStruct" or len(value.children) != 4:
        return None
    start, end = value.children[1], value.children[3]
    conversions = [one for one in _within(start) if one.kind == "PreciseTimestampConversion"]
    columns = [*_columns(start)]
    if not conversions or not columns:
        return None
    literals = [one for one in _within(end) if one.kind == "Literal"]
    size = _outer_sum(end)
    if size is not None and len(remainders := _remainders(start)) > 0:
        slide_us, start_us = remainders[0]
        return _Window(size, slide_us, start_us % slide_us), columns[0]
    gaps = [us for one in literals if (us := _gap_us(one)) is not None]
    return (_Window(gaps[0]), columns[0]) if len(gaps) == 1 and gaps[0] > 0 else None


def _gap_us(tree: Tree) -> int | None:
    if (us := _interval_us(tree)) is not None:
        return us
    if tree.node.get("dataType") != "string":
        return None
    try:
        return microseconds_of("", tree.node["value"])
    except BadInput:
        return None


def _outer_sum(tree: Tree) -> int | None:
    """Return the number that a window's end adds to the window's start, from the outermost sum in the end's
    expression.
    """
    while tree.kind in ("KnownNullable", "PreciseTimestampConversion") and tree.children:
        tree = tree.children[0]
    if tree.kind != "Add" or tree.children[1].kind != "Literal":
        return None
    return int(tree.children[1].node["value"])


def _remainders(tree: Tree) -> list[tuple[int, int]]:
    """Return the slide of windows, and the first window's start, from the remainder in the start's expression."""
    found = []
    for one in _within(tree):
        if one.kind == "Remainder" and one.children[1].kind == "Literal":
            offset = one.children[0]
            start = offset.children[1].node.get("value") if offset.kind == "Subtract" else 0
            found.append((int(one.children[1].node["value"]), int(start or 0)))
    return found

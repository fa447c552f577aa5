"""Reads a job's analyzed plan: its durations, watermarks and operators, which decide what is drawn and asked of it.

The operators are walked by py4j; an expression comes as JSON (`TreeNode.toJSON`): a list of its nodes, parents first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ....reference.core.errors import BadInput
from ....reference.spark.durations import UNITS_US, microseconds_of
from ...generators.columns.model import Source

Expression: TypeAlias = Sequence[Mapping[str, Any]]

DELAY_MS = "spark.watermarkDelayMs"
"""The metadata of a column with a watermark."""
_LONGEST_US = 400 * UNITS_US["day"]
_IN_MICROSECONDS = {"PreciseTimestampConversion", "MicrosToTimestamp", "UnixMicros"}
"""Expressions that turn times into microseconds or back; windows by time are resolved to the first."""
_WITH_STATE = "WithState"
"""A part of the names of operators with timeouts or timers: TransformWithState…, FlatMapGroups…WithState."""
_OF_FUNCTION = ("FlatMapGroupsInPandasWithState", "TransformWithStateIn")
"""The beginnings of the names of operators that call a Python function with state."""
_IN_ORDER = ("Project", "Filter")
"""Operators that leave the order of rows as it is."""
_INTEGERS = ("integer", "long")
_COLUMNS = ("AttributeReference", "GetStructField")
_EQUALITIES = ("EqualTo", "EqualNullSafe")
_FUNCTION = "PythonUDF"
_ORDERS = ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual")
_PASS_ON = (
    *("Alias", "IsNotNull", "IsNull", "GetStructField", "CreateNamedStruct", "SortOrder", "AggregateExpression"),
    *("Count", "First", "Last", "Max", "Min", "CollectList", "CollectSet", "PythonUDAF"),
)
"""Expressions that pass a column on as it is, or only count it."""


class EventTime(NamedTuple):
    """The column of a watermark.

    Attributes:
        name: Its name.
        given: The input's column that it comes from, maybe renamed; None: the job derives it.
        beside: All columns of that input.
        delay_us: The watermark's delay, in microseconds; None: the plan has several watermarks below this one.
    """

    name: str
    given: str | None
    beside: Sequence[str]
    delay_us: int | None = None


@dataclass(frozen=True)
class Plan:
    """An analyzed plan.

    Attributes:
        operators: The names of its operators' classes; none where the plan isn't known.
        durations_us: The durations in its expressions and watermarks, in microseconds, sorted.
        delays_us: The delays of its watermarks, in microseconds, sorted.
        event_times: The columns of its watermarks.
        has_function: Whether a Python function with state is among its operators.
        ends_in_function: Whether such a function makes the rows of its result, in this order.
        by_processing_time: Whether it has timeouts or timers of processing time.
        by_event_time: Whether it has a function with timeouts or timers of event time.
        initial_keys: Of each initial state of an operator, the ids of the columns by which both are grouped.
        equated: The ids of the columns that a join compares for equality with another column of the same name.
        computed: The names of the columns that an expression computes with: compares with a value, takes apart, casts.
        thresholds: The names of the columns that are compared with a number by `<`, `<=`, `>` or `>=`, each with it.
        in_functions: The names of the columns that Python functions are given, and so may compute with.
    """

    operators: frozenset[str] = frozenset()
    durations_us: Sequence[int] = ()
    delays_us: Sequence[int] = ()
    event_times: Sequence[EventTime] = ()
    has_function: bool = False
    ends_in_function: bool = False
    by_processing_time: bool = False
    by_event_time: bool = False
    initial_keys: Sequence[frozenset[int]] = ()
    equated: frozenset[int] = frozenset()
    computed: frozenset[str] = frozenset()
    in_functions: frozenset[str] = frozenset()
    thresholds: frozenset[tuple[str, str]] = frozenset()


def plan_of(analyzed: Any) -> Plan:
    """Read an analyzed plan, such as `frame._jdf.queryExecution().analyzed()`."""
    nodes = [(class_of(node), node) for node in _walk(analyzed)]
    expressions = [_read(expression) for _, node in nodes for expression in members(node.expressions())]
    watermarks = [node for name, node in nodes if name == "EventTimeWatermark"]
    delays_us = {delay_us for node in watermarks for delay_us in _delays_us(node)}
    durations_us = {*delays_us, *(duration_us for each in expressions for duration_us in _durations_us(each))}
    inputs = [node for name, node in nodes if name.startswith("StreamingRelation")]
    clocks = {_clock(name, node) for name, node in nodes if _WITH_STATE in name}
    return Plan(
        operators=frozenset(name for name, _ in nodes),
        durations_us=sorted(duration_us for duration_us in durations_us if 0 < duration_us <= _LONGEST_US),
        delays_us=sorted(delays_us),
        event_times=_event_times(watermarks, inputs, expressions),
        has_function=any(name.startswith(_OF_FUNCTION) for name, _ in nodes),
        ends_in_function=next(name for name, _ in nodes if name not in _IN_ORDER).startswith(_OF_FUNCTION),
        by_processing_time="ProcessingTime" in clocks,
        by_event_time="EventTime" in clocks,
        initial_keys=[
            _origins(_initial_key(node), expressions) for name, node in nodes if _has_initial_state(name, node)
        ],
        equated=_origins((id for name, node in nodes if name == "Join" for id in _equated(node)), expressions),
        computed=_computed(expressions, lambda parent: parent != _FUNCTION),
        thresholds=frozenset(pair for each in expressions for pair in _thresholds(each)),
        in_functions=_computed(expressions, lambda parent: parent == _FUNCTION),
    )


def delays_by_input(plan: Plan, sources: Sequence[Source]) -> dict[str, int] | None:
    """Return the delay of each input's watermark, in microseconds; None: the plan doesn't tell which is which."""
    found = {}
    for source in sources:
        names = [*source.wire_schema.names]
        delays_us = {time.delay_us for time in plan.event_times if [*time.beside] == names}
        if len(delays_us) != 1 or (delay_us := delays_us.pop()) is None:
            return None
        found[source.name] = delay_us
    return found


def members(sequence: Any) -> Iterator[Any]:
    """Yield the members of a sequence of Scala's."""
    return (sequence.apply(index) for index in range(sequence.size()))


def class_of(node: Any) -> str:
    """Return the name of an operator's or an expression's class."""
    return str(node.getClass().getSimpleName())


def _walk(plan: Any) -> Iterator[Any]:
    yield plan
    for below in (plan.children(), plan.subqueries()):
        for node in members(below):
            yield from _walk(node)


def _read(expression: Any) -> Expression:
    nodes: list[dict[str, Any]] = json.loads(expression.toJSON())
    return [{**node, "class": node["class"].rpartition(".")[2]} for node in nodes]


def _delays_us(watermark: Any) -> Iterator[int]:
    for column in json.loads(watermark.schema().json())["fields"]:
        if DELAY_MS in column["metadata"]:
            yield column["metadata"][DELAY_MS] * 1_000


def _durations_us(expression: Expression) -> Iterator[int]:
    in_microseconds = any(node["class"] in _IN_MICROSECONDS for node in expression)
    for node in expression:
        if node["class"] != "Literal" or node["value"] is None:
            continue
        kind, value = node["dataType"], node["value"]
        if kind in _INTEGERS:
            # Event times are whole milliseconds; a window's arithmetic has other numbers, such as 1.
            if in_microseconds and int(value) % 1_000 == 0:
                yield abs(int(value))
        elif kind in ("string", "interval"):
            yield from _duration_us(value)
        elif isinstance(kind, str) and kind.startswith("interval") and not kind.endswith(("year", "month")):
            yield abs(int(value))


def _duration_us(text: str) -> Iterator[int]:
    try:
        yield abs(microseconds_of("", text))
    except BadInput:
        return  # another text, or an interval without a fixed length


def _event_times(
    watermarks: Iterable[Any], inputs: Iterable[Any], expressions: Iterable[Expression]
) -> list[EventTime]:
    given: dict[int, tuple[str, list[str]]] = {}
    for node in inputs:
        columns = [_read(column)[0] for column in members(node.output())]
        names = [column["name"] for column in columns]
        given |= {_id(column): (column["name"], names) for column in columns}
    times = []
    for watermark in watermarks:
        column = _read(watermark.eventTime())[0]
        (origin,) = _origins([_id(column)], expressions)
        delays_us = [*_delays_us(watermark)]
        time = EventTime(column["name"], *given.get(origin, (None, ())))
        times.append(time._replace(delay_us=delays_us[0] if len(delays_us) == 1 else None))
    return times


def _origins(columns: Iterable[int], expressions: Iterable[Expression]) -> frozenset[int]:
    """Return the ids of the columns that columns come from, maybe renamed."""
    renamed = {
        _id(nodes[0]): _id(nodes[1])
        for nodes in expressions
        if [node["class"] for node in nodes] == ["Alias", "AttributeReference"]
    }
    origins = set()
    for origin in columns:
        while origin in renamed:
            origin = renamed[origin]
        origins.add(origin)
    return frozenset(origins)


def _computed(expressions: Sequence[Expression], counts: Callable[[str], bool]) -> frozenset[str]:
    """Return the names of the columns, as they were before any renaming, that an expression computes with.

    Args:
        expressions: The plan's expressions.
        counts: Takes the class of the expression that has the column; returns whether it counts.
    """
    names = {_id(node): node["name"] for each in expressions for node in each if "exprId" in node and "name" in node}
    used: set[int] = set()
    fields: set[str] = set()
    for expression in expressions:
        for node, parent, siblings in _with_parents(expression):
            if parent is None or parent["class"] in _PASS_ON or not counts(parent["class"]):
                continue
            if parent["class"] in _EQUALITIES and all(other["class"] in _COLUMNS for other in siblings):
                continue  # the keys of two inputs
            if node["class"] == "AttributeReference":
                used.add(_id(node))
            elif node["class"] == "GetStructField" and isinstance(node.get("name"), str):
                fields.add(node["name"])
    origins = {names[origin] for origin in _origins(used, expressions) if origin in names}
    return frozenset(name.lower() for name in origins | fields)


def _thresholds(expression: Expression) -> Iterator[tuple[str, str]]:
    """Yield the columns that an expression compares with a number, each with the number."""
    for number, node in enumerate(expression):
        if node["class"] not in _ORDERS:
            continue
        sides = [each for each in expression[number + 1 : number + 5] if each["class"] != "Cast"][:2]
        columns = [side["name"] for side in sides if side["class"] == "AttributeReference"]
        numbers = [side["value"] for side in sides if side["class"] == "Literal" and _is_number(side["dataType"])]
        if len(columns) == len(numbers) == 1 and numbers[0] is not None:
            yield columns[0], str(numbers[0])


def _is_number(kind: Any) -> bool:
    return isinstance(kind, str) and kind.startswith(("byte", "short", "integer", "long", "float", "double", "decimal"))


def _with_parents(
    expression: Expression,
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any] | None, list[Mapping[str, Any]]]]:
    """Yield the nodes of an expression, each with its parent and with all children of that."""
    children: dict[int, list[Mapping[str, Any]]] = {}
    parents: list[Mapping[str, Any] | None] = []
    waiting: list[tuple[int, int]] = []  # the nodes whose children follow, and how many
    for number, node in enumerate(expression):
        parent = None
        if waiting:
            of, left = waiting.pop()
            parent = expression[of]
            children.setdefault(of, []).append(node)
            if left > 1:
                waiting.append((of, left - 1))
        parents.append(parent)
        if node["num-children"]:
            waiting.append((number, node["num-children"]))
    places = {id(node): number for number, node in enumerate(expression)}
    for node, parent in zip(expression, parents, strict=True):
        yield node, parent, children[places[id(parent)]] if parent is not None else []


def _id(column: Mapping[str, Any]) -> int:
    number: int = column["exprId"]["id"]
    return number


def _has_initial_state(name: str, node: Any) -> bool:
    return name.startswith("TransformWithState") and bool(node.hasInitialState())


def _initial_key(node: Any) -> list[int]:
    pairs = zip(members(node.children().apply(0).output()), members(node.initialState().output()), strict=False)
    both = [pair for pair, _ in zip(pairs, range(node.initGroupingAttrsLen()), strict=False)]
    return [initial.exprId().id() for own, initial in both if own.name().lower() == initial.name().lower()]


def _equated(join: Any) -> Iterator[int]:
    for condition in (_read(expression) for expression in members(join.expressions())):
        for number, node in enumerate(condition):
            sides = condition[number + 1 : number + 3]
            if node["class"] != "EqualTo" or {side["class"] for side in sides} != {"AttributeReference"}:
                continue
            if sides[0]["name"].lower() == sides[1]["name"].lower():
                yield from map(_id, sides)


def _clock(name: str, node: Any) -> str:
    """Return the clock of an operator's timeouts or timers: `EventTime`, `ProcessingTime` or another text for none."""
    clock = node.timeMode() if name.startswith("TransformWithState") else node.timeout()
    return str(clock.toString()).removesuffix("Timeout").removesuffix("$")

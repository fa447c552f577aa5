"""Reads a job's analyzed plan: durations, watermarks and operators, which determine the drawn histories and the laws.

An expression arrives as JSON (`TreeNode.toJSON`): a list of its nodes, parents first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .....reference.core.durations import UNITS_US, microseconds_of
from .....reference.core.errors import BadInput
from ....generators.columns.forms.envelopes import ENVELOPES
from ....generators.columns.model import Source
from ....generators.columns.terms import Term
from .expressions import DELAY_MS, JsonExpression, Tree, comparisons_of, read_expression, trees_of
from .skeletons import OF_FUNCTION, PlanOperator, Skeleton, clock_of, skeleton_of

SESSION = "session_window"
"""The name of a session window's column in Spark's plans, also if the job renames the column."""
_LONGEST_US = 400 * UNITS_US["day"]
_IN_MICROSECONDS = {"PreciseTimestampConversion", "MicrosToTimestamp", "UnixMicros"}
"""Expressions that convert times to microseconds or back; `PreciseTimestampConversion` is part of time windows."""
_WITH_STATE = "WithState"
"""A part of the names of operators with timeouts or timers: TransformWithState…, FlatMapGroups…WithState."""
_IN_ORDER = ("Project", "Filter", "SubqueryAlias", "View")
"""Operators that keep the order of rows."""
_INTEGERS = ("integer", "long")
_COLUMNS = ("AttributeReference", "GetStructField")
_EQUALITIES = ("EqualTo", "EqualNullSafe")
_IN_SUBQUERY, _SUBQUERY = "InSubquery", ("Subquery", "ListQuery")
_FUNCTION = "PythonUDF"
_ORDERS = ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual")
_PASS_ON = (
    *("Alias", "IsNotNull", "IsNull", "GetStructField", "CreateNamedStruct", "SortOrder", "AggregateExpression"),
    *("Count", "First", "Last", "Max", "Min", "CollectList", "CollectSet", "PythonUDAF"),
)
"""Expressions that pass a column on unchanged, or only count it."""

_CLOCK = ("CurrentTimestamp", "CurrentDate", "Now", "LocalTimestamp", "CurrentTime", "CurrentBatchTimestamp")
_NONDETERMINISTIC = (
    *("Uuid", "Rand", "Randn", "RandStr", "Uniform", "Shuffle", "InputFileName", "InputFileBlockStart"),
    *("InputFileBlockLength", "MonotonicallyIncreasingID", "SparkPartitionID"),
)
_METADATA = "_metadata"
"""The hidden column of files, whose fields are paths, sizes and times of files."""
_INEXACT = (
    *("StddevSamp", "StddevPop", "VarianceSamp", "VariancePop", "Skewness", "Kurtosis", "Corr", "CovSample"),
    *("CovPopulation", "RegrSlope", "RegrIntercept", "RegrR2", "RegrSXX", "RegrSXY", "RegrSYY"),
)
"""Aggregates whose last digits depend on the order of rows, even for whole numbers."""


class WatermarkColumn(NamedTuple):
    """The column of a watermark.

    Attributes:
        name: Its name.
        given: The original column of the input, maybe renamed (None: the job computes the column).
        beside: All columns of that input.
        delay_us: The watermark's delay in µs (None: several watermarks precede this watermark in the plan).
        is_of_clock: Whether the column derives from the processing time of a batch.
    """

    name: str
    given: str | None
    beside: Sequence[str]
    delay_us: int | None = None
    is_of_clock: bool = False


@dataclass(frozen=True)
class Plan:
    """An analyzed plan.

    Attributes:
        operators: The class names of the plan's operators; empty if the plan is unknown.
        sources: The columns of each streaming source, in the order of a checkpoint's numbers.
        durations_us: The durations in the plan's expressions and watermarks (µs), sorted.
        delays_us: The delays of the plan's watermarks (µs), sorted.
        event_times: The columns of the plan's watermarks.
        has_function: Whether a Python function with state is among the plan's operators.
        ends_in_function: Whether a Python function with state returns the rows of the result, in the function's order.
        by_processing_time: Whether the plan uses timeouts or timers of processing time.
        by_event_time: Whether a function uses timeouts or timers of event time.
        initial_keys: The ids of the grouping columns of each initial state of an operator.
        looked_up: For each equality of a stream's column with a static column, as in a lookup: the name of the stream's
            column in lower case, and the id of the static column (None: a computed column).
        computed: The names of the columns in computations: comparisons with a value, extractions, casts.
        comparisons: The comparisons of columns with constants, as terms.
        thresholds: The names of other columns compared with a number by `<`, `<=`, `>` or `>=`, each with the number.
        in_functions: The names of the columns passed to Python functions, which may compute with them.
        inexact: The aggregates whose last digits depend on the order of rows, such as `StddevSamp`.
        nondeterministic: The result columns that vary between runs: random values, files and partitions, and Python
            functions declared as nondeterministic.
        of_clock: The result columns with the processing time of a batch.
        of_places: The result columns with a record's position in its stream, such as Kafka's offset.
        renamed: The result columns that rename a source's column, each with the original name.
        skeleton: The plan's translation into plans of the reference (None: unknown).
    """

    operators: frozenset[str] = frozenset()
    sources: Sequence[Sequence[str]] = ()
    durations_us: Sequence[int] = ()
    delays_us: Sequence[int] = ()
    event_times: Sequence[WatermarkColumn] = ()
    has_function: bool = False
    ends_in_function: bool = False
    by_processing_time: bool = False
    by_event_time: bool = False
    initial_keys: Sequence[frozenset[int]] = ()
    looked_up: frozenset[tuple[str, int | None]] = frozenset()
    computed: frozenset[str] = frozenset()
    in_functions: frozenset[str] = frozenset()
    comparisons: Sequence[Term] = ()
    thresholds: frozenset[tuple[str, str]] = frozenset()
    inexact: frozenset[str] = frozenset()
    nondeterministic: frozenset[str] = frozenset()
    of_clock: frozenset[str] = frozenset()
    of_places: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    skeleton: Skeleton | None = None


def operators_of(analyzed: Any) -> frozenset[str]:
    """Return the names of a plan's operators, without reading their expressions, which is slow."""
    return frozenset(map(class_of, walk(analyzed)))


def plan_of(analyzed: Any, clock: str = "", mode: str = "", policy: str = "min") -> Plan:
    """Read an analyzed plan, such as `frame._jdf.queryExecution().analyzed()`.

    Args:
        analyzed: The plan.
        clock: The marker column of the check's own rows, which the skeleton leaves out; empty: no such rows.
        mode: The query's output mode, which the skeleton depends on; empty: the mode is unknown, so no skeleton.
        policy: The rule that combines several inputs' watermarks into the query's watermark, `max` or `min`.
    """
    operators: list[PlanOperator] = []
    root = _read(analyzed, operators)
    nodes = [(one.kind, one.node) for one in operators]
    expressions = [expression for one in operators for expression in one.expressions]
    watermarks = [node for name, node in nodes if name == "EventTimeWatermark"]
    delays_us = {delay_us for node in watermarks for delay_us in _delays_us(node)}
    durations_us = {*delays_us, *(duration_us for each in expressions for duration_us in _durations_us(each))}
    relations = [node for name, node in nodes if name.startswith("StreamingRelation")]
    sources = [[read_expression(column)[0] for column in members(node.output())] for node in relations]
    by_expression = [trees_of(expression) for expression in expressions]
    trees = [tree for of_one in by_expression for tree in of_one]
    given = {_id(column): (tuple(_names(columns)), column["name"]) for columns in sources for column in columns}
    compared = [*comparisons_of(by_expression, given, columns_beside(nodes), session_zone())]
    computed, in_functions = _computed(trees, expressions)
    places = {number for columns in sources for number in _places(columns)}
    clocks = {clock_of(name, node) for name, node in nodes if _WITH_STATE in name}
    return Plan(
        operators=frozenset(name for name, _ in nodes),
        sources=[_names(columns) for columns in sources],
        durations_us=sorted(duration_us for duration_us in durations_us if 0 < duration_us <= _LONGEST_US),
        delays_us=sorted(delays_us),
        event_times=_event_times(watermarks, sources, expressions),
        has_function=any(name.startswith(OF_FUNCTION) for name, _ in nodes),
        ends_in_function=next(name for name, _ in nodes if name not in _IN_ORDER).startswith(OF_FUNCTION),
        by_processing_time="ProcessingTime" in clocks,
        by_event_time="EventTime" in clocks,
        initial_keys=[
            _origins(_initial_key(node), expressions) for name, node in nodes if _has_initial_state(name, node)
        ],
        looked_up=_looked_up(nodes, trees, expressions),
        computed=computed,
        comparisons=[term for _, term in compared],
        thresholds=frozenset(_thresholds(trees, {id(tree) for tree, _ in compared})),
        in_functions=in_functions,
        inexact=frozenset(tree.kind for tree in trees if tree.kind in _INEXACT),
        nondeterministic=_columns_of(analyzed, expressions, _is_nondeterministic),
        of_places=_columns_of(analyzed, expressions, lambda node: False, places),
        of_clock=_columns_of(analyzed, expressions, _is_of_clock),
        renamed=_renamed(analyzed, expressions, given),
        skeleton=skeleton_of(root, clock, mode, policy) if mode else None,
    )


def _read(node: Any, found: list[PlanOperator]) -> PlanOperator:
    """Read an operator and its descendants, and add them to the found operators, parents first, subqueries last."""
    expressions = [read_expression(expression) for expression in members(node.expressions())]
    operator = PlanOperator(class_of(node), node, expressions)
    found.append(operator)
    operator.inputs.extend(_read(child, found) for child in members(node.children()))
    for subquery in members(node.subqueries()):
        _read(subquery, found)
    return operator


def delays_by_input(plan: Plan, sources: Sequence[Source]) -> dict[str, int] | None:
    """Return the watermark delay of each input in µs (None: the plan doesn't assign the delays to inputs)."""
    found = {}
    for source in sources:
        names = [*source.wire_schema.names]
        delays_us = {time.delay_us for time in plan.event_times if [*time.beside] == names}
        if len(delays_us) != 1 or (delay_us := delays_us.pop()) is None:
            return None
        found[source.name] = delay_us
    return found


def members(sequence: Any) -> Iterator[Any]:
    """Yield the members of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))


def nodes_of(tree: Tree) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a tree, parents first."""
    yield tree.node
    for child in tree.children:
        yield from nodes_of(child)


def class_of(node: Any) -> str:
    """Return the name of an operator's or an expression's class."""
    return str(node.getClass().getSimpleName())


def walk(plan: Any) -> Iterator[Any]:
    """Yield the nodes of a plan and of its subqueries, parents first."""
    yield plan
    for below in (plan.children(), plan.subqueries()):
        for node in members(below):
            yield from walk(node)


def _delays_us(watermark: Any) -> Iterator[int]:
    for column in json.loads(watermark.schema().json())["fields"]:
        if DELAY_MS in column["metadata"]:
            yield column["metadata"][DELAY_MS] * 1_000


def _durations_us(expression: JsonExpression) -> Iterator[int]:
    in_microseconds = any(node["class"] in _IN_MICROSECONDS for node in expression)
    for node in expression:
        if node["class"] != "Literal" or node["value"] is None:
            continue
        kind, value = node["dataType"], node["value"]
        if kind in _INTEGERS:
            # Durations are whole milliseconds; other numbers, such as 1, belong to Spark's computation of windows.
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
        return  # the text is no interval, or its length isn't fixed


def _event_times(
    watermarks: Iterable[Any], sources: Iterable[JsonExpression], expressions: Iterable[JsonExpression]
) -> list[WatermarkColumn]:
    given = {_id(column): (column["name"], _names(columns)) for columns in sources for column in columns}
    of_clock = _made_of([*expressions], _is_of_clock)
    times = []
    for watermark in watermarks:
        column = read_expression(watermark.eventTime())[0]
        (origin,) = _origins([_id(column)], expressions)
        delays_us = [*_delays_us(watermark)]
        time = WatermarkColumn(column["name"], *given.get(origin, (None, ())))
        delay_us = delays_us[0] if len(delays_us) == 1 else None
        times.append(time._replace(delay_us=delay_us, is_of_clock=_id(column) in of_clock))
    return times


def columns_beside(nodes: Iterable[tuple[str, Any]]) -> dict[int, list[int]]:
    """Return the ids of the columns in a union's further inputs, by the id of the union's column."""
    beside: dict[int, list[int]] = {}
    for union in (node for name, node in nodes if name == "Union"):
        first, *others = (
            [column.exprId().id() for column in members(one.output())] for one in members(union.children())
        )
        for number, ids in zip(first, zip(*others, strict=False), strict=False):
            beside[number] = [*ids]
    return beside


def session_zone() -> str:
    """Return the time zone of the active session, or UTC without a session."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    return "UTC" if session is None else str(session.conf.get("spark.sql.session.timeZone"))


def _names(columns: JsonExpression) -> list[str]:
    return [column["name"] for column in columns]


def _origins(columns: Iterable[int], expressions: Iterable[JsonExpression]) -> frozenset[int]:
    """Return the ids of the original columns of renamed columns; other columns keep their ids."""
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


def _computed(trees: Iterable[Tree], expressions: Sequence[JsonExpression]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the columns in computations of expressions, and in arguments of Python functions.

    A name is the column's original name, in lower case.
    """
    names = {_id(node): node["name"] for each in expressions for node in each if "exprId" in node and "name" in node}
    ids: tuple[set[int], set[int]] = (set(), set())
    fields: tuple[set[str], set[str]] = (set(), set())
    for tree in trees:
        is_of_inputs = tree.kind in _EQUALITIES and all(child.kind in _COLUMNS for child in tree.children)
        if tree.kind in _PASS_ON or is_of_inputs:
            continue
        for child in tree.children:
            if child.kind == "AttributeReference":
                ids[tree.kind == _FUNCTION].add(_id(child.node))
            elif child.kind == "GetStructField" and isinstance(child.node.get("name"), str):
                fields[tree.kind == _FUNCTION].add(child.node["name"])
    computed, given = (
        frozenset(name.lower() for name in {names[one] for one in _origins(some, expressions) if one in names} | within)
        for some, within in zip(ids, fields, strict=True)
    )
    return computed, given


def _thresholds(trees: Iterable[Tree], followed: Collection[int]) -> Iterator[tuple[str, str]]:
    """Yield the columns that expressions compare with a number, each with the number.

    Args:
        trees: All expressions.
        followed: The ids of the expressions that the caller has traced back to input columns.
    """
    for tree in trees:
        if tree.kind not in _ORDERS or id(tree) in followed:
            continue
        sides = [child.children[0] if child.kind == "Cast" else child for child in tree.children]
        columns = [side.node["name"] for side in sides if side.kind == "AttributeReference"]
        numbers = [side.node["value"] for side in sides if side.kind == "Literal" and _is_number(side.node["dataType"])]
        if len(columns) == len(numbers) == 1 and numbers[0] is not None:
            yield columns[0], str(numbers[0])


def _is_number(kind: Any) -> bool:
    return isinstance(kind, str) and kind.startswith(("byte", "short", "integer", "long", "float", "double", "decimal"))


def _id(column: Mapping[str, Any]) -> int:
    number: int = column["exprId"]["id"]
    return number


def _has_initial_state(name: str, node: Any) -> bool:
    return name.startswith("TransformWithState") and bool(node.hasInitialState())


def _initial_key(node: Any) -> list[int]:
    pairs = zip(members(node.children().apply(0).output()), members(node.initialState().output()), strict=False)
    both = [pair for pair, _ in zip(pairs, range(node.initGroupingAttrsLen()), strict=False)]
    return [initial.exprId().id() for own, initial in both if own.name().lower() == initial.name().lower()]


def _looked_up(
    nodes: Sequence[tuple[str, Any]], trees: Iterable[Tree], expressions: Sequence[JsonExpression]
) -> frozenset[tuple[str, int | None]]:
    """Return the columns of streams that a plan looks up in static relations, in the form of `Plan.looked_up`."""
    below = [child for name, node in nodes if name == "Join" for child in members(node.children())]
    below += [plan for _, node in nodes for plan in members(node.subqueries())]
    unmoved = [plan for plan in below if not plan.isStreaming()]
    if not unmoved:
        return frozenset()
    outputs = (node.output() for plan in unmoved for node in walk(plan))
    fixed = {column.exprId().id() for output in outputs for column in members(output)}
    made = {_id(nodes[0]): _ids(nodes[1:]) for nodes in expressions if nodes[0]["class"] == "Alias"}
    names = {_id(node): node["name"] for each in expressions for node in each if "exprId" in node and "name" in node}

    def is_fixed(number: int) -> bool:
        return number in fixed or (bool(made.get(number)) and all(map(is_fixed, made[number])))

    found: set[tuple[str, int | None]] = set()
    for tree in trees:
        if tree.kind not in (*_EQUALITIES, _IN_SUBQUERY):
            continue
        sides = [(child, _ids(nodes_of(child))) for child in tree.children]
        others = [child for child, ids in sides if child.kind.endswith(_SUBQUERY) or (ids and all(map(is_fixed, ids)))]
        for child, ids in sides:
            moving = [number for number in ids if not is_fixed(number)]
            if not others or child in others:
                continue
            other = others[0] if len(sides) == 2 and others[0].kind == "AttributeReference" else None
            (own,) = [None] if other is None or child.kind not in _COLUMNS else _origins([_id(other.node)], expressions)
            columns = {names[one] for one in _origins(moving, expressions) if one in names}
            columns |= {node.get("name") for node in nodes_of(child) if node["class"] == "GetStructField"} - {None}
            found |= {(str(name).lower(), own) for name in columns}
    return frozenset(found)


def _columns_of(
    analyzed: Any,
    expressions: Sequence[JsonExpression],
    holds: Callable[[Mapping[str, Any]], bool],
    given: Collection[int] = (),
) -> frozenset[str]:
    """Return the names of the columns that derive from an expression with a given property, such as a random value.

    Args:
        analyzed: The plan.
        expressions: Its expressions.
        holds: Returns whether an expression's node has the property.
        given: The ids of the source columns that have the property, too.
    """
    found = _made_of(expressions, holds, given)
    if not found:
        return frozenset()
    return frozenset(str(column.name()) for column in members(analyzed.output()) if column.exprId().id() in found)


def _made_of(
    expressions: Sequence[JsonExpression], holds: Callable[[Mapping[str, Any]], bool], given: Collection[int] = ()
) -> set[int]:
    """Return the ids of the columns that derive from an expression node with the given property, or from the given
    columns.
    """
    made = {_id(nodes[0]): nodes[1:] for nodes in expressions if nodes[0]["class"] == "Alias"}
    found = {*given, *(number for number, nodes in made.items() if any(map(holds, nodes)))}
    grown = True
    while grown:
        more = {number for number, nodes in made.items() if not found.isdisjoint(_ids(nodes))} - found
        found, grown = found | more, bool(more)
    return found


def _places(columns: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """Yield the ids of a source's columns with a record's position in its stream."""
    names = {column["name"] for column in columns}
    for envelope in ENVELOPES.values():
        if names >= {*envelope.columns.names}:
            yield from (_id(column) for column in columns if column["name"] in envelope.places)


def _renamed(
    analyzed: Any, expressions: Sequence[JsonExpression], given: Mapping[int, tuple[tuple[str, ...], str]]
) -> dict[str, str]:
    """Return a plan's columns that rename a source's column, in the form of `Plan.renamed`."""
    found = {}
    for column in members(analyzed.output()):
        (origin,) = _origins([column.exprId().id()], expressions)
        if origin in given and given[origin][1] != column.name():
            found[str(column.name())] = given[origin][1]
    return found


def _is_of_clock(node: Mapping[str, Any]) -> bool:
    return node["class"] in _CLOCK


def _is_nondeterministic(node: Mapping[str, Any]) -> bool:
    kind = node["class"]
    if kind == "AttributeReference":
        return bool(node["name"] == _METADATA)
    return kind in _NONDETERMINISTIC or (kind.startswith(_FUNCTION) and node.get("udfDeterministic") is False)


def _ids(nodes: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the ids of the columns that an expression refers to."""
    return [_id(node) for node in nodes if node["class"] == "AttributeReference"]

"""Converts plans to PySpark code; the fuzzer runs the same code that its reports show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....reference.spark.aggregates import AggregateFunction, Row
from ....reference.spark.expressions import Expression
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
from ....reference.spark.subtraction import Subtraction
from ....reference.spark.windows import Windows

TABLE = "table"
"""The variable of the static table."""
_PROCESSOR = """\
class Counting(streaming.StatefulProcessor):
    def init(self, handle): self.timer, self.n = handle.registerTimer, handle.getValueState("n", "n int")
    def handleInputRows(self, key, rows, times):
        n = (self.n.get() or self.timer(times.getCurrentWatermarkInMs() + {wait_ms}) or [0])[0] + len([*rows])
        yield self.n.update((n,)) or Row(h=key[0], k=key[1], v=n)
    def handleExpiredTimer(self, key, **_): yield Row(h=key[0], k=key[1], v=-(self.n.get(), self.n.clear())[0][0])
"""
"""The Python code of the processor of `Processing`, without its timer's wait: it counts rows by history and key."""


def sql(expression: Expression) -> str:
    """Return an expression in Spark SQL."""
    inputs = [sql(one) if one.function in ("column", "constant") else f"({sql(one)})" for one in expression.inputs]
    match expression.function:
        case "column":
            return expression.name
        case "constant":
            return _constant(expression.value)
        case "is null" | "is not null":
            return f"{inputs[0]} {expression.function}"
        case "as timestamp":
            return "cast(null as timestamp)"
        case "not":
            return f"not {inputs[0]}"
        case "case":
            *pairs, other = map(sql, expression.inputs)
            cases = "".join(f" when {when} then {then}" for when, then in zip(pairs[::2], pairs[1::2], strict=True))
            return f"case{cases} else {other} end"
        case "coalesce" | "upper" | "lower":
            return f"{expression.function}({', '.join(map(sql, expression.inputs))})"
    return f" {expression.function} ".join(inputs)


def _constant(value: object) -> str:
    if value is None:
        return "cast(null as int)"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def seconds(duration_us: int) -> str:
    """Return a duration in Spark's syntax."""
    return f"{duration_us / 1_000_000:g} seconds"


def pyspark(node: Node, variables: Mapping[int, str] | None = None) -> str:
    """Return a plan as an expression in Python.

    Args:
        node: The plan.
        variables: The names of variables that contain parts of the plan, by the `id` of the part's top node.
    """
    held = variables or {}
    below = [held.get(id(one)) or pyspark(one, held) for one in node.inputs]
    match node:
        case Scan():
            return node.name
        case Union():
            return f"{below[0]}.union({below[1]})"
        case Join():
            return f'{below[0]}.join({below[1]}, F.expr("{_condition(node)}"), "{node.by.join}")'
    return f"{below[0]}{_call(node)}"


def _call(node: Node) -> str:
    match node:
        case WithWatermark():
            return f'.withWatermark("{node.column}", "{seconds(node.delay_us)}")'
        case Project():
            return f".selectExpr({', '.join(_named(name, made) for name, made in node.made)})"
        case Filter():
            return f'.where("{sql(node.condition)}")'
        case Explode():
            exploded = f"explode(array({', '.join(map(sql, node.values))})) as {node.column}"
            return f".selectExpr({_strings(exploded if name == node.column else name for name in node.columns)})"
        case Lookup():
            keys = zip(node.join.keys, node.join.table_keys, strict=True)
            condition = " and ".join(f"{one} = {other}" for one, other in keys)
            return f'.join({TABLE}, F.expr("{condition}"), "{node.join.join}")' + _without(node)
        case Limit():
            return f".limit({node.rows})"
        case Subtraction():
            return f'.subtract({TABLE}.selectExpr("x as h", "tk as k"))'
        case Deduplication():
            within = "WithinWatermark" * node.within_watermark
            return f".dropDuplicates{within}([{_strings(node.by)}])"
        case Aggregation():
            return _aggregation(node)
        case Processing():
            given = 'Counting(), "h int, k string, v int", "append", "eventTime"'
            return f".groupBy({_strings(node.by.keys)}).transformWithState({given})"
    raise TypeError(f"{type(node).__name__} has no text")


def _without(node: Lookup) -> str:
    if node.join.join in ("left_semi", "left_anti") or set(node.join.added) == {*node.join.table[0]}:
        return ""
    return f".selectExpr({_strings(node.columns)})"


def _strings(texts: object) -> str:
    return ", ".join(f'"{text}"' for text in texts)  # type: ignore[attr-defined]


def _named(name: str, made: Expression) -> str:
    text = sql(made)
    return f'"{name}"' if text == name else f'"{text} as {name}"'


def _aggregation(node: Aggregation) -> str:
    by = node.by
    aggregated = ", ".join(f'F.expr("{_aggregate(name, one)}")' for name, one in by.aggregates.items())
    if isinstance(by, Groups):
        grouped = f".groupBy({_strings(by.columns)}).agg({aggregated})"
        return grouped + f".selectExpr({_strings(node.columns)})" * (not by.columns)
    if isinstance(by, Windows):
        slide = f', "{seconds(by.slide_us)}"' * (by.slide_us != by.size_us)
        window, name = f'F.window("{by.time}", "{seconds(by.size_us)}"{slide})', "window"
    else:
        window, name = f'F.session_window("{by.time}", "{seconds(by.gap_us)}")', "session_window"
    columns = [f"window_time({name}) as {one}" if one == node.time else one for one in node.columns]
    return f".groupBy({_strings(by.keys)}, {window}).agg({aggregated}).selectExpr({_strings(columns)})"


def _aggregate(name: str, aggregate: AggregateFunction) -> str:
    if aggregate.column is None:
        return f"cast(count(*) as int) as {name}"
    of = f"{aggregate.function}({aggregate.column})"
    return f"cast({of} as int) as {name}" if aggregate.function in ("sum", "count") else f"{of} as {name}"


def _condition(node: Join) -> str:
    by = node.by
    parts = [f"{one} = {other}" for one, other in zip(*by.keys, strict=True)]
    left, right = by.times
    if by.before_us is not None and by.after_us is not None:
        first, last = (
            f"{left} {sign} interval {seconds(us)}" for sign, us in zip("-+", (by.before_us, by.after_us), strict=True)
        )
        parts.append(f"{right} between {first} and {last}")
    elif by.before_us is not None:
        parts.append(f"{right} >= {left} - interval {seconds(by.before_us)}")
    elif by.after_us is not None:
        parts.append(f"{right} <= {left} + interval {seconds(by.after_us)}")
    return " and ".join(parts)


def processor(*plans: Node) -> str:
    """Return the Python class of the plans' functions with state, which use the same timer; empty if the plans have
    none.
    """
    waits_ms = {node.by.wait_ms for plan in plans for node in plan.walk() if isinstance(node, Processing)}
    return "".join(_PROCESSOR.replace("{wait_ms}", str(wait_ms)) for wait_ms in waits_ms)


def statements(plan: Node, most: int = 100, variables: Mapping[int, str] | None = None) -> list[str]:
    """Return a plan as statements of Python, the last of which assigns the result to `result`.

    Args:
        plan: The plan.
        most: The maximum length of an expression; a longer expression is split between operators.
        variables: As in `pyspark`.
    """
    held = dict(variables or {})
    lines: list[str] = []

    def put(node: Node) -> None:
        if id(node) in held or isinstance(node, Scan):
            return
        for one in node.inputs:
            put(one)
        inputs = [one for one in node.inputs if not isinstance(one, Scan)]
        for one in sorted(inputs, key=lambda one: -len(pyspark(one, held))):
            shared = sum(one is below for parent in plan.walk() for below in parent.inputs) > 1
            if id(one) not in held and (shared or len(pyspark(node, held)) > most):
                name = f"part{len(lines) + 1}"
                lines.append(f"{name} = {pyspark(one, held)}")
                held[id(one)] = name

    put(plan)
    return [*lines, f"result = {held.get(id(plan)) or pyspark(plan, held)}"]


def table_values(rows: Sequence[Row]) -> str:
    """Return the rows of the static table in the syntax of `VALUES` in SQL."""
    return ", ".join(f"({'null' if row['tk'] is None else repr(row['tk'])}, {row['x']})" for row in rows)

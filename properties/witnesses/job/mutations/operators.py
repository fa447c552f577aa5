"""Mutation operators: small changes of a job's source that a test of it should notice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import libcst as cst
from libcst.metadata import ParentNodeProvider, PositionProvider

from .....reference.core.errors import BadInput
from .....reference.spark.durations import microseconds_of

Kind: TypeAlias = Literal[
    "duration",
    "join",
    "aggregate",
    "step",
    "column",
    "null",
    "comparison",
    "arithmetic",
    "number",
    "value",
    "condition",
    "statement",
    "order",
]
"""The kinds of mutations, by which a report advises how to notice one."""
FUNCTIONS = frozenset({"F", "f", "sf", "fn", "func", "functions"})
"""The names under which scripts import `pyspark.sql.functions`."""
JOINS = {"inner": "leftOuter", "left": "inner", "right": "inner", "full": "inner", "outer": "inner", "cross": "inner"}
AGGREGATES = {
    "sum": "max",
    "max": "min",
    "min": "max",
    "avg": "max",
    "mean": "max",
    "count": "count_distinct",
    "count_distinct": "count",
    "countDistinct": "count",
    "first": "last",
    "last": "first",
    "collect_list": "collect_set",
    "collect_set": "collect_list",
    "max_by": "min_by",
    "min_by": "max_by",
}
STEPS = frozenset({"where", "filter", "distinct", "fillna", "dropna", "withWatermark"})
"""Methods of a DataFrame that a mutant leaves out, beside deduplications."""
DEDUPLICATIONS = frozenset({"dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark"})
OTHER_STEPS = {"dropDuplicates": "dropDuplicatesWithinWatermark", "dropDuplicatesWithinWatermark": "dropDuplicates"}
BY_COLUMNS = frozenset({"groupBy", "groupby", "select", *DEDUPLICATIONS})
NULLS = {"isNull": "isNotNull", "isNotNull": "isNull"}
OTHER_OPERATORS: Mapping[type[cst.CSTNode], type[cst.CSTNode]] = {
    cst.LessThan: cst.LessThanEqual,
    cst.LessThanEqual: cst.LessThan,
    cst.GreaterThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.GreaterThan,
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
    cst.Add: cst.Subtract,
    cst.Subtract: cst.Add,
    cst.Multiply: cst.Add,
    cst.Divide: cst.Multiply,
    cst.FloorDivide: cst.Multiply,
    cst.Modulo: cst.Multiply,
    cst.BitAnd: cst.BitOr,
    cst.BitOr: cst.BitAnd,
    cst.AddAssign: cst.SubtractAssign,
    cst.SubtractAssign: cst.AddAssign,
    cst.MultiplyAssign: cst.AddAssign,
    cst.BitOrAssign: cst.BitAndAssign,
}
Expression = TypeVar("Expression", bound=cst.BaseExpression)
_DURATION = re.compile(r"(\d+)(\s+[a-z]+)", re.IGNORECASE)
_INTERVAL = re.compile(r"(\binterval\s+'?)(\d+)('?\s+[a-z]+)", re.IGNORECASE)


class Change(NamedTuple):
    """A change of one place of a module.

    Attributes:
        node: The node that is replaced.
        replacement: The node in its place.
        line: Its line.
        kind: What it changes.
    """

    node: cst.CSTNode
    replacement: cst.CSTNode
    line: int
    kind: Kind


class Changes(cst.CSTVisitor):
    """Collects the changes of the code that it visits.

    Args:
        alike: For each column of the inputs, the others of the same type.
    """

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self, alike: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.alike = alike
        self.found: list[Change] = []

    def visit_Annotation(self, node: cst.Annotation) -> bool:
        return False

    def visit_Decorator(self, node: cst.Decorator) -> bool:
        return False

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        text = node.evaluated_value
        if isinstance(text, str) and not isinstance(self._parent(node), cst.Expr):
            for other in _other_durations(text):
                self._add(node, _string(node, other), "duration")

    def visit_Call(self, node: cst.Call) -> None:
        function = node.func
        if not isinstance(function, cst.Attribute):
            return
        name = function.attr.value
        if name in STEPS | DEDUPLICATIONS:
            self._add(node, function.value, "step", function.attr)
            self._exchange(node, function)
        if name in OTHER_STEPS:
            self._add(node, _called(node, OTHER_STEPS[name]), "step", function.attr)
        if name in BY_COLUMNS:
            self._fewer_columns(node)
        if name == "join":
            self._other_join(node)
        if name in NULLS:
            self._add(node, _called(node, NULLS[name]), "null", function.attr)
        if isinstance(function.value, cst.Name) and function.value.value in FUNCTIONS:
            if name in AGGREGATES:
                self._add(node, _called(node, AGGREGATES[name]), "aggregate")
                self._other_column(node)
            if name == "coalesce" and len(node.args) > 1:
                self._add(node, node.args[0].value, "null")

    def visit_Comparison(self, node: cst.Comparison) -> None:
        first, *rest = node.comparisons
        for side in (node.left, first.comparator):
            if isinstance(side, cst.SimpleString) and isinstance(text := side.evaluated_value, str):
                self._add(side, _string(side, f"{text}?"), "value")
        if not rest and (other := _other(first.operator)):
            self._add(node, node.with_changes(comparisons=[first.with_changes(operator=other)]), "comparison")

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if other := _other(node.operator):
            logical = isinstance(node.operator, (cst.BitAnd, cst.BitOr))
            self._add(node, node.with_changes(operator=other), "condition" if logical else "arithmetic")

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        other = cst.Or() if isinstance(node.operator, cst.And) else cst.And()
        self._add(node, node.with_changes(operator=other), "condition")

    def visit_UnaryOperation(self, node: cst.UnaryOperation) -> None:
        if isinstance(node.operator, (cst.Not, cst.BitInvert)):
            self._add(node, node.expression, "condition")

    def visit_Integer(self, node: cst.Integer) -> None:
        if not isinstance(self._parent(node), cst.Index):
            self._add(node, cst.Integer(str(node.evaluated_value + 1)), "number")

    def visit_Name(self, node: cst.Name) -> None:
        if node.value in ("True", "False"):
            self._add(node, cst.Name("False" if node.value == "True" else "True"), "condition")

    def visit_If(self, node: cst.If) -> None:
        if not isinstance(node.test, cst.Comparison):  # whose operator is changed
            self._add(node.test, cst.UnaryOperation(cst.Not(), _in_parentheses(node.test)), "condition")

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        (statement, *rest) = node.body
        if rest:
            return
        if isinstance(statement, cst.AugAssign) and (other := _other(statement.operator)):
            self._add(statement, statement.with_changes(operator=other), "arithmetic")
        if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            self._add(statement, cst.Pass(), "statement")

    def _add(self, node: cst.CSTNode, replacement: cst.CSTNode, kind: Kind, at: cst.CSTNode | None = None) -> None:
        if isinstance(replacement, (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.UnaryOperation)):
            replacement = replacement if replacement.lpar else _in_parentheses(replacement)
        line = self.get_metadata(PositionProvider, at or node).start.line
        self.found.append(Change(node, replacement, line, kind))

    def _parent(self, node: cst.CSTNode) -> cst.CSTNode:
        parent: cst.CSTNode = self.get_metadata(ParentNodeProvider, node)
        return parent

    def _exchange(self, node: cst.Call, function: cst.Attribute) -> None:
        """Change the order of two steps, such as a filter and a deduplication."""
        before = function.value
        if isinstance(before, cst.Call) and isinstance(before.func, cst.Attribute):
            first, second = before.func.attr.value, function.attr.value
            if {first, second} & DEDUPLICATIONS and {first, second} & (STEPS - {"withWatermark"}):
                inner = node.with_changes(func=function.with_changes(value=before.func.value))
                self._add(node, before.with_changes(func=before.func.with_changes(value=inner)), "order")

    def _fewer_columns(self, node: cst.Call) -> None:
        """Leave out each of several columns of a grouping, a deduplication or the result."""
        if len(node.args) == 1 and isinstance(listed := node.args[0].value, (cst.List, cst.Tuple)):
            for number in range(len(listed.elements) if len(listed.elements) > 1 else 0):
                fewer = [element for index, element in enumerate(listed.elements) if index != number]
                fewer[-1] = fewer[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
                self._add(node, node.with_deep_changes(listed, elements=fewer), "column", listed.elements[number])
        for number in range(len(node.args) if len(node.args) > 1 else 0):
            fewer_args = [argument for index, argument in enumerate(node.args) if index != number]
            fewer_args[-1] = fewer_args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            self._add(node, node.with_changes(args=fewer_args), "column", node.args[number])

    def _other_join(self, node: cst.Call) -> None:
        for argument in node.args[1:]:
            how = argument.value
            if isinstance(how, cst.SimpleString) and isinstance(text := how.evaluated_value, str):
                plain = text.lower().replace("_", "").removesuffix("outer") or "outer"
                if plain in JOINS:
                    self._add(how, _string(how, JOINS[plain]), "join")

    def _other_column(self, node: cst.Call) -> None:
        """Take another column of the same type for each that an aggregate is of."""
        for argument in node.args:
            name = argument.value
            if isinstance(name, cst.SimpleString) and isinstance(name.evaluated_value, str):
                for other in self.alike.get(name.evaluated_value, ())[:1]:
                    self._add(name, _string(name, other), "column")


def _other(operator: cst.CSTNode) -> cst.CSTNode | None:
    other = OTHER_OPERATORS.get(type(operator))
    return None if other is None else other()


def _called(node: cst.Call, name: str) -> cst.Call:
    return node.with_changes(func=cst.ensure_type(node.func, cst.Attribute).with_changes(attr=cst.Name(name)))


def _string(node: cst.SimpleString, text: str) -> cst.SimpleString:
    if node.raw_value == node.evaluated_value:  # without escapes, so that the same quotes serve
        return node.with_changes(value=f"{node.prefix}{node.quote}{text}{node.quote}")
    return cst.SimpleString(repr(text))


def _in_parentheses(node: Expression) -> Expression:
    return node.with_changes(lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()])


def _other_durations(text: str) -> Iterator[str]:
    """Yield a duration, or an interval in an expression, with one unit more, with one less, and a thousand times it."""
    if (whole := _DURATION.fullmatch(text.strip())) is not None:
        try:
            microseconds_of("", text)
        except BadInput:
            return
        for number in _near(int(whole[1])):
            yield f"{number}{whole[2]}"
        return
    for part in _INTERVAL.finditer(text):
        for number in _near(int(part[2])):
            yield f"{text[: part.start(2)]}{number}{text[part.end(2) :]}"


def _near(number: int) -> list[int]:
    return [number + 1, *([number - 1] if number > 1 else []), 1_000 * number]

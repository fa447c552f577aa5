"""Mutation operators: small changes of a job's source that a test of it should notice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import libcst as cst
from libcst.metadata import ParentNodeProvider, PositionProvider

from .....reference.core.errors import BadInput
from .....reference.spark.durations import microseconds_of
from ....generators.columns.shown import duration

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
OWN_NAME = "functions"
"""The name of `pyspark.sql.functions` in each mutant, unless its module has another meaning for it."""
JOINS = {
    "inner": ("leftOuter", "rightOuter", "fullOuter"),
    "left": ("inner", "rightOuter", "fullOuter"),
    "right": ("inner", "leftOuter", "fullOuter"),
    "full": ("inner", "leftOuter", "rightOuter"),
    "outer": ("inner", "leftOuter", "rightOuter"),
    "cross": ("inner",),
    "leftsemi": ("leftAnti",),
    "semi": ("leftAnti",),
    "leftanti": ("leftSemi",),
    "anti": ("leftSemi",),
}
AGGREGATES: Mapping[str, Sequence[str]] = {
    "sum": ("max", "count"),
    "max": ("min",),
    "min": ("max",),
    "avg": ("max",),
    "mean": ("max",),
    "count": ("approx_count_distinct",),
    "count_distinct": ("count",),
    "countDistinct": ("count",),
    "approx_count_distinct": ("count",),
    "first": ("last",),
    "last": ("first",),
    "collect_list": ("collect_set",),
    "collect_set": ("collect_list",),
    "max_by": ("min_by",),
    "min_by": ("max_by",),
}
OTHER_FUNCTIONS = {
    "floor": "ceil",
    "ceil": "floor",
    "round": "floor",
    "bround": "round",
    "greatest": "least",
    "least": "greatest",
    "upper": "lower",
    "lower": "upper",
    "date_add": "date_sub",
    "date_sub": "date_add",
    "unix_micros": "unix_millis",
    "unix_millis": "unix_micros",
    "unix_seconds": "unix_millis",
    "timestamp_micros": "timestamp_millis",
    "timestamp_millis": "timestamp_micros",
    "timestamp_seconds": "timestamp_millis",
}
"""Functions of Spark that are taken for each other: of the other direction, or of another unit."""
OF_PYTHON = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
SMALLER_TYPES = {
    "bigint": "int",
    "long": "int",
    "int": "smallint",
    "integer": "smallint",
    "double": "int",
    "float": "int",
    "timestamp": "date",
}
NO_RESULT = frozenset(
    {"awaitTermination", "awaitAnyTermination", "processAllAvailable", "stop", "print", "show", "start", "toTable"}
)
"""Functions and methods without which a script has the same result, or starts no query."""
WITH_SQL = frozenset({"where", "filter", "expr", "selectExpr", "sql", "execute", "executemany"})
"""Functions and methods whose texts are SQL."""
VALUES_OF = frozenset({"lit", "isin", "eqNullSafe"})
"""Functions and methods whose texts are values."""
STEPS = frozenset({"where", "filter", "distinct", "fillna", "dropna", "withWatermark", "option"})
"""Methods of a DataFrame, its reader or writer that a mutant leaves out, beside deduplications."""
DEDUPLICATIONS = frozenset({"dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark"})
OTHER_STEPS = {"dropDuplicates": "dropDuplicatesWithinWatermark", "dropDuplicatesWithinWatermark": "dropDuplicates"}
BY_COLUMNS = frozenset({"groupBy", "groupby", "select", "agg", *DEDUPLICATIONS})
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
_UNITS = {"hour": ("minute", 59), "minute": ("second", 59), "second": ("millisecond", 999), "day": ("hour", 23)}
"""For each unit the next smaller unit, and how many of it are just less than one unit."""
_ZONE = re.compile(r"[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+")
_DECIMAL = re.compile(r"(decimal\(\d+,\s*)([1-9]\d*)(\))")
_SIDE = r"[\w.`]+(?:\s*[+-]\s*interval\s+'?\d+'?\s+[a-z]+)?"
_BETWEEN = re.compile(rf"([\w.`]+)\s+between\s+({_SIDE})\s+and\s+({_SIDE})", re.IGNORECASE)
_SQL: Sequence[tuple[re.Pattern[str], str, Kind]] = (
    (re.compile(r"(?<![<>=!])<(?![=>])"), "<=", "comparison"),
    (re.compile(r"<=(?!>)"), "<", "comparison"),
    (re.compile(r"(?<![<=])>(?!=)"), ">=", "comparison"),
    (re.compile(r">="), ">", "comparison"),
    (re.compile(r"(?<![<>=!])=(?!=)"), "<>", "comparison"),
    (re.compile(r"<>|!="), "=", "comparison"),
    (re.compile(r"\bis not null\b", re.IGNORECASE), "IS NULL", "null"),
    (re.compile(r"\bis null\b", re.IGNORECASE), "IS NOT NULL", "null"),
    (re.compile(r"\bnot\s+(?!null|in\b|like\b|between\b)", re.IGNORECASE), "", "condition"),
    (re.compile(r"\bor\b", re.IGNORECASE), "AND", "condition"),
    (re.compile(r"\+(?=\s*interval)", re.IGNORECASE), "-", "arithmetic"),
    (re.compile(r"-(?=\s*interval)", re.IGNORECASE), "+", "arithmetic"),
)
"""Parts of SQL, what they are replaced by, and the kind of the change."""
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.'])(?!\s*'?\s*(?:second|minute|hour|day|week)s?\b)", re.IGNORECASE)
_TEXT = re.compile(r"'([^']*)'")


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


class Functions(NamedTuple):
    """How a module names functions of Spark.

    Attributes:
        modules: The names of `pyspark.sql.functions`.
        bare: The functions that are imported by name, each by its name in the module.
    """

    modules: frozenset[str] = FUNCTIONS
    bare: Mapping[str, str] = {}

    def named(self, function: cst.BaseExpression) -> str | None:
        """Return the name of a function of Spark; None: it is none of Spark's."""
        if isinstance(function, cst.Name):
            return self.bare.get(function.value)
        if isinstance(function, cst.Attribute) and _dotted(function.value) in self.modules:
            return function.attr.value
        return None

    def exchanged(self, node: cst.Call, name: str) -> cst.Call:
        """Return a call of another function of Spark."""
        if isinstance(node.func, cst.Attribute):
            return _called(node, name)
        return node.with_changes(func=cst.Attribute(cst.Name(OWN_NAME), cst.Name(name)))


class Changes(cst.CSTVisitor):
    """Collects the changes of the code that it visits.

    Args:
        alike: For each column of the inputs, the others of the same type.
        values: The columns of the inputs that are no key.
        functions: How the module names functions of Spark.
        with_options: Whether options are left out: those of a query's writer, if its sink is run.
    """

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(
        self,
        alike: Mapping[str, Sequence[str]],
        values: Sequence[str] = (),
        functions: Functions | None = None,
        with_options: bool = True,
    ) -> None:
        super().__init__()
        self.with_options = with_options
        self.alike, self.values, self.functions = alike, values, functions or Functions()
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
            if _ZONE.fullmatch(text):
                self._add(node, _string(node, "UTC"), "value")

    def visit_Call(self, node: cst.Call) -> None:
        function, known = node.func, self.functions.named(node.func)
        if known is not None:
            self._function(node, known)
        elif isinstance(function, cst.Attribute):
            self._method(node, function)
        elif isinstance(function, cst.Name) and function.value in OF_PYTHON:
            other = cst.Name(OF_PYTHON[function.value])
            self._add(node, node.with_changes(func=other), "statement")

    def _function(self, node: cst.Call, name: str) -> None:
        """Change a call of a function of Spark."""
        for other in AGGREGATES.get(name, ()):
            if not (name == "count" and _text(node) == "*"):
                self._add(node, self.functions.exchanged(node, other), "aggregate")
        if name == "count" and _text(node) == "*":
            for value in self.values[:1]:
                self._add(node.args[0].value, cst.SimpleString(f'"{value}"'), "null")
        if name in OTHER_FUNCTIONS:
            self._add(node, self.functions.exchanged(node, OTHER_FUNCTIONS[name]), "number")
        if name == "coalesce" and len(node.args) > 1:
            self._add(node, node.args[0].value, "null")
        if name == "when" and node.args:
            condition = _in_parentheses(node.args[0].value)
            first = node.args[0].with_changes(value=cst.UnaryOperation(cst.BitInvert(), condition))
            self._add(node, node.with_changes(args=[first, *node.args[1:]]), "condition")
        if name == "window":
            self._other_windows(node)
        self._other_column(node)
        self._texts(node, name)

    def _method(self, node: cst.Call, function: cst.Attribute) -> None:
        """Change a call of a method."""
        name = function.attr.value
        if name == "option" and not self.with_options:
            return
        if name in STEPS | DEDUPLICATIONS:
            self._add(node, function.value, "step", function.attr)
            self._exchange(node, function)
        if name in OTHER_STEPS:
            self._add(node, _called(node, OTHER_STEPS[name]), "step", function.attr)
        if name in DEDUPLICATIONS:
            self._other_columns(node)
        if name in BY_COLUMNS:
            self._fewer_columns(node)
        if name == "select":
            self._exchanged_columns(node)
        if name == "join":
            self._other_join(node)
        if name in NULLS:
            self._add(node, _called(node, NULLS[name]), "null", function.attr)
        if name == "otherwise":
            self._add(node, function.value, "condition", function.attr)
        if name == "cast" and len(node.args) == 1:
            self._other_type(node, function)
        self._texts(node, name)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        if isinstance(node.left, cst.Name) and node.left.value == "__name__":
            return
        for side in (node.left, node.comparisons[0].comparator):
            if isinstance(side, cst.SimpleString) and isinstance(text := side.evaluated_value, str):
                self._add(side, _string(side, f"{text}?"), "value")
        for number, part in enumerate(node.comparisons):
            if other := _other(part.operator):
                changed = [*node.comparisons]
                changed[number] = part.with_changes(operator=other)
                self._add(node, node.with_changes(comparisons=changed), "comparison")

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if other := _other(node.operator):
            logical = isinstance(node.operator, (cst.BitAnd, cst.BitOr))
            self._add(node, node.with_changes(operator=other), "condition" if logical else "arithmetic")
            if logical:
                self._each_side(node)

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        other = cst.Or() if isinstance(node.operator, cst.And) else cst.And()
        self._add(node, node.with_changes(operator=other), "condition")
        self._each_side(node)

    def _each_side(self, node: cst.BinaryOperation | cst.BooleanOperation) -> None:
        """Leave out each side of two conditions."""
        for side in (node.left, node.right):
            self._add(node, side, "condition")

    def visit_IfExp(self, node: cst.IfExp) -> None:
        for side in (node.body, node.orelse):
            self._add(node, side, "condition")

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
            if _dotted(statement.value.func).rpartition(".")[2] in NO_RESULT:
                return
            self._add(statement, cst.Pass(), "statement")

    def _add(self, node: cst.CSTNode, replacement: cst.CSTNode, kind: Kind, at: cst.CSTNode | None = None) -> None:
        if isinstance(replacement, (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.UnaryOperation)):
            replacement = replacement if replacement.lpar else _in_parentheses(replacement)
        if (
            isinstance(replacement, cst.BaseExpression)
            and isinstance(node, cst.BaseExpression)
            and not replacement.lpar
        ):
            replacement = replacement.with_changes(lpar=node.lpar, rpar=node.rpar)  # it may go on in the next line
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
        given = [argument for argument in node.args if argument.keyword is None or argument.keyword.value == "how"]
        how = next((one for one in given if one.keyword is not None), given[2] if len(given) > 2 else None)
        if how is None and len(node.args) == 2:  # `inner`, the default
            more = cst.Arg(cst.SimpleString('"leftOuter"'), cst.Name("how"), cst.AssignEqual(*[_NOTHING] * 2))
            self._add(node, node.with_changes(args=[*node.args, more]), "join")
        if how is not None and isinstance(how.value, cst.SimpleString):
            text = str(how.value.evaluated_value)
            for other in JOINS.get(text.lower().replace("_", "").removesuffix("outer") or "outer", ()):
                self._add(how.value, _string(how.value, other), "join")
        for argument in node.args[1:2]:
            if isinstance(listed := argument.value, cst.List) and len(listed.elements) > 1:
                for number in range(len(listed.elements)):
                    self._add(listed, _without(listed, number), "column", listed.elements[number])

    def _other_column(self, node: cst.Call) -> None:
        """Take another column of the same type for each that a function is given."""
        for argument in node.args:
            name = argument.value
            if isinstance(name, cst.SimpleString) and isinstance(name.evaluated_value, str):
                for other in self.alike.get(name.evaluated_value, ())[:1]:
                    self._add(name, _string(name, other), "column")

    def _exchanged_columns(self, node: cst.Call) -> None:
        """Select another column of the same type under a column's name."""
        for argument in node.args:
            name = argument.value
            if isinstance(name, cst.SimpleString) and isinstance(text := name.evaluated_value, str):
                for other in self.alike.get(text, ())[:1]:
                    self._add(name, cst.parse_expression(f'{OWN_NAME}.col("{other}").alias("{text}")'), "column")

    def _other_columns(self, node: cst.Call) -> None:
        """Deduplicate by all columns, and by one column more."""
        if len(node.args) != 1 or not isinstance(listed := node.args[0].value, cst.List):
            return
        self._add(node, node.with_changes(args=[]), "column")
        given = {
            element.value.evaluated_value for element in listed.elements if isinstance(element.value, cst.SimpleString)
        }
        for value in self.values:
            if value not in given:
                more = cst.Element(cst.SimpleString(f'"{value}"'))
                self._add(listed, listed.with_changes(elements=[*listed.elements, more]), "column")

    def _other_windows(self, node: cst.Call) -> None:
        """Let windows slide by half their size, and begin beside its multiples; or not, if they do."""
        if len(node.args) < 2 or not isinstance(size := node.args[1].value, cst.SimpleString):
            return
        if len(node.args) > 2:
            self._add(node, node.with_changes(args=_ended(node.args[:2])), "duration")
            return
        try:
            size_us = microseconds_of("", str(size.evaluated_value))
        except BadInput:
            return  # it has no fixed length
        half_ms = size_us // 2_000
        text = f"{half_ms} milliseconds" if half_ms % 1_000 else duration(1_000 * half_ms)
        half = cst.Arg(cst.SimpleString(f'"{text}"'))
        if size_us >= 2_000:
            self._add(node, node.with_changes(args=_ended([*node.args, half])), "duration")
            shifted = _ended([*node.args, cst.Arg(size), half])
            self._add(node, node.with_changes(args=shifted), "duration")

    def _other_type(self, node: cst.Call, function: cst.Attribute) -> None:
        """Leave out a cast, and cast to a smaller type."""
        self._add(node, function.value, "number", function.attr)
        kind = node.args[0].value
        if isinstance(kind, cst.SimpleString) and isinstance(text := kind.evaluated_value, str):
            smaller = SMALLER_TYPES.get(text.lower())
            if (scale := _DECIMAL.fullmatch(text.lower())) is not None:
                smaller = f"{scale[1]}{int(scale[2]) - 1}{scale[3]}"
            if smaller is not None:
                self._add(kind, _string(kind, smaller), "number")

    def _texts(self, node: cst.Call, name: str) -> None:
        """Change the texts that a call is given: SQL, or values."""
        for argument in node.args:
            given = argument.value
            if isinstance(given, cst.SimpleString) and isinstance(text := given.evaluated_value, str):
                if name in WITH_SQL:
                    for other, kind in other_sql(text):
                        self._add(given, _string(given, other), kind)
                if name in VALUES_OF:
                    self._add(given, _string(given, f"{text}?"), "value")


_NOTHING = cst.SimpleWhitespace("")


def other_sql(text: str) -> Iterator[tuple[str, Kind]]:
    """Yield the changes of a condition or an expression in SQL, other than those of its intervals, with their kinds."""

    def replaced(found: re.Match[str], by: str) -> str:
        return f"{text[: found.start()]}{by}{text[found.end() :]}"

    ranges = [*_BETWEEN.finditer(text)]
    for found in ranges:
        value, least, most = found.groups()
        yield replaced(found, f"({value} > {least} AND {value} <= {most})"), "comparison"
        yield replaced(found, f"({value} >= {least} AND {value} < {most})"), "comparison"
        yield replaced(found, f"{value} >= {least}"), "condition"
        yield replaced(found, f"{value} <= {most}"), "condition"
    for pattern, by, kind in _SQL:
        for found in pattern.finditer(text):
            yield replaced(found, by), kind
    for found in _NUMBER.finditer(text):
        yield replaced(found, str(int(found[0]) + 1)), "number"
    for found in _TEXT.finditer(text):
        if not text[: found.start()].lower().rstrip().endswith("interval"):
            yield replaced(found, f"'{found[1]}?'"), "value"
    if not ranges and "(" not in text:
        parts = _AND.split(text)
        for number in range(len(parts) if len(parts) > 1 else 0):
            yield " AND ".join(part for index, part in enumerate(parts) if index != number), "condition"


def _text(node: cst.Call) -> Any:
    """Return the text that a call is given as its only argument; None: it is given something else."""
    only = node.args[0].value if len(node.args) == 1 else None
    return only.evaluated_value if isinstance(only, cst.SimpleString) else None


def _ended(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Return arguments with a comma between them, and none behind."""
    return [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in arguments]


def _without(listed: cst.List, number: int) -> cst.List:
    fewer = [element for index, element in enumerate(listed.elements) if index != number]
    fewer[-1] = fewer[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return listed.with_changes(elements=fewer)


def _dotted(node: cst.BaseExpression) -> str:
    """Return a name with dots; an empty text for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr.value}"
    return ""


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
        if int(whole[1]) == 1 and (smaller := _UNITS.get(whole[2].strip().lower().removesuffix("s"))):
            yield f"{smaller[1]} {smaller[0]}s"
        return
    for part in _INTERVAL.finditer(text):
        for number in _near(int(part[2])):
            yield f"{text[: part.start(2)]}{number}{text[part.end(2) :]}"


def _near(number: int) -> list[int]:
    return [number + 1, *([number - 1] if number > 1 else []), 1_000 * number]

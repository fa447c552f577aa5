"""Mutation operators: small changes of a job's source that its tests should detect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import libcst as cst

from .....reference.core.durations import microseconds_of
from .....reference.core.errors import BadInput
from ....generators.columns.formatting import duration
from .names import (
    AGGREGATES,
    BY_COLUMNS,
    BY_KEYS,
    BY_POSITION,
    DEDUPLICATIONS,
    FUNCTIONS,
    JOINS,
    MODES,
    OTHER_FUNCTIONS,
    OTHER_METHODS,
    OTHER_STEPS,
    OUT,
    OWN_NAME,
    STEPS,
    VALUES_OF,
    WITH_SQL,
)
from .nodes import (
    Text,
    called,
    dotted,
    ended,
    in_parentheses,
    method_of,
    names_in,
    only_text,
    text_of,
    with_text,
    without,
)
from .returns import ReturnChanges, Returned
from .sql import is_statement, other_durations, other_schemas, other_sql, other_statements, smaller_type

_ZONE = re.compile(r"[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+")
_NOTHING = cst.SimpleWhitespace("")


class FunctionNames(NamedTuple):
    """The names of Spark's functions in a module.

    Attributes:
        modules: The names of `pyspark.sql.functions`.
        bare: The functions imported by name, by their names in the module.
    """

    modules: frozenset[str] = FUNCTIONS
    bare: Mapping[str, str] = {}

    def named(self, function: cst.BaseExpression) -> str | None:
        """Return the name of a Spark function (None: another function)."""
        if isinstance(function, cst.Name):
            return self.bare.get(function.value)
        if isinstance(function, cst.Attribute) and dotted(function.value) in self.modules:
            return function.attr.value
        return None

    def exchanged(self, node: cst.Call, name: str) -> cst.Call:
        """Return a call of another Spark function."""
        if isinstance(node.func, cst.Attribute):
            return called(node, name)
        return node.with_changes(func=cst.Attribute(cst.Name(OWN_NAME), cst.Name(name)))


class Changes(ReturnChanges):
    """Collects the changes of the visited code.

    Args:
        alike: For each column of the inputs, the other columns of the same type, which mutants exchange.
        values: The columns of the inputs that aren't keys.
        functions: The names of Spark's functions in the module.
        with_options: Whether mutants may leave out `option` calls; false for a script.
        returned: The DataFrame that the job returns (None: the job is a sink or a script).
    """

    def __init__(
        self,
        alike: Mapping[str, Sequence[str]],
        values: Sequence[str] = (),
        functions: FunctionNames | None = None,
        with_options: bool = True,
        returned: Returned | None = None,
    ) -> None:
        super().__init__(alike, returned)
        self.with_options, self.values, self.functions = with_options, values, functions or FunctionNames()

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        text = text_of(node)
        if text is None or isinstance(self.parent(node), cst.Expr):
            return
        for other in other_durations(text):
            self.add(node, with_text(node, other), "duration")
        for other in other_schemas(text):
            self.add(node, with_text(node, other), "number")
        if _ZONE.fullmatch(text):
            self.add(node, with_text(node, "UTC"), "value")
        self._statement(node, text)

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        if (text := text_of(node)) is not None:
            for other in other_durations(text):
                self.add(node, with_text(node, other), "duration")
            self._statement(node, text)

    def _statement(self, node: Text, text: str) -> None:
        if is_statement(text):
            for other, kind in (*other_statements(text), *other_sql(text)):
                self.add(node, with_text(node, other), kind)

    def visit_Call(self, node: cst.Call) -> None:
        if (known := self.functions.named(node.func)) is not None:
            self._function(node, known)
        elif isinstance(node.func, cst.Attribute):
            self._method(node, node.func)
        else:
            super().visit_Call(node)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        """Insert `distinct` before code collects or writes a batch's rows."""
        is_file = node.attr.value == "write" and not isinstance(self.parent(node), cst.Attribute)
        if node.attr.value in OUT and not is_file:
            self.add(node.value, method_of(node.value, "distinct"), "step", node.attr)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        super().visit_Comparison(node)
        (first, *rest) = node.comparisons
        sides = (node.left, first.comparator)
        if not rest and isinstance(first.operator, cst.Equal) and all(map(self._is_column, sides)):
            null_safe = cst.Call(cst.Attribute(node.left, cst.Name("eqNullSafe")), [cst.Arg(first.comparator)])
            self.add(node, null_safe, "null")

    def _is_column(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self.functions.named(node.func) in ("col", "column")

    def _function(self, node: cst.Call, name: str) -> None:
        for other in AGGREGATES.get(name, ()):
            if not (name == "count" and only_text(node) == "*"):
                self.add(node, self.functions.exchanged(node, other), "aggregate")
        if name == "count" and only_text(node) == "*":
            for value in self.values[:1]:
                self.add(node.args[0].value, cst.SimpleString(f'"{value}"'), "null")
        if name in OTHER_FUNCTIONS:
            self.add(node, self.functions.exchanged(node, OTHER_FUNCTIONS[name]), "number")
        if name == "coalesce" and len(node.args) > 1:
            self.add(node, node.args[0].value, "null")
        if name == "when" and node.args:
            condition = in_parentheses(node.args[0].value)
            first = node.args[0].with_changes(value=cst.UnaryOperation(cst.BitInvert(), condition))
            self.add(node, node.with_changes(args=[first, *node.args[1:]]), "condition")
        if name == "window":
            self._other_windows(node)
        self._named(argument.value for argument in node.args)
        self._texts(node, name)

    def _method(self, node: cst.Call, function: cst.Attribute) -> None:
        name = function.attr.value
        if name == "option" and not self.with_options:
            return
        if name in STEPS | DEDUPLICATIONS or (name == "select" and self._only_names(node)):
            self.add(node, function.value, "step", function.attr)
            self._exchange(node, function)
        if name in OTHER_STEPS:
            self.add(node, called(node, OTHER_STEPS[name]), "step", function.attr)
        if (
            name == "withWatermark"
            and len(node.args) == 2
            and isinstance(delay := node.args[1].value, cst.SimpleString)
        ):
            self.add(delay, with_text(delay, "0 seconds"), "duration")
        if name in DEDUPLICATIONS:
            self._other_columns(node)
        if name in BY_COLUMNS:
            self._fewer_columns(node)
        if name in ("select", "groupBy"):
            self._exchanged_columns(node)
        if name == "select":
            self._other_order(node)
        if name == "join":
            self._other_join(node)
        if name in BY_KEYS:
            self._without_nulls(node, function, node.args)
        if name in OTHER_METHODS:
            other, kind = OTHER_METHODS[name]
            self.add(node, called(node, other), kind, function.attr)
        if name in ("mode", "outputMode") and (mode := only_text(node)) in MODES:
            self.add(node.args[0].value, cst.SimpleString(f'"{MODES[mode]}"'), "step")
        if name == "otherwise":
            self.add(node, function.value, "condition", function.attr)
        if name == "cast" and len(node.args) == 1:
            self._other_type(node, function)
        self._texts(node, name)

    def _only_names(self, node: cst.Call) -> bool:
        names = names_in(node.args)
        return len(names) == len(node.args) and not any("." in name or "*" in name for name in names)

    def _exchange(self, node: cst.Call, function: cst.Attribute) -> None:
        """Swap two steps, such as a filter and a deduplication, or a watermark and a deduplication."""
        before = function.value
        if isinstance(before, cst.Call) and isinstance(before.func, cst.Attribute):
            first, second = before.func.attr.value, function.attr.value
            within = "dropDuplicatesWithinWatermark"  # Spark refuses it before the watermark
            others = STEPS - {"withWatermark"} if within in (first, second) else STEPS
            if {first, second} & DEDUPLICATIONS and {first, second} & others:
                inner = node.with_changes(func=function.with_changes(value=before.func.value))
                self.add(node, before.with_changes(func=before.func.with_changes(value=inner)), "order")

    def _fewer_columns(self, node: cst.Call) -> None:
        """Leave out one column at a time from a grouping, a deduplication or the result, if it has several columns."""
        if len(node.args) == 1 and isinstance(listed := node.args[0].value, (cst.List, cst.Tuple)):
            for number in range(len(listed.elements) if len(listed.elements) > 1 else 0):
                fewer = without(listed.elements, number)
                self.add(node, node.with_deep_changes(listed, elements=fewer), "column", listed.elements[number])
        for number in range(len(node.args) if len(node.args) > 1 else 0):
            self.add(node, node.with_changes(args=without(node.args, number)), "column", node.args[number])

    def _other_order(self, node: cst.Call) -> None:
        """Swap two adjacent columns, if the next step matches columns by position."""
        after: cst.CSTNode = node
        while isinstance(after := self.parent(after), (cst.Attribute, cst.Call)):
            if isinstance(after, cst.Attribute) and after.attr.value in BY_POSITION:
                for number in range(len(node.args) - 1):
                    one, other = node.args[number : number + 2]
                    args = [*node.args]
                    args[number] = one.with_changes(value=other.value)
                    args[number + 1] = other.with_changes(value=one.value)
                    self.add(node, node.with_changes(args=args), "order", one)
                return

    def _without_nulls(self, node: cst.Call, function: cst.Attribute, keys: Sequence[cst.Arg]) -> None:
        """Leave out the rows with a null in a column of a grouping, a deduplication or a join."""
        names = [name for name in names_in(keys) if "." not in name]
        if names:
            subset = ", ".join(f'"{name}"' for name in names)
            argument = cst.ensure_type(cst.parse_expression(f"f(subset=[{subset}])"), cst.Call).args
            dropped = method_of(function.value, "dropna").with_changes(args=argument)
            self.add(node, node.with_changes(func=function.with_changes(value=dropped)), "null", function.attr)

    def _other_join(self, node: cst.Call) -> None:
        given = [argument for argument in node.args if argument.keyword is None or argument.keyword.value == "how"]
        how = next((one for one in given if one.keyword is not None), given[2] if len(given) > 2 else None)
        if how is None and len(node.args) == 2:  # without `how`, the call is an inner join
            more = cst.Arg(cst.SimpleString('"leftOuter"'), cst.Name("how"), cst.AssignEqual(*[_NOTHING] * 2))
            self.add(node, node.with_changes(args=[*node.args, more]), "join")
        if how is not None and isinstance(how.value, cst.SimpleString):
            text = str(how.value.evaluated_value)
            for other in JOINS.get(text.lower().replace("_", "").removesuffix("outer") or "outer", ()):
                self.add(how.value, with_text(how.value, other), "join")
        for argument in node.args[1:2]:
            if isinstance(listed := argument.value, cst.List) and len(listed.elements) > 1:
                for number, element in enumerate(listed.elements):
                    fewer = listed.with_changes(elements=without(listed.elements, number))
                    self.add(listed, fewer, "column", element)
            self._without_nulls(node, cst.ensure_type(node.func, cst.Attribute), [argument])
            self._other_keys(node, argument.value)

    def _other_keys(self, node: cst.Call, given: cst.BaseExpression) -> None:
        """Join the left DataFrame by another column of the same type."""
        listed = [element.value for element in given.elements] if isinstance(given, (cst.List, cst.Tuple)) else [given]
        for key in listed:
            name = text_of(key)
            for other in self.alike.get(name or "", ())[:1]:
                if isinstance(key, cst.SimpleString) and other not in names_in(node.args[1:2]):
                    named = cst.ensure_type(with_text(key, other), cst.SimpleString)
                    right = method_of(node.args[0].value, "withColumnRenamed", key, named)
                    joined = cst.ensure_type(node.with_deep_changes(key, value=named.value), cst.Call)
                    args = [joined.args[0].with_changes(value=right), *joined.args[1:]]
                    self.add(node, joined.with_changes(args=args), "column", key)

    def _named(self, given: Iterable[cst.BaseExpression]) -> None:
        """Replace each named column by another column of the same type."""
        for name in given:
            if isinstance(name, cst.SimpleString) and (text := text_of(name)) is not None:
                for other in self.alike.get(text, ())[:1]:
                    self.add(name, with_text(name, other), "column")

    def _exchanged_columns(self, node: cst.Call) -> None:
        """Select another column of the same type under a column's name."""
        for argument in node.args:
            name = argument.value
            if isinstance(name, cst.SimpleString) and (text := text_of(name)) is not None:
                for other in self.alike.get(text, ())[:1]:
                    self.add(name, cst.parse_expression(f'{OWN_NAME}.col("{other}").alias("{text}")'), "column")

    def _other_columns(self, node: cst.Call) -> None:
        """Deduplicate by all columns, by an additional column, and by another column of the same type."""
        if len(node.args) != 1 or not isinstance(listed := node.args[0].value, cst.List):
            return
        self.add(node, node.with_changes(args=[]), "column")
        given = names_in(node.args)
        for value in self.values:
            if value not in given:
                more = cst.Element(cst.SimpleString(f'"{value}"'))
                self.add(listed, listed.with_changes(elements=[*listed.elements, more]), "column")
        self._named([element.value for element in listed.elements])

    def _other_windows(self, node: cst.Call) -> None:
        """Make windows slide by half their size, or start at an offset; remove a given slide or offset."""
        if len(node.args) < 2 or not isinstance(size := node.args[1].value, cst.SimpleString):
            return
        if len(node.args) > 2:
            self.add(node, node.with_changes(args=ended(node.args[:2])), "duration")
            return
        try:
            size_us = microseconds_of("", str(size.evaluated_value))
        except BadInput:
            return  # such as months, whose length varies
        half_ms = size_us // 2_000
        text = f"{half_ms} milliseconds" if half_ms % 1_000 else duration(1_000 * half_ms)
        half = cst.Arg(cst.SimpleString(f'"{text}"'))
        if size_us >= 2_000:
            self.add(node, node.with_changes(args=ended([*node.args, half])), "duration")
            shifted = ended([*node.args, cst.Arg(size), half])
            self.add(node, node.with_changes(args=shifted), "duration")

    def _other_type(self, node: cst.Call, function: cst.Attribute) -> None:
        """Leave out a cast, and cast to a smaller type."""
        self.add(node, function.value, "number", function.attr)
        kind = node.args[0].value
        if isinstance(kind, cst.SimpleString) and (smaller := smaller_type(text_of(kind) or "")) is not None:
            self.add(kind, with_text(kind, smaller), "number")

    def _texts(self, node: cst.Call, name: str) -> None:
        """Change the SQL texts and the other texts in a call's arguments."""
        for argument in node.args:
            given = argument.value
            if isinstance(given, (cst.SimpleString, cst.FormattedString)) and (text := text_of(given)) is not None:
                if name in WITH_SQL and not is_statement(text):
                    for other, kind in other_sql(text):
                        self.add(given, with_text(given, other), kind)
                if name in VALUES_OF and isinstance(given, cst.SimpleString):
                    self.add(given, with_text(given, f"{text}?"), "value")

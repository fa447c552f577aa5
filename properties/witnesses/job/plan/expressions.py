"""The expressions of a plan as trees, and their comparisons with constants, traced back to input columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ....generators.columns.forms.rows import EPOCH
from ....generators.columns.terms import COLUMN, COMPARISONS, CONSTANT, Term, is_comparison

JsonExpression: TypeAlias = Sequence[Mapping[str, Any]]
"""An expression's nodes as Spark writes them in JSON, parents first."""
DELAY_MS = "spark.watermarkDelayMs"
"""The metadata of a column with a watermark."""
MAX_TERMS = 200
"""The largest number of terms in a comparison; larger comparisons are left out."""
MAX_DEPTH = 100
_CAPS = {"Least": "LessThan", "Greatest": "GreaterThan"}
"""The comparisons in a least or greatest of two values."""


def read_expression(expression: Any) -> JsonExpression:
    """Return an expression's nodes, parents first, each with the name of its class."""
    nodes: list[dict[str, Any]] = json.loads(expression.toJSON())
    # Read a subquery's reference to an outer column as the column itself.
    each = (column for node in nodes for column in (node["e"] if node["class"].endswith(".OuterReference") else [node]))
    return [{**node, "class": node["class"].rpartition(".")[2]} for node in each]


class Tree(NamedTuple):
    """A node of an expression, and its children."""

    node: Mapping[str, Any]
    children: Sequence[Tree]

    @property
    def kind(self) -> str:
        """The node's class."""
        return str(self.node["class"])


def trees_of(expression: JsonExpression) -> list[Tree]:
    """Return each node of an expression with its children."""
    trees: list[Tree] = []
    waiting: list[Tree] = []
    for node in reversed(expression):
        trees.append(Tree(node, [waiting.pop() for _ in range(node["num-children"])]))
        waiting.append(trees[-1])
    return trees


class _TooLarge(Exception):
    """Raised for a comparison with too many terms."""


class TermReader:
    """Reads trees as terms of the columns of streaming sources.

    Args:
        given: By the id of a source's column: the names of all columns of the source, and the column's own name.
        made: The expression of a column that an operator computes, by the column's id.
        beside: By the id of a union's column: the ids of the matching columns in the union's second, third, … input.
        index: The index of the union's input that the reader follows; the first input of a union with fewer inputs.
        zone: The session's time zone.
    """

    def __init__(
        self,
        given: Mapping[int, tuple[tuple[str, ...], str]],
        made: Mapping[int, Tree],
        beside: Mapping[int, Sequence[int]],
        index: int,
        zone: str,
    ) -> None:
        self.given, self.made, self.beside, self.index, self.zone = given, made, beside, index, zone
        self.count = 0

    def comparison(self, tree: Tree, definitions: Sequence[Tree]) -> Term | None:
        """Return a tree as a comparison of columns with constants (None: another expression)."""
        term = self.read(tree, definitions)
        if term is None:
            return None
        if term.kind in _CAPS and len(term.children) == 2:
            term = Term(_CAPS[term.kind], term.children)
        return term if is_comparison(term) else None

    def read(self, tree: Tree, definitions: Sequence[Tree] = ()) -> Term | None:
        """Return a tree as a term (None: the tree is too large, or contains a literal of an unsupported type)."""
        self.count = 0
        try:
            return self._term(tree, definitions)
        except (_TooLarge, ValueError, TypeError, KeyError, ArithmeticError, ZoneInfoNotFoundError):
            return None

    def _term(self, tree: Tree, definitions: Sequence[Tree], depth: int = 0) -> Term:
        self.count += 1
        if self.count > MAX_TERMS or depth > MAX_DEPTH:
            raise _TooLarge
        node, kind = tree.node, tree.kind
        if kind == "Literal":
            return Term(CONSTANT, (), _literal(node["value"], node["dataType"], self.zone))
        if kind == "AttributeReference":
            return self._column(node["exprId"]["id"], depth)
        if kind == "CommonExpressionRef" and len(definitions) == 1:
            return self._term(definitions[0], (), depth + 1)
        if kind == "With":
            definitions = tree.children[1:]
            return self._term(tree.children[0], definitions, depth + 1)
        children = tuple(self._term(child, definitions, depth + 1) for child in tree.children)
        if kind in ("Left", "Right") and len(children) == 2 and isinstance(count := children[1].value, int):
            return Term("Substring", (children[0], Term(CONSTANT, (), 1 if kind == "Left" else -count), children[1]))
        zone = node.get("timeZoneId")
        if kind == "GetStructField":
            name = node.get("name")
            return Term("Field", children, name if isinstance(name, str) else None)
        if kind == "Cast" and not isinstance(node["dataType"], str):
            return Term("CastOfNested", children)
        named = node.get("dataType")  # a text for a simple type, an object for a nested type
        return Term(kind, children, named if isinstance(named, str) else None, zone if isinstance(zone, str) else None)

    def _column(self, number: int, depth: int) -> Term:
        if self.beside.get(number):
            others = self.beside[number]
            if 0 < self.index <= len(others):
                number = others[self.index - 1]
        if number in self.given:
            return Term(COLUMN, (), self.given[number])
        if number in self.made:
            alias = self.made[number]
            term = self._term(alias.children[0], (), depth + 1)
            # The fields that `row.*` extracts have no names of their own, so take the alias's name.
            return replace(term, value=alias.node["name"]) if term.kind == "Field" and term.value is None else term
        return Term("Made")


def comparisons_of(
    expressions: Sequence[Sequence[Tree]],
    given: Mapping[int, tuple[tuple[str, ...], str]],
    beside: Mapping[int, Sequence[int]],
    zone: str = "UTC",
) -> Iterator[tuple[Tree, Term]]:
    """Yield the comparisons with constants in a plan's expressions, each as a tree and as a term.

    Args:
        expressions: The trees of each expression of the plan's operators, the whole expression last.
        given: By the id of a source's column: the names of all columns of the source, and the column's own name.
        beside: By the id of a union's column: the ids of the matching columns in the union's second, third, … input.
        zone: The session's time zone.
    """
    roots = [trees[-1] for trees in expressions if trees]
    made = {root.node["exprId"]["id"]: root for root in roots if root.kind == "Alias"}
    for index in range(1 + max(map(len, beside.values()), default=0)):
        reader = TermReader(given, made, beside, index, zone)
        for root in roots:
            for tree, definitions in _walk(root):
                if tree.kind in (*COMPARISONS, *_CAPS) and (term := reader.comparison(tree, definitions)) is not None:
                    yield tree, term


def _walk(root: Tree) -> Iterator[tuple[Tree, Sequence[Tree]]]:
    """Yield a tree and all its subtrees, each with the definitions of the enclosing `With`."""
    waiting: list[tuple[Tree, Sequence[Tree]]] = [(root, ())]
    while waiting:
        tree, definitions = waiting.pop()
        yield tree, definitions
        definitions = tree.children[1:] if tree.kind == "With" else definitions
        waiting += [(child, definitions) for child in reversed(tree.children)]


def _literal(value: Any, kind: Any, zone: str) -> Any:
    """Return the value of a literal.

    Raises:
        ValueError: The literal's type is unsupported.
    """
    if value is None:
        return None
    if not isinstance(kind, str):
        raise ValueError(kind)
    if kind in ("byte", "short", "integer", "long"):
        return int(value)
    if kind in ("float", "double"):
        return float(value)
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind.startswith(("string", "varchar", "char")):
        return str(value)
    if kind == "boolean":
        return value in (True, "true")
    if kind == "date":
        return date.fromisoformat(value)
    if kind == "timestamp":
        return datetime.fromisoformat(value).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    if kind == "timestamp_ntz":
        return (EPOCH + timedelta(microseconds=int(value))).replace(tzinfo=None)
    raise ValueError(kind)

"""Changes of a single expression or statement in a job's source, and helpers for syntax nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import libcst as cst

ChangeKind: TypeAlias = Literal[
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
"""The kinds of mutations; a report's advice depends on the kind."""
Expression = TypeVar("Expression", bound=cst.BaseExpression)
Text: TypeAlias = cst.SimpleString | cst.FormattedString
_FILLED = re.compile(r"__filled_(\d+)__")


class CodeEdit(NamedTuple):
    """A change of a single expression or statement in a module.

    Attributes:
        node: The replaced node.
        replacement: The new node.
        line: The line of the node.
        kind: The kind of the change, such as a changed condition.
        shown: The code to show before and after the change, if the nodes contain more code than the change.
    """

    node: cst.CSTNode
    replacement: cst.CSTNode
    line: int
    kind: ChangeKind
    shown: tuple[cst.CSTNode, cst.CSTNode] | None = None


def text_of(node: cst.CSTNode) -> str | None:
    """Return the text of a string, with a placeholder for each expression of an f-string (None: not a string)."""
    if isinstance(node, cst.SimpleString):
        text = node.evaluated_value
        return text if isinstance(text, str) else None
    if isinstance(node, cst.FormattedString) and "r" not in node.prefix.lower():
        parts = [
            part.value if isinstance(part, cst.FormattedStringText) else f"__filled_{number}__"
            for number, part in enumerate(node.parts)
        ]
        return None if any("\\" in part or "{{" in part or "}}" in part for part in parts) else "".join(parts)
    return None


def with_text(node: Text, text: str) -> cst.BaseExpression:
    """Return a string node with another text, with an f-string's expressions in place of their placeholders."""
    if isinstance(node, cst.FormattedString):
        parts: list[cst.BaseFormattedStringContent] = []
        for number, part in enumerate(_FILLED.split(text)):
            parts.append(node.parts[int(part)] if number % 2 else cst.FormattedStringText(part))
        return node.with_changes(parts=[part for part in parts if getattr(part, "value", True)])
    if node.raw_value == node.evaluated_value:  # a string without escapes can keep its quotes
        return node.with_changes(value=f"{node.prefix}{node.quote}{text}{node.quote}")
    return cst.SimpleString(repr(text))


def only_text(node: cst.Call) -> Any:
    """Return the text of a call's only argument (None: another argument)."""
    return text_of(node.args[0].value) if len(node.args) == 1 else None


def names_in(arguments: Sequence[cst.Arg]) -> list[str]:
    """Return the columns that a call names, as single arguments or in a list."""
    names: list[str] = []
    for argument in arguments:
        given = argument.value
        listed = [element.value for element in given.elements] if isinstance(given, (cst.List, cst.Tuple)) else [given]
        names += [text for one in listed if isinstance(one, cst.SimpleString) and (text := text_of(one))]
    return names


def ended(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Return call arguments with commas between them, and without a trailing comma."""
    return [one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in arguments]


def without(listed: Sequence[Any], number: int) -> list[Any]:
    """Return call arguments, list elements or `with` items, without the item at an index and without a trailing
    comma.
    """
    fewer = [element for index, element in enumerate(listed) if index != number]
    fewer[-1] = fewer[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return fewer


def dotted(node: cst.BaseExpression) -> str:
    """Return a dotted name; an empty text for other expressions."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr.value}"
    return ""


def called(node: cst.Call, name: str) -> cst.Call:
    """Return a call of another method of the same object."""
    return node.with_changes(func=cst.ensure_type(node.func, cst.Attribute).with_changes(attr=cst.Name(name)))


def method_of(rows: cst.BaseExpression, name: str, *given: cst.BaseExpression) -> cst.Call:
    """Return a call of a method of an expression."""
    if not (rows.lpar or isinstance(rows, (cst.Attribute, cst.Call, cst.Name, cst.Subscript))):
        rows = in_parentheses(rows)
    return cst.Call(cst.Attribute(rows, cst.Name(name)), [cst.Arg(value) for value in given])


def in_parentheses(node: Expression) -> Expression:
    """Return an expression in parentheses."""
    return node.with_changes(lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()])

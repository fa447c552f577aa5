"""Changes of a job's Python code: comparisons, conditions, arithmetic and statements."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from libcst.metadata import ParentNodeProvider, PositionProvider

from .names import NO_RESULT, OF_PYTHON, OTHER_OPERATORS
from .nodes import ChangeKind, CodeEdit, dotted, in_parentheses, text_of, with_text, without


class PythonChanges(cst.CSTVisitor):
    """Collects the changes of the visited Python code."""

    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[CodeEdit] = []

    def add(
        self,
        node: cst.CSTNode,
        replacement: cst.CSTNode,
        kind: ChangeKind,
        at: cst.CSTNode | None = None,
        shown: tuple[cst.CSTNode, cst.CSTNode] | None = None,
    ) -> None:
        """Record a change: a node, its replacement, and the shown code."""
        if isinstance(replacement, (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.UnaryOperation)):
            replacement = replacement if replacement.lpar else in_parentheses(replacement)
        if (
            isinstance(replacement, cst.BaseExpression)
            and isinstance(node, cst.BaseExpression)
            and not replacement.lpar
        ):
            replacement = replacement.with_changes(lpar=node.lpar, rpar=node.rpar)  # for code on several lines
        line = self.get_metadata(PositionProvider, at or node).start.line
        self.found.append(CodeEdit(node, replacement, line, kind, shown))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the parent of a node."""
        parent: cst.CSTNode = self.get_metadata(ParentNodeProvider, node)
        return parent

    def visit_Annotation(self, node: cst.Annotation) -> bool:
        return False

    def visit_Decorator(self, node: cst.Decorator) -> bool:
        return False

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Name) and node.func.value in OF_PYTHON:
            self.add(node, node.with_changes(func=cst.Name(OF_PYTHON[node.func.value])), "statement")

    def visit_Comparison(self, node: cst.Comparison) -> None:
        if isinstance(node.left, cst.Name) and node.left.value == "__name__":
            return
        for side in (node.left, node.comparisons[0].comparator):
            if isinstance(side, cst.SimpleString) and (text := text_of(side)) is not None:
                self.add(side, with_text(side, f"{text}?"), "value")
        for number, part in enumerate(node.comparisons):
            if other := _other(part.operator):
                changed = [*node.comparisons]
                changed[number] = part.with_changes(operator=other)
                self.add(node, node.with_changes(comparisons=changed), "comparison")

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        if other := _other(node.operator):
            logical = isinstance(node.operator, (cst.BitAnd, cst.BitOr))
            self.add(node, node.with_changes(operator=other), "condition" if logical else "arithmetic")
            if logical:
                self._each_side(node)

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        other = cst.Or() if isinstance(node.operator, cst.And) else cst.And()
        self.add(node, node.with_changes(operator=other), "condition")
        self._each_side(node)

    def _each_side(self, node: cst.BinaryOperation | cst.BooleanOperation) -> None:
        """Replace a combination of two conditions by each single condition."""
        for side in (node.left, node.right):
            self.add(node, side, "condition")

    def visit_IfExp(self, node: cst.IfExp) -> None:
        for side in (node.body, node.orelse):
            self.add(node, side, "condition")

    def visit_UnaryOperation(self, node: cst.UnaryOperation) -> None:
        if isinstance(node.operator, (cst.Not, cst.BitInvert)):
            self.add(node, node.expression, "condition")

    def visit_Integer(self, node: cst.Integer) -> None:
        if not isinstance(self.parent(node), cst.Index):
            self.add(node, cst.Integer(str(node.evaluated_value + 1)), "number")

    def visit_Name(self, node: cst.Name) -> None:
        if node.value in ("True", "False") and not self._is_strict(node):
            self.add(node, cst.Name("False" if node.value == "True" else "True"), "condition")

    def _is_strict(self, node: cst.Name) -> bool:
        """Return whether a name is the `strict=` of `zip`, which changes no result."""
        argument = self.parent(node)
        return isinstance(argument, cst.Arg) and argument.keyword is not None and argument.keyword.value == "strict"

    def visit_If(self, node: cst.If) -> None:
        is_not = isinstance(node.test, cst.UnaryOperation) and isinstance(node.test.operator, cst.Not)
        # other visitors change comparisons and `not`
        if not is_not and not isinstance(node.test, cst.Comparison):
            self.add(node.test, cst.UnaryOperation(cst.Not(), in_parentheses(node.test)), "condition")
        if node.orelse is None and _is_guard(node.body):
            nothing = cst.SimpleStatementLine([cst.Pass()])
            self.add(node, nothing, "condition", shown=(_headline(node), cst.Pass()))

    def visit_With(self, node: cst.With) -> None:
        """Leave out a `with` item without a name, such as a lock or a transaction."""
        for number, item in enumerate(node.items):
            if item.asname is None:
                fewer: cst.With | cst.If = cst.If(cst.Name("True"), node.body)
                if len(node.items) > 1:
                    fewer = node.with_changes(items=without(node.items, number))
                self.add(node, fewer, "statement", item, (_headline(node), _headline(fewer)))

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        (statement, *rest) = node.body
        if rest:
            return
        if isinstance(statement, cst.AugAssign) and (other := _other(statement.operator)):
            self.add(statement, statement.with_changes(operator=other), "arithmetic")
        if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
            if dotted(statement.value.func).rpartition(".")[2] in NO_RESULT:
                return
            self.add(statement, cst.Pass(), "statement")

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        """Swap two adjacent statements that call methods of the same object."""
        for number, (one, other) in enumerate(zip(node.body, node.body[1:], strict=False)):
            first, second = _call_of(one), _call_of(other)
            if first is None or second is None or first[0] != second[0] or first[1] & _names_in(other):
                continue
            body = [*node.body]
            body[number : number + 2] = other, one
            shown = (_in_a_line(one, other), _in_a_line(other, one))
            self.add(node, node.with_changes(body=body), "order", one, shown)


def _other(operator: cst.CSTNode) -> cst.CSTNode | None:
    other = OTHER_OPERATORS.get(type(operator))
    return None if other is None else other()


def _is_guard(body: cst.BaseSuite) -> bool:
    """Return whether a block contains only a `return`, `continue` or `break`."""
    lines: Sequence[cst.CSTNode] = body.body
    if isinstance(body, cst.IndentedBlock) and len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine):
        lines = lines[0].body
    return len(lines) == 1 and isinstance(lines[0], (cst.Return, cst.Continue, cst.Break))


def _headline(node: cst.If | cst.With) -> cst.CSTNode:
    """Return a statement without its block."""
    suite = cst.SimpleStatementSuite([cst.Expr(cst.Ellipsis())])
    return node.with_changes(body=suite, leading_lines=[])


def _call_of(statement: cst.CSTNode) -> tuple[str, set[str]] | None:
    """Return the object whose method a statement calls, and the assigned names (None: another statement)."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    part, names = statement.body[0], set[str]()
    if isinstance(part, cst.Assign):
        names = {name for target in part.targets for name in _names_in(target)}
    value = part.value if isinstance(part, (cst.Assign, cst.Expr)) else None
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and (of := dotted(value.func.value)):
        return None if value.func.attr.value in NO_RESULT else (of, names)
    return None


def _names_in(node: cst.CSTNode) -> set[str]:
    names = {node.value} if isinstance(node, cst.Name) else set()
    within = [node.value] if isinstance(node, cst.Attribute) else node.children
    return names.union(*map(_names_in, within))


def _in_a_line(*lines: cst.CSTNode) -> cst.CSTNode:
    return cst.SimpleStatementLine([cst.ensure_type(line, cst.SimpleStatementLine).body[0] for line in lines])

"""Changes of the DataFrame that a job returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import libcst as cst

from .names import DEDUPLICATIONS, OWN_NAME, STEPS
from .nodes import method_of
from .python import PythonChanges


class Returned(NamedTuple):
    """The returned DataFrame of a job.

    Attributes:
        job: The name of the job's function.
        may_repeat: Whether the result may contain duplicates, because the job neither groups nor deduplicates.
        may_have_nulls: Whether a value of the inputs may be null.
        inputs: The columns of each input, by the name of the job's parameter.
    """

    job: str
    may_repeat: bool
    may_have_nulls: bool
    inputs: Mapping[str, Sequence[str]]


class ReturnChanges(PythonChanges):
    """Collects the changes of the DataFrame that a job returns, in addition to changes of its Python code.

    Args:
        alike: For each column of the inputs, the other columns of the same type.
        returned: The DataFrame that the job returns (None: the job is a sink or a script).
    """

    def __init__(self, alike: Mapping[str, Sequence[str]], returned: Returned | None = None) -> None:
        super().__init__()
        self.alike, self.returned = alike, returned

    def visit_Return(self, node: cst.Return) -> None:
        """Leave out rows with a null, or duplicates; use another column of the same type."""
        rows, returned = node.value, self.returned
        if rows is None or returned is None or not self._is_in(node, returned.job):
            return
        bare = rows.with_changes(lpar=[], rpar=[])  # `add` restores the parentheses
        if returned.may_have_nulls:
            self.add(rows, method_of(bare, "dropna"), "null")
        if returned.may_repeat:
            self.add(rows, method_of(bare, "distinct"), "step")
        for column in returned.inputs.get(_with_all_columns_of(rows), ()):
            for other in self.alike.get(column, ())[:1]:
                taken = cst.parse_expression(f'{OWN_NAME}.col("{other}")')
                changed = method_of(bare, "withColumn", cst.SimpleString(f'"{column}"'), taken)
                self.add(rows, changed, "column")

    def _is_in(self, node: cst.CSTNode, name: str) -> bool:
        """Return whether a node is in a module's function, and not in a nested function."""
        while not isinstance(node := self.parent(node), cst.FunctionDef):
            pass
        return node.name.value == name and isinstance(self.parent(node), cst.Module)


def _with_all_columns_of(rows: cst.BaseExpression) -> str:
    """Return the name of the DataFrame from which a DataFrame has all its columns; an empty text if there is none."""
    while isinstance(rows, cst.Call) and isinstance(rows.func, cst.Attribute):
        if rows.func.attr.value not in (STEPS | DEDUPLICATIONS) - {"drop"}:
            return ""
        rows = rows.func.value
    return rows.value if isinstance(rows, cst.Name) else ""

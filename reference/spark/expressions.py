"""Expressions of Spark SQL over a row: columns, constants, comparisons and a few functions, with Spark's rules for
nulls.

Source: "NULL Semantics" in Spark's SQL reference. A comparison with a null is null, `and` and `or` return true, false
or null, and a filter keeps only rows whose condition is true.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from .aggregates import Row


@dataclass(frozen=True)
class Expression:
    """An expression: an operator or function with its arguments.

    Attributes:
        function: `column`, `constant`, or one of `FUNCTIONS`.
        inputs: The arguments, as expressions.
        name: The column's name, if the function is `column`.
        value: The value of a constant: None, a number, a string or a boolean.
    """

    function: str
    inputs: tuple[Expression, ...] = ()
    name: str = ""
    value: Any = None

    def of(self, row: Row) -> Any:
        """Return the expression's value for a row; None for null."""
        if self.function == "column":
            return row[self.name]
        if self.function == "constant":
            return self.value
        return FUNCTIONS[self.function](*(each.of(row) for each in self.inputs))

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the expression refers to."""
        return frozenset({self.name} if self.function == "column" else ()).union(*(one.columns for one in self.inputs))


def column(name: str) -> Expression:
    """Return the expression of a column."""
    return Expression("column", name=name)


def constant(value: Any) -> Expression:
    """Return the expression of a constant."""
    return Expression("constant", value=value)


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns null if an argument is null."""
    return lambda *values: None if None in values else function(*values)


def _or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(*values: bool | None) -> bool | None:
    return _not(_or(*map(_not, values)))


def _case(*values: Any) -> Any:
    """Return the value after the first condition that is true, otherwise the last value."""
    *pairs, other = values
    return next((then for when, then in zip(pairs[::2], pairs[1::2], strict=True) if when), other)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "=": _strict(operator.eq),
    "<>": _strict(operator.ne),
    "<": _strict(operator.lt),
    "<=": _strict(operator.le),
    ">": _strict(operator.gt),
    ">=": _strict(operator.ge),
    "+": _strict(lambda *values: reduce(operator.add, values)),
    "and": _and,
    "or": _or,
    "not": _not,
    "is null": lambda value: value is None,
    "is not null": lambda value: value is not None,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "case": _case,
    "as timestamp": lambda value: value,
    "upper": _strict(str.upper),
    "lower": _strict(str.lower),
}
"""The functions by their SQL names; `case` takes alternating conditions and values, then the value of `else`."""

"""Booleans, numbers and set elements, each a known Python value or a term of z3.

Functions here compute known values directly. If all values are known, the functions don't need z3, and evaluate a
module as TLC does.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from ...reference.core.errors import import_extra
from ..pytla import ModelValue

Formula: TypeAlias = Any
"""True, False, or a term of z3."""


def z3() -> Any:
    """Import z3.

    Raises:
        MissingTool: z3 isn't installed.
    """
    return import_extra("z3", "proofs", "a proof")


def is_term(value: object) -> bool:
    """Return whether a value is a term of z3."""
    return hasattr(value, "sexpr")


def conjunction(truths: Iterable[Formula]) -> Formula:
    """Return the conjunction of known and symbolic booleans."""
    return _joined(truths, True)


def disjunction(truths: Iterable[Formula]) -> Formula:
    """Return the disjunction of known and symbolic booleans."""
    return _joined(truths, False)


def _joined(truths: Iterable[Formula], neutral: bool) -> Formula:
    """Join booleans by *and* (neutral value True) or by *or* (neutral value False)."""
    terms = []
    for truth in truths:
        if truth is (not neutral):
            return truth
        if truth is not neutral:
            terms.append(truth)
    if len(terms) > 1:
        return z3().And(*terms) if neutral else z3().Or(*terms)
    return terms[0] if terms else neutral


def negation(truth: Formula) -> Formula:
    """Negate a truth."""
    return (not truth) if isinstance(truth, bool) else z3().Not(truth)


def implication(condition: Formula, truth: Formula) -> Formula:
    """Return the formula *condition implies truth*."""
    return disjunction((negation(condition), truth))


def either(condition: Formula, one: Any, other: Any) -> Any:
    """Return the formula *if condition then one else other*, for two values of the same z3 sort."""
    if isinstance(condition, bool):
        return one if condition else other
    if one is other or (not is_term(one) and not is_term(other) and one == other):
        return one
    if is_term(one) and is_term(other) and one.eq(other):
        return one
    return z3().If(condition, one, other)


def equal_leaves(one: Any, other: Any) -> Formula:
    """Return the formula that two simple values are equal, which is False for values of different z3 sorts."""
    if not is_term(one) and not is_term(other):
        return type(one) is type(other) and one == other
    if is_term(one) and is_term(other):
        return True if one.eq(other) else one == other if one.sort() == other.sort() else False
    term, known = (one, other) if is_term(one) else (other, one)
    if isinstance(known, bool):
        return (term if known else negation(term)) if z3().is_bool(term) else False
    if isinstance(known, int):
        return term == known if z3().is_int(term) else False
    if isinstance(known, ModelValue) or z3().is_bool(term) or z3().is_int(term):
        return False
    return term == literal(term.sort(), known)


def literal(sort: Any, name: str) -> Any:
    """Return the z3 constant for a string of the module, as an element of an arbitrary set."""
    return z3().Const(f'"{name}"', sort)


_BOUND: list[Any] = []
_NUMBERS = itertools.count(1)


def fresh(name: str) -> str:
    """Return a new unique name for a term."""
    return f"{name}!{next(_NUMBERS)}"


@contextmanager
def binding(variables: Sequence[Any]) -> Iterator[None]:
    """Record the quantified variables of a formula under construction, on which undefined parts may depend."""
    _BOUND.extend(variables)
    try:
        yield
    finally:
        del _BOUND[len(_BOUND) - len(variables) :]


def anything() -> Formula:
    """Return an unknown truth value for a formula whose value is undefined."""
    return function_of(fresh("undefined"), list(_BOUND), z3().BoolSort())


def function_of(name: str, arguments: Sequence[Any], sort: Any) -> Any:
    """Return an uninterpreted z3 function of the arguments, with values of a sort."""
    if not arguments:
        return z3().Const(name, sort)
    terms = [z3().IntVal(argument) if isinstance(argument, int) else argument for argument in arguments]
    return z3().Function(name, *(term.sort() for term in terms), sort)(*terms)

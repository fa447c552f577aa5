"""The leaves of values: booleans, numbers and elements of sets, each known or a term of z3.

Known values are computed at once: without a term no function here needs z3, and a module is interpreted as by TLC.
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
        MissingTool: It isn't installed.
    """
    return import_extra("z3", "proofs", "a proof")


def is_term(value: object) -> bool:
    """Return whether a value is a term of z3."""
    return hasattr(value, "sexpr")


def conjunction(truths: Iterable[Formula]) -> Formula:
    """Join booleans by *and*."""
    return _joined(truths, True)


def disjunction(truths: Iterable[Formula]) -> Formula:
    """Join booleans by *or*."""
    return _joined(truths, False)


def _joined(truths: Iterable[Formula], neutral: bool) -> Formula:
    """Join booleans; the absorbing value decides at once."""
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
    """Return the implication of a boolean by a condition."""
    return disjunction((negation(condition), truth))


def either(condition: Formula, one: Any, other: Any) -> Any:
    """Choose between two leaves of the same sort."""
    if isinstance(condition, bool):
        return one if condition else other
    if one is other or (not is_term(one) and not is_term(other) and one == other):
        return one
    if is_term(one) and is_term(other) and one.eq(other):
        return one
    return z3().If(condition, one, other)


def equal_leaves(one: Any, other: Any) -> Formula:
    """Return whether two leaves are equal; leaves of different kinds aren't."""
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
    """Return the element of an arbitrary set that a module names by a string."""
    return z3().Const(f'"{name}"', sort)


_BOUND: list[Any] = []
_NUMBERS = itertools.count(1)


def fresh(name: str) -> str:
    """Return a name that no other term has."""
    return f"{name}!{next(_NUMBERS)}"


@contextmanager
def binding(variables: Sequence[Any]) -> Iterator[None]:
    """Bind variables while a formula is built, because an undefined part of it may depend on them."""
    _BOUND.extend(variables)
    try:
        yield
    finally:
        del _BOUND[len(_BOUND) - len(variables) :]


def anything() -> Formula:
    """Return an unknown truth value, for a formula whose value isn't defined."""
    return function_of(fresh("undefined"), list(_BOUND), z3().BoolSort())


def function_of(name: str, arguments: Sequence[Any], sort: Any) -> Any:
    """Return an arbitrary value of a sort, which depends on arguments."""
    if not arguments:
        return z3().Const(name, sort)
    terms = [z3().IntVal(argument) if isinstance(argument, int) else argument for argument in arguments]
    return z3().Function(name, *(term.sort() for term in terms), sort)(*terms)

"""The values of TLA+ over terms of z3: records, functions, sequences, sets, and values that depend on a condition.

A known value has a type of the package pytla, such as `Function`, `tuple`, `frozenset` or `ModelValue`. An arbitrary
function is a `Map`, an arbitrary sequence a `Queue`: each returns the value for an argument. A value with several cases
is `Cases`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ..pytla import Function, ModelValue
from .terms import (
    Formula,
    anything,
    binding,
    conjunction,
    disjunction,
    either,
    equal_leaves,
    function_of,
    implication,
    is_term,
    negation,
    z3,
)


class Unsupported(Exception):
    """An expression outside the supported subset of TLA+."""


class _Undefined:
    """The value of an undefined expression, such as a field of None."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()


@dataclass(frozen=True, slots=True)
class Cases:
    """A value with several cases, each with its condition, of which exactly one holds."""

    cases: tuple[tuple[Formula, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """A TLA+ function whose domain is an arbitrary set."""

    domain: SetOf
    at: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """A sequence of any length; `at` returns the element at an index, from 1."""

    length: Any
    at: Callable[[Any], Any]


class SetOf:
    """A set whose elements aren't listed."""


class Alternative(NamedTuple):
    """An arbitrary element of a set, with its membership condition and its variables."""

    condition: Formula
    value: Any
    variables: tuple[Any, ...]


Binder: TypeAlias = Callable[[Any], Any]
"""A function that returns a new z3 variable of a sort."""


@dataclass(frozen=True)
class Elements(SetOf):
    """A finite set: possible elements, each with its membership condition."""

    items: tuple[tuple[Formula, Any], ...]


@dataclass(frozen=True)
class Arbitrary(SetOf):
    """A nonempty arbitrary set: a constant of the module, about which the proof assumes nothing else."""

    name: str


@dataclass(frozen=True)
class Integers(SetOf):
    """The integers between two bounds, or None for no bound."""

    first: Any
    last: Any


@dataclass(frozen=True)
class Joined(SetOf):
    """Two sets together."""

    one: Any
    other: Any


@dataclass(frozen=True, eq=False)
class Subset(SetOf):
    """The elements of a set that satisfy a condition."""

    base: Any
    condition: Callable[[Any], Formula]


@dataclass(frozen=True)
class Records(SetOf):
    """The set of records that have each field in a given set."""

    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Functions(SetOf):
    """The set of all functions from one set to another set."""

    domain: Any
    range: Any


@dataclass(frozen=True)
class Sequences(SetOf):
    """The set of all sequences whose elements are in a given set."""

    of: Any


@dataclass(frozen=True)
class Subsets(SetOf):
    """The set of all subsets of a given set."""

    of: Any


def cases_of(value: Any) -> tuple[tuple[Formula, Any], ...]:
    """Return the cases of a value; a plain value has one case, with the condition True."""
    return value.cases if isinstance(value, Cases) else ((True, value),)


def merged(cases: Iterable[tuple[Formula, Any]]) -> Any:
    """Return a value with these cases; cases of the same type become one value whose parts depend on the conditions."""
    kinds: dict[Any, tuple[Formula, Any]] = {}
    for condition, value in cases:
        for inner, case in cases_of(value):
            both = conjunction((condition, inner))
            if both is False:
                continue
            if both is True:
                return case
            kind = _kind(case)
            if kind in kinds:
                before, other = kinds[kind]
                kinds[kind] = disjunction((before, both)), _choose(before, other, case)
            else:
                kinds[kind] = both, case
    if len(kinds) == 1:
        return next(iter(kinds.values()))[1]
    return Cases(tuple(kinds.values()))


def _kind(value: Any) -> Any:
    if is_term(value):
        return ("sort", value.sort().name())
    match value:
        case bool():
            return ("sort", "Bool")
        case int():
            return ("sort", "Int")
        case str() | ModelValue():
            return value
        case tuple():
            return ("tuple", len(value))
        case Function():
            return ("record", frozenset(value))
        case frozenset():
            return value
        case SetOf():
            return ("set", id(value))
    return type(value)


def _choose(condition: Formula, one: Any, other: Any) -> Any:
    """Choose between two values of the same kind."""
    match one:
        case tuple():
            return tuple(merged_pair(condition, a, b) for a, b in zip(one, other, strict=True))
        case Function():
            return Function({key: merged_pair(condition, part, other[key]) for key, part in one.items()})
        case Queue():
            return Queue(
                either(condition, one.length, other.length),
                lambda place: merged_pair(condition, one.at(place), other.at(place)),
            )
        case Map():
            return Map(one.domain, lambda key: merged_pair(condition, one.at(key), other.at(key)))
        case str() | ModelValue() | _Undefined() | frozenset():
            return one
    return either(condition, one, other)


def merged_pair(condition: Formula, one: Any, other: Any) -> Any:
    """Return the value that is `one` if a condition holds, and `other` otherwise."""
    if condition is True:
        return one
    if condition is False:
        return other
    return one if one is other else merged(((condition, one), (negation(condition), other)))


def lifted(operation: Callable[..., Any], *values: Any) -> Any:
    """Apply an operation to each combination of the operands' cases."""
    if not any(isinstance(value, Cases) for value in values):
        return UNDEFINED if any(value is UNDEFINED for value in values) else operation(*values)
    found = []
    for chosen in itertools.product(*map(cases_of, values)):
        condition = conjunction(condition for condition, _ in chosen)
        if condition is not False:
            parts = [value for _, value in chosen]
            found.append((condition, UNDEFINED if any(part is UNDEFINED for part in parts) else operation(*parts)))
    return merged(found)


def equal(one: Any, other: Any) -> Formula:
    """Return whether two values are equal."""
    if isinstance(one, Cases) or isinstance(other, Cases):
        return disjunction(
            conjunction((a, b, equal(first, second)))
            for (a, first), (b, second) in itertools.product(cases_of(one), cases_of(other))
        )
    match one, other:
        case (tuple(), tuple()):
            return len(one) == len(other) and conjunction(map(equal, one, other))
        case (Function(), Function()):
            if one.keys() != other.keys():
                return False
            return conjunction(equal(part, other[key]) for key, part in one.items())
        case (frozenset(), frozenset()):
            return one == other
        case (Queue(), tuple() | Queue()) | (tuple(), Queue()):
            return _equal_sequences(one, other)
        case (Map(), Map()):
            same = for_all(one.domain, lambda key: equal(one.at(key), other.at(key)))
            return conjunction((equal(one.domain, other.domain), same))
        case (SetOf() | frozenset(), SetOf() | frozenset()):
            return conjunction((within(one, other), within(other, one)))
    if one is UNDEFINED or other is UNDEFINED:
        return anything()
    leaves = (bool, int, str, ModelValue)
    if (is_term(one) or isinstance(one, leaves)) and (is_term(other) or isinstance(other, leaves)):
        return equal_leaves(one, other)
    return False  # of two kinds


def within(one: Any, other: Any) -> Formula:
    """Return whether a set is a subset of another."""
    return for_all(one, lambda value: contains(other, value))


def _equal_sequences(one: Any, other: Any) -> Formula:
    if isinstance(other, Queue) and isinstance(one, tuple):
        one, other = other, one
    if isinstance(other, tuple):
        return conjunction(
            (equal(one.length, len(other)), *(equal(one.at(place), part) for place, part in enumerate(other, 1)))
        )
    place = z3().FreshInt("place")
    same = implication(z3().And(place >= 1, place <= one.length), equal(one.at(place), other.at(place)))
    return conjunction((equal(one.length, other.length), z3().ForAll([place], same)))


def applied(function: Any, argument: Any) -> Any:
    """Apply a function, a record or a sequence to an argument."""
    return lifted(_applied, function, argument)


def _applied(function: Any, argument: Any) -> Any:
    match function:
        case Map() | Queue():
            return function.at(argument)
        case tuple() if is_term(argument):
            # The last case is undefined, for an index beyond the end of the sequence.
            parts = [(equal(argument, place), part) for place, part in enumerate(function, 1)]
            rest = negation(disjunction(condition for condition, _ in parts))
            return merged([*parts, (rest, UNDEFINED)])
        case tuple():
            return function[argument - 1] if isinstance(argument, int) and 0 < argument <= len(function) else UNDEFINED
        case Function():
            if is_term(argument):
                parts = [(equal(argument, key), part) for key, part in function.items()]
                rest = negation(disjunction(condition for condition, _ in parts))
                return merged([*parts, (rest, UNDEFINED)])
            return function.get(argument, UNDEFINED)
    return UNDEFINED


def domain_of(function: Any) -> Any:
    """Return the domain of a function or a sequence."""
    match function:
        case Map():
            return function.domain
        case Queue():
            return Integers(1, function.length)
        case tuple():
            return frozenset(range(1, len(function) + 1))
    return frozenset(function)


def changed(function: Any, path: Sequence[Any], change: Callable[[Any], Any]) -> Any:
    """Return a copy of a function with another value at a path of arguments, as EXCEPT does."""
    if not path:
        return change(function)
    key, rest = path[0], path[1:]

    def at(function: Any) -> Any:
        match function:
            case Map():
                after = changed(applied(function, key), rest, change)
                return Map(function.domain, lambda other: merged_pair(equal(other, key), after, function.at(other)))
            case Queue():
                after = changed(applied(function, key), rest, change)
                return Queue(function.length, lambda place: merged_pair(equal(place, key), after, function.at(place)))
            case Function() | tuple():
                items = function.items() if isinstance(function, Function) else enumerate(function, 1)
                new = [(other, _changed_part(equal(other, key), part, rest, change)) for other, part in items]
                return Function(new) if isinstance(function, Function) else tuple(part for _, part in new)
        return UNDEFINED

    return lifted(at, function)


def _changed_part(here: Formula, part: Any, rest: Sequence[Any], change: Callable[[Any], Any]) -> Any:
    return part if here is False else merged_pair(here, changed(part, rest, change), part)


def length(sequence: Any) -> Any:
    """Return the length of a sequence."""
    return lifted(_length, sequence)


def _length(sequence: Any) -> Any:
    if isinstance(sequence, Function):
        sequence = sequence.as_sequence()
    return (
        len(sequence) if isinstance(sequence, tuple) else sequence.length if isinstance(sequence, Queue) else UNDEFINED
    )


def concatenated(one: Any, other: Any) -> Any:
    """Append a sequence to another."""
    return lifted(_concatenated, one, other)


def _concatenated(one: Any, other: Any) -> Any:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return one + other
    if other == () or one == ():
        return one if other == () else other
    size = _length(one)

    def at(place: Any) -> Any:
        return merged_pair(place <= size, applied(one, place), applied(other, place - size))

    return Queue(size + _length(other), at)


def part_of(sequence: Any, first: Any, last: Any) -> Any:
    """Return the part of a sequence between two indexes."""

    def part(sequence: Any, first: Any, last: Any) -> Any:
        if isinstance(sequence, tuple) and isinstance(first, int) and isinstance(last, int):
            return sequence[first - 1 : max(last, first - 1)]
        if isinstance(first, int) and isinstance(last, int) and last < first:
            return ()
        before = first - 1
        size = last - before
        size = max(size, 0) if isinstance(size, int) else either(size >= 0, size, 0)
        return Queue(size, lambda place: applied(sequence, place + before))

    return lifted(part, sequence, first, last)


def contains(of: Any, value: Any) -> Formula:
    """Return whether a set contains a value."""
    if isinstance(of, Cases):
        return disjunction(conjunction((condition, contains(case, value))) for condition, case in of.cases)
    if isinstance(of, frozenset) and is_known(value):
        return value in of
    if isinstance(value, Cases):
        return disjunction(conjunction((condition, contains(of, case))) for condition, case in value.cases)
    if value is UNDEFINED:
        return anything()
    match of:
        case frozenset():
            return disjunction(equal(value, other) for other in of)
        case Elements():
            return disjunction(conjunction((condition, equal(value, other))) for condition, other in of.items)
        case Arbitrary():
            return is_term(value) and value.sort().name() == of.name
        case Integers():
            if not _is_integer(value):
                return False
            above = True if of.first is None else of.first <= value
            return conjunction((above, True if of.last is None else value <= of.last))
        case Joined():
            return disjunction((contains(of.one, value), contains(of.other, value)))
        case Subset():
            return conjunction((contains(of.base, value), of.condition(value)))
        case Records():
            if not isinstance(value, Function) or set(value) != {name for name, _ in of.fields}:
                return False
            return conjunction(contains(field, value[name]) for name, field in of.fields)
        case Functions():
            if not isinstance(value, Map | Function | tuple | Queue):
                return False
            parts = for_all(of.domain, lambda key: contains(of.range, applied(value, key)))
            return conjunction((equal(of.domain, domain_of(value)), parts))
        case Sequences():
            if not isinstance(value, tuple | Queue):
                return False
            if isinstance(value, tuple):
                return conjunction(contains(of.of, part) for part in value)
            places = Integers(1, value.length)
            return conjunction((value.length >= 0, for_all(places, lambda at: contains(of.of, value.at(at)))))
        case Subsets():
            return for_all(value, lambda part: contains(of.of, part))
    raise Unsupported(f"whether a value is in {of!r}")


def _is_integer(value: Any) -> bool:
    return bool(z3().is_int(value)) if is_term(value) else isinstance(value, int) and not isinstance(value, bool)


def is_known(value: Any) -> bool:
    """Return whether a value contains no term of z3, and so is completely known."""
    match value:
        case bool() | int() | str() | ModelValue() | frozenset():
            return True
        case tuple():
            return all(map(is_known, value))
        case Function():
            return all(map(is_known, value.values()))
    return False


def alternatives(of: Any, bind: Binder) -> Iterator[Alternative]:
    """Yield arbitrary values that together represent a set: each element of the set is an instance of one of these
    values.

    Raises:
        Unsupported: The set contains functions, sequences or sets.
    """
    match of:
        case Cases():
            for condition, case in of.cases:
                for one in alternatives(case, bind):
                    yield Alternative(conjunction((condition, one.condition)), one.value, one.variables)
        case frozenset():
            for value in sorted(of, key=repr):
                yield Alternative(True, value, ())
        case Elements():
            for condition, value in of.items:
                yield Alternative(condition, value, ())
        case Arbitrary():
            variable = bind(z3().DeclareSort(of.name))
            yield Alternative(True, variable, (variable,))
        case Integers(first=int(first), last=int(last)):
            for number in range(first, last + 1):
                yield Alternative(True, number, ())
        case Integers():
            variable = bind(z3().IntSort())
            yield Alternative(contains(of, variable), variable, (variable,))
        case Joined():
            yield from alternatives(of.one, bind)
            yield from alternatives(of.other, bind)
        case Subset():
            for condition, value, variables in alternatives(of.base, bind):
                yield Alternative(conjunction((condition, of.condition(value))), value, variables)
        case Records():
            names = [name for name, _ in of.fields]
            for chosen in itertools.product(*(list(alternatives(field, bind)) for _, field in of.fields)):
                yield Alternative(
                    conjunction(one.condition for one in chosen),
                    Function(zip(names, (one.value for one in chosen), strict=True)),
                    tuple(variable for one in chosen for variable in one.variables),
                )
        case _:
            raise Unsupported(f"each element of {of!r}")


def for_all(of: Any, holds: Callable[[Any], Formula]) -> Formula:
    """Return the formula *all elements of the set satisfy the predicate*."""
    return conjunction(_quantified(one, holds, implication) for one in alternatives(of, _variable))


def exists(of: Any, holds: Callable[[Any], Formula]) -> Formula:
    """Return the formula *some element of the set satisfies the predicate*."""
    return disjunction(_quantified(one, holds, _both) for one in alternatives(of, _variable))


def _variable(sort: Any) -> Any:
    return z3().FreshConst(sort)


def _both(condition: Formula, truth: Formula) -> Formula:
    return conjunction((condition, truth))


def _quantified(
    one: Alternative, holds: Callable[[Any], Formula], join: Callable[[Formula, Formula], Formula]
) -> Formula:
    with binding(one.variables):
        truth = join(one.condition, holds(one.value))
    if not one.variables or isinstance(truth, bool):
        return truth
    return (z3().ForAll if join is implication else z3().Exists)(list(one.variables), truth)


def arbitrary(of: Any, name: str, longest: int | None = None, arguments: Sequence[Any] = ()) -> Any:
    """Return an arbitrary value with the type of a set's elements, which may depend on arguments.

    The value has only the right type. The membership formula adds further conditions, such as bounds.

    Args:
        of: The set.
        name: The prefix of the names of the value's terms.
        longest: The largest length of a sequence, or None for any length.
        arguments: The arguments on which the value depends.

    Raises:
        Unsupported: The set's elements are sets.
    """
    match of:
        case Functions():
            keys = known_elements(of.domain)
            if keys is not None:
                items = [(key, arbitrary(of.range, f"{name}[{key}]", longest, arguments)) for key in keys]
                return as_sequence(Function(items))
            return Map(of.domain, lambda key: lifted(lambda at: _at(of.range, name, longest, arguments, at), key))
        case Sequences() if longest is not None:
            parts = [arbitrary(of.of, f"{name}[{place}]", longest, arguments) for place in range(1, longest + 1)]
            return _one_of([tuple(parts[:size]) for size in range(longest + 1)], f"Len({name})", arguments)
        case Sequences():
            size = function_of(f"Len({name})", arguments, z3().IntSort())
            return Queue(size, lambda place: arbitrary(of.of, f"{name}[_]", longest, (*arguments, place)))
        case Records():
            return Function(
                (field, arbitrary(part, f"{name}.{field}", longest, arguments)) for field, part in of.fields
            )
        case Arbitrary():
            return function_of(name, arguments, z3().DeclareSort(of.name))
        case Integers():
            return function_of(name, arguments, z3().IntSort())
        case frozenset() | Elements() if known := known_elements(of):
            return _one_of(known, name, arguments)
        case Joined():
            parts = [arbitrary(part, name, longest, arguments) for part in (of.one, of.other)]
            return _one_of(parts, f"{name} is", arguments)
        case Cases():
            return merged((condition, arbitrary(case, name, longest, arguments)) for condition, case in of.cases)
    raise Unsupported(f"{name}: a variable in {of!r}")


def _at(of: Any, name: str, longest: int | None, arguments: Sequence[Any], key: Any) -> Any:
    if is_term(key):
        return arbitrary(of, name, longest, (*arguments, key))
    return arbitrary(of, f"{name}[{key}]", longest, arguments)


def _one_of(values: Sequence[Any], name: str, arguments: Sequence[Any]) -> Any:
    rest: Formula = True
    cases = []
    for number, value in enumerate(values):
        here = True if value is values[-1] else function_of(f"{name}?{number}", arguments, z3().BoolSort())
        cases.append((conjunction((rest, here)), value))
        rest = conjunction((rest, negation(here)))
    return merged(cases)


def as_sequence(function: Function) -> Any:
    """Return a function with the domain 1..n as a sequence, and any other function unchanged."""
    sequence = function.as_sequence()
    return function if sequence is None else sequence


def known_cases(number: Any) -> list[tuple[Formula, int]] | None:
    """Return the possible numbers of a term, each with its condition, or None if the numbers are unknown."""
    if isinstance(number, int):
        return [(True, number)]
    if z3().is_int_value(number):
        return [(True, number.as_long())]
    if z3().is_app_of(number, z3().Z3_OP_ITE):
        condition, one, other = number.children()
        first, second = known_cases(one), known_cases(other)
        if first is not None and second is not None:
            return [(conjunction((condition, inner)), size) for inner, size in first] + [
                (conjunction((negation(condition), inner)), size) for inner, size in second
            ]
    return None


def known_elements(of: Any) -> list[Any] | None:
    """Return the elements of a set if all are known; otherwise None."""
    if isinstance(of, frozenset):
        return sorted(of, key=repr)
    if isinstance(of, Elements):
        values = [value for condition, value in of.items if condition is True]
        return values if len(values) == len(of.items) and all(map(is_known, values)) else None
    if isinstance(of, Integers) and isinstance(of.first, int) and isinstance(of.last, int):
        return list(range(of.first, of.last + 1))
    if isinstance(of, Joined):
        one, other = known_elements(of.one), known_elements(of.other)
        return None if one is None or other is None else [*one, *(value for value in other if value not in one)]
    if isinstance(of, Subset):
        base = known_elements(of.base)
        if base is not None:
            truths = [of.condition(value) for value in base]
            if all(isinstance(truth, bool) for truth in truths):
                return [value for value, truth in zip(base, truths, strict=True) if truth]
    return None

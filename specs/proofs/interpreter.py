"""Evaluates a module's definitions, on known states as TLC does, and on arbitrary states as terms of z3.

The interpreter supports the subset of TLA+ in the modules of this catalogue. The error for an unsupported operator
names the operator and its line.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..pytla import Function
from ..pytla.syntax import Apply, At, Bound, Constant, Let, Syntax, TlaDefinition, TlaExpression
from .terms import Formula, anything, conjunction, disjunction, fresh, implication, is_term, negation, z3
from .values import (
    UNDEFINED,
    Cases,
    Elements,
    Functions,
    Integers,
    Joined,
    Map,
    Queue,
    Records,
    Sequences,
    Subset,
    Subsets,
    Unsupported,
    alternatives,
    applied,
    as_sequence,
    cases_of,
    changed,
    concatenated,
    contains,
    domain_of,
    equal,
    exists,
    for_all,
    is_known,
    known_cases,
    known_elements,
    length,
    lifted,
    merged,
    part_of,
    within,
)

VariableValues = Mapping[str, Any]

ACTION_LEVEL = 2
"""The level of an expression with primes (`Apply.level`)."""


class Closure(NamedTuple):
    """An operator that is passed as an argument, with the frame in which it was passed."""

    operator: Apply
    frame: Frame


@dataclass(frozen=True)
class Frame:
    """The values of names in a scope of a module.

    Attributes:
        state: The values of the variables.
        after: The known values of the primed variables, or None outside of actions.
        parameters: The values of parameters, by the identities of the parameters.
        at: The value of `@`.
        known: The values of definitions without parameters that were already evaluated.
    """

    state: VariableValues
    after: VariableValues | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    at: Any = None
    known: dict[str, Any] = field(default_factory=dict)

    def having(self, parameters: Mapping[str, Any]) -> Frame:
        """Return a copy of the frame with additional parameters."""
        return replace(self, parameters={**self.parameters, **parameters}, known={})


class Branch(NamedTuple):
    """One possible step of an action: the step's condition, and the variables after the step."""

    condition: Formula
    after: VariableValues


class Interpreter:
    """A module whose constants have values.

    Attributes:
        syntax: The module.
        constants: The constants' values; `Arbitrary` is a set without any known property.
    """

    def __init__(self, syntax: Syntax, constants: Mapping[str, Any]) -> None:
        self.syntax = syntax
        self.constants = constants
        self._constant_definitions: dict[str, Any] = {}
        self._lazy: Mapping[str, Callable[[Apply, Frame], Any]] = {
            "$IfThenElse": self._chosen, "$Case": self._chosen, "\\land": self._and, "$ConjList": self._and,
            "\\lor": self._or, "$DisjList": self._or, "=>": self._implies, "$BoundedForall": self._for_all,
            "$BoundedExists": self._exists, "$FcnConstructor": self._function, "$RecursiveFcnSpec": self._function,
            "$SetOfAll": self._set_of_all, "$SubsetOf": self._subset, "$Except": self._except, "'": self._primed,
            "UNCHANGED": self._unchanged, "$RcdConstructor": self._record, "$SetOfRcds": self._records,
            "$BoundedChoose": self._choose, "SelectSeq": self._select_seq,
        }  # fmt: skip

    # --- expressions -------------------------------------------------------------------------------------------------

    def value(self, expression: TlaExpression, frame: Frame) -> Any:
        """Evaluate an expression.

        Raises:
            Unsupported: The expression isn't supported; the message contains its file and line.
        """
        match expression:
            case Constant():
                return expression.value
            case Let():
                return self.value(expression.body, replace(frame, known={}))
            case At():
                return frame.at
        if expression.kind == "variable":
            return frame.state[expression.operator]
        if expression.kind == "constant":
            return self.constants[expression.operator]
        if expression.kind == "parameter":
            value = frame.parameters[expression.operator]
            return self._call(value, expression, frame) if isinstance(value, Closure) else value
        if expression.kind == "defined":
            return self._defined(expression, frame)
        return self._built_in(expression, frame)

    def truth(self, expression: TlaExpression, frame: Frame) -> Formula:
        """Evaluate a formula; an undefined formula may have any value."""
        value = self.value(expression, frame)
        if isinstance(value, bool) or (is_term(value) and z3().is_bool(value)):
            return value
        return disjunction(
            conjunction((condition, self._truth(case, expression))) for condition, case in cases_of(value)
        )

    def _truth(self, value: Any, expression: TlaExpression) -> Formula:
        if value is UNDEFINED:
            return anything()
        if isinstance(value, bool) or (is_term(value) and z3().is_bool(value)):
            return value
        raise Unsupported(f"{expression.location}: not a boolean but {value!r}")

    def formula(self, name: str, frame: Frame) -> Formula:
        """Evaluate a formula by the name of its definition."""
        return self.truth(self.syntax.named(name).body, frame)

    def _defined(self, expression: Apply, frame: Frame) -> Any:
        definition = self.syntax.definitions[expression.operator]
        if not definition.parameters:
            if isinstance(definition.body, Apply) and definition.body.level == 0:
                if expression.operator not in self._constant_definitions and not frame.parameters:
                    self._constant_definitions[expression.operator] = self.value(definition.body, frame)
                if expression.operator in self._constant_definitions:
                    return self._constant_definitions[expression.operator]
            if expression.operator not in frame.known:
                frame.known[expression.operator] = self.value(definition.body, frame)
            return frame.known[expression.operator]
        return self.value(definition.body, self._entered(definition, expression, frame))

    def _entered(self, definition: TlaDefinition, expression: Apply, frame: Frame) -> Frame:
        """Return the frame of a definition's body."""
        given = map(self._argument, expression.operands, itertools.repeat(frame))
        return frame.having(dict(zip(definition.parameters, given, strict=True)))

    def _argument(self, operand: TlaExpression, frame: Frame) -> Any:
        """Return the value of an operand, or an operator that is an argument."""
        if isinstance(operand, Apply) and operand.kind == "defined":
            definition = self.syntax.definitions[operand.operator]
            if definition.parameters and not operand.operands:
                return Closure(operand, frame)
        return self.value(operand, frame)

    def _call(self, closure: Closure, expression: Apply, frame: Frame) -> Any:
        definition = self.syntax.definitions[closure.operator.operator]
        given = [self._argument(operand, frame) for operand in expression.operands]
        return self.value(definition.body, closure.frame.having(dict(zip(definition.parameters, given, strict=True))))

    def _called_with(self, operator: TlaExpression, frame: Frame, value: Any) -> Formula:
        """Call an operator that was passed as an argument, with one value."""
        closure = self._argument(operator, frame)
        if not isinstance(closure, Closure):
            raise Unsupported(f"{operator.location}: an operator is expected here")
        definition = self.syntax.definitions[closure.operator.operator]
        return self.truth(definition.body, closure.frame.having({definition.parameters[0]: value}))

    def _built_in(self, expression: Apply, frame: Frame) -> Any:
        lazy = self._lazy.get(expression.operator)
        if lazy is not None:
            return lazy(expression, frame)
        strict = _STRICT.get(expression.operator)
        if strict is None:
            raise Unsupported(f"{expression.location}: the operator {expression.operator} isn't supported")
        return strict(*(self.value(operand, frame) for operand in expression.operands))

    def _chosen(self, expression: Apply, frame: Frame) -> Any:
        cases = self._arms(expression, frame, True)
        return merged((here, UNDEFINED if body is None else self.value(body, frame)) for here, body in cases)

    def _arms(
        self, expression: Apply, frame: Frame, condition: Formula
    ) -> Iterator[tuple[Formula, TlaExpression | None]]:
        """Yield the branches of an IF or a CASE, each with its condition; A pair with None for the branch means that no
        branch applies.
        """
        for test, body in _tests(expression):
            holds = True if test is None else self.truth(test, frame)
            here = conjunction((condition, holds))
            if here is not False:
                yield here, body
            condition = conjunction((condition, negation(holds)))
            if condition is False:
                return
        yield condition, None

    def _and(self, expression: Apply, frame: Frame) -> Formula:
        return conjunction(self.truth(operand, frame) for operand in expression.operands)

    def _or(self, expression: Apply, frame: Frame) -> Formula:
        return disjunction(self.truth(operand, frame) for operand in expression.operands)

    def _implies(self, expression: Apply, frame: Frame) -> Formula:
        condition = self.truth(expression.operands[0], frame)
        return True if condition is False else implication(condition, self.truth(expression.operands[1], frame))

    def _for_all(self, expression: Apply, frame: Frame) -> Formula:
        return self._quantified(for_all, expression, list(_bound(expression.bounds)), frame)

    def _exists(self, expression: Apply, frame: Frame) -> Formula:
        return self._quantified(exists, expression, list(_bound(expression.bounds)), frame)

    def _quantified(
        self, quantifier: Any, expression: Apply, bounds: list[tuple[str, TlaExpression]], frame: Frame
    ) -> Formula:
        if not bounds:
            return self.truth(expression.operands[0], frame)
        (parameter, over), *rest = bounds
        return quantifier(
            self.value(over, frame),
            lambda value: self._quantified(quantifier, expression, rest, frame.having({parameter: value})),
        )

    def _function(self, expression: Apply, frame: Frame) -> Any:
        (parameter, over), *others = _bound(expression.bounds)
        if others or expression.operator == "$RecursiveFcnSpec":
            raise Unsupported(f"{expression.location}: a function of several arguments, or a recursive function")
        domain = self.value(over, frame)
        body = expression.operands[0]
        keys = known_elements(domain)
        if keys is not None:
            items = Function((key, self.value(body, frame.having({parameter: key}))) for key in keys)
            return as_sequence(items)
        if isinstance(domain, Integers) and isinstance(domain.first, int) and domain.first == 1:
            sizes = known_cases(domain.last)
            if sizes is None:
                return Queue(domain.last, lambda place: self.value(body, frame.having({parameter: place})))
            return merged(
                (condition, tuple(self.value(body, frame.having({parameter: place})) for place in range(1, size + 1)))
                for condition, size in sizes
            )
        return Map(domain, lambda key: lifted(lambda one: self.value(body, frame.having({parameter: one})), key))

    def _set_of_all(self, expression: Apply, frame: Frame) -> Any:
        items = []
        for frame_here, condition in self._each(list(_bound(expression.bounds)), frame, expression):
            items.append((condition, self.value(expression.operands[0], frame_here)))
        return _elements(items)

    def _each(
        self, bounds: list[tuple[str, TlaExpression]], frame: Frame, where: Apply
    ) -> Iterator[tuple[Frame, Formula]]:
        if not bounds:
            yield frame, True
            return
        (parameter, over), *rest = bounds
        for one in _finite(self.value(over, frame), where):
            for inner, condition in self._each(rest, frame.having({parameter: one[1]}), where):
                both = conjunction((one[0], condition))
                if both is not False:
                    yield inner, both

    def _subset(self, expression: Apply, frame: Frame) -> Any:
        (parameter, over), *_ = _bound(expression.bounds)
        base = self.value(over, frame)

        def holds(value: Any) -> Formula:
            return self.truth(expression.operands[0], frame.having({parameter: value}))

        try:
            items = _finite(base, expression)
        except Unsupported:
            return Subset(base, holds)
        return _elements([(conjunction((condition, holds(value))), value) for condition, value in items])

    def _choose(self, expression: Apply, frame: Frame) -> Any:
        (parameter, over), *_ = _bound(expression.bounds)
        rest: Formula = True
        found = []
        for condition, value in _finite(self.value(over, frame), expression):
            holds = conjunction((condition, self.truth(expression.operands[0], frame.having({parameter: value}))))
            found.append((conjunction((rest, holds)), value))
            rest = conjunction((rest, negation(holds)))
            if rest is False:
                break
        return merged([*found, (rest, UNDEFINED)])

    def _select_seq(self, expression: Apply, frame: Frame) -> Any:
        sequence, operator = expression.operands

        def selected(sequence: Any) -> Any:
            if isinstance(sequence, Function):
                sequence = sequence.as_sequence()
            if not isinstance(sequence, tuple):
                raise Unsupported(f"{expression.location}: SelectSeq of a sequence of any length")
            found: list[tuple[Formula, Any]] = [(True, ())]
            for part in sequence:
                holds = self._called_with(operator, frame, part)
                found = [
                    (conjunction((condition, truth)), (*chosen, part) if taken else chosen)
                    for condition, chosen in found
                    for truth, taken in ((holds, True), (negation(holds), False))
                ]
            return merged(found)

        return lifted(selected, self.value(sequence, frame))

    def _except(self, expression: Apply, frame: Frame) -> Any:
        function = self.value(expression.operands[0], frame)
        for pair in expression.operands[1:]:
            assert isinstance(pair, Apply)
            assert isinstance(pair.operands[0], Apply)
            path = [self.value(key, frame) for key in pair.operands[0].operands]
            function = changed(function, path, functools.partial(self._new_part, pair.operands[1], frame))
        return function

    def _new_part(self, value: TlaExpression, frame: Frame, old: Any) -> Any:
        return self.value(value, replace(frame, at=old))

    def _record(self, expression: Apply, frame: Frame) -> Any:
        return Function((name, self.value(value, frame)) for name, value in _fields(expression))

    def _records(self, expression: Apply, frame: Frame) -> Any:
        return Records(tuple((name, self.value(value, frame)) for name, value in _fields(expression)))

    def _primed(self, expression: Apply, frame: Frame) -> Any:
        assert frame.after is not None, f"{expression.location}: a prime outside of an action"
        return self.value(expression.operands[0], replace(frame, state=frame.after, after=None, known={}))

    def _unchanged(self, expression: Apply, frame: Frame) -> Formula:
        assert frame.after is not None
        return conjunction(
            equal(frame.after[name], frame.state[name]) for name in self._variables(expression.operands[0])
        )

    def _variables(self, expression: TlaExpression) -> list[str]:
        """Return the variables that UNCHANGED lists."""
        assert isinstance(expression, Apply)
        if expression.kind == "variable":
            return [expression.operator]
        if expression.kind == "defined":
            return self._variables(self.syntax.definitions[expression.operator].body)
        return [name for operand in expression.operands for name in self._variables(operand)]

    # --- actions -----------------------------------------------------------------------------------------------------

    def branches(self, action: TlaExpression, frame: Frame) -> Iterator[Branch]:
        """Yield the possible steps of an action. As in TLC, the first `x' = …` assigns a variable its value after the
        step. An element that ∃ chooses from an unknown set is a constant in that set.
        """
        start = replace(frame, after={} if frame.after is None else frame.after)
        yield from self._ways(action, start, True)

    def _ways(self, action: TlaExpression, frame: Frame, condition: Formula) -> Iterator[Branch]:
        assert frame.after is not None
        if isinstance(action, Let):
            yield from self._ways(action.body, replace(frame, known={}), condition)
            return
        if not isinstance(action, Apply) or action.level < ACTION_LEVEL:
            yield from self._guard(action, frame, condition)
            return
        match action.operator:
            case "\\land" | "$ConjList":
                yield from self._all_of(list(action.operands), frame, condition)
            case "\\lor" | "$DisjList":
                for operand in action.operands:
                    yield from self._ways(operand, frame, condition)
            case "$BoundedExists":
                yield from self._some(list(_bound(action.bounds)), action, frame, condition)
            case "$IfThenElse" | "$Case":
                for here, body in self._arms(action, frame, condition):
                    if body is not None:
                        yield from self._ways(body, frame, here)
            case "UNCHANGED":
                yield from self._kept(action, frame, condition)
            case "=" | "\\in" if self._assigned(action.operands[0]) is not None:
                yield from self._assignment(action, frame, condition)
            case _ if action.kind == "defined":
                definition = self.syntax.definitions[action.operator]
                inside = self._entered(definition, action, frame) if definition.parameters else frame
                yield from self._ways(definition.body, inside, condition)
            case _:
                yield from self._guard(action, frame, condition)

    def _guard(self, action: TlaExpression, frame: Frame, condition: Formula) -> Iterator[Branch]:
        assert frame.after is not None
        holds = conjunction((condition, self.truth(action, frame)))
        if holds is not False:
            yield Branch(holds, frame.after)

    def _all_of(self, actions: list[TlaExpression], frame: Frame, condition: Formula) -> Iterator[Branch]:
        if not actions:
            assert frame.after is not None
            yield Branch(condition, frame.after)
            return
        for way in self._ways(actions[0], frame, condition):
            yield from self._all_of(actions[1:], replace(frame, after=way.after, known={}), way.condition)

    def _some(
        self, bounds: list[tuple[str, TlaExpression]], action: Apply, frame: Frame, condition: Formula
    ) -> Iterator[Branch]:
        if not bounds:
            yield from self._ways(action.operands[0], frame, condition)
            return
        (parameter, over), *rest = bounds
        name = self.syntax.parameters[parameter]
        for one in alternatives(self.value(over, frame), lambda sort: z3().Const(fresh(name), sort)):
            both = conjunction((condition, one.condition))
            if both is not False:
                yield from self._some(rest, action, frame.having({parameter: one.value}), both)

    def _kept(self, action: Apply, frame: Frame, condition: Formula) -> Iterator[Branch]:
        assert frame.after is not None
        after = dict(frame.after)
        for name in self._variables(action.operands[0]):
            if name in after:
                condition = conjunction((condition, equal(after[name], frame.state[name])))
            after[name] = frame.state[name]
        if condition is not False:
            yield Branch(condition, after)

    def _assigned(self, target: TlaExpression) -> str | None:
        """Return the variable of `x'`."""
        if isinstance(target, Apply) and target.operator == "'" and target.kind == "built-in":
            inner = target.operands[0]
            if isinstance(inner, Apply) and inner.kind == "variable":
                return inner.operator
        return None

    def _assignment(self, action: Apply, frame: Frame, condition: Formula) -> Iterator[Branch]:
        assert frame.after is not None
        name = self._assigned(action.operands[0])
        assert name is not None
        value = self.value(action.operands[1], frame)
        if name in frame.after:
            same = equal(frame.after[name], value) if action.operator == "=" else contains(value, frame.after[name])
            if (holds := conjunction((condition, same))) is not False:
                yield Branch(holds, frame.after)
        elif action.operator == "=":
            yield Branch(condition, {**frame.after, name: value})
        else:
            for one in alternatives(value, lambda sort: z3().Const(fresh(name), sort)):
                if (holds := conjunction((condition, one.condition))) is not False:
                    yield Branch(holds, {**frame.after, name: one.value})


def _bound(bounds: tuple[Bound, ...]) -> Iterator[tuple[str, TlaExpression]]:
    for bound in bounds:
        for parameter in bound.parameters:
            yield parameter, bound.set


def _tests(expression: Apply) -> Iterator[tuple[TlaExpression | None, TlaExpression]]:
    """Yield the branches of an IF or a CASE in order, each with its test, which is None for ELSE and OTHER."""
    if expression.operator == "$IfThenElse":
        test, body, other = expression.operands
        yield test, body
        yield None, other
        return
    for pair in expression.operands:
        assert isinstance(pair, Apply)
        test, body = pair.operands
        yield None if isinstance(test, Constant) and test.value == "$Other" else test, body


def _fields(expression: Apply) -> Iterator[tuple[str, TlaExpression]]:
    for pair in expression.operands:
        assert isinstance(pair, Apply)
        name, value = pair.operands
        assert isinstance(name, Constant)
        yield str(name.value), value


def _elements(items: list[tuple[Formula, Any]]) -> Any:
    """Return a finite set of elements, each with its membership condition; if all conditions are known, a known set."""
    kept = [(condition, value) for condition, value in items if condition is not False]
    if all(condition is True and is_known(value) for condition, value in kept):
        return frozenset(value for _, value in kept)
    return Elements(tuple((inner, case) for condition, value in kept for inner, case in _flat(condition, value)))


def _flat(condition: Formula, value: Any) -> Iterator[tuple[Formula, Any]]:
    for inner, case in cases_of(value):
        yield conjunction((condition, inner)), case


def _finite(of: Any, where: Apply) -> list[tuple[Formula, Any]]:
    """Return the elements of a set, each with the condition of its membership."""
    if isinstance(of, Cases):
        return [
            (conjunction((condition, inner)), value)
            for condition, case in of.cases
            for inner, value in _finite(case, where)
        ]
    if isinstance(of, Elements):
        return list(of.items)
    if isinstance(of, Joined):
        return [*_finite(of.one, where), *_finite(of.other, where)]
    known = known_elements(of)
    if known is not None:
        return [(True, value) for value in known]
    raise Unsupported(f"{where.location}: the elements of a set of any size, {of!r}")


def _number(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def numbers(one: Any, other: Any) -> Any:
        known = all(isinstance(value, int) or (is_term(value) and z3().is_int(value)) for value in (one, other))
        return operation(one, other) if known else UNDEFINED

    return functools.partial(lifted, numbers)


def _union(one: Any, other: Any) -> Any:
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return one | other
    if isinstance(one, frozenset | Elements) and isinstance(other, frozenset | Elements):
        return Elements((*_items(one), *_items(other)))
    return Joined(one, other)


def _items(of: Any) -> tuple[tuple[Formula, Any], ...]:
    return of.items if isinstance(of, Elements) else tuple((True, value) for value in sorted(of, key=repr))


def _meet(one: Any, other: Any) -> Any:
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return one & other
    base, test = (one, other) if isinstance(one, frozenset | Elements) else (other, one)
    return _filtered(base, lambda value: contains(test, value))


def _without(one: Any, other: Any) -> Any:
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return one - other
    return _filtered(one, lambda value: negation(contains(other, value)))


def _filtered(base: Any, condition: Callable[[Any], Formula]) -> Any:
    if isinstance(base, frozenset | Elements):
        return _elements([(conjunction((inside, condition(value))), value) for inside, value in _items(base)])
    return Subset(base, condition)


def _interval(first: Any, last: Any) -> Any:
    if isinstance(first, int) and isinstance(last, int):
        return frozenset(range(first, last + 1))
    return Integers(first, last)


def _set(*values: Any) -> Any:
    return _elements([(True, value) for value in values])


def _cardinality(of: Any) -> Any:
    if isinstance(of, frozenset):
        return len(of)
    raise Unsupported(f"the cardinality of {of!r}")


def _united(of: Any) -> Any:
    if isinstance(of, frozenset):
        return frozenset(itertools.chain.from_iterable(of))
    raise Unsupported(f"the union of {of!r}")


def _tail(sequence: Any) -> Any:
    return part_of(sequence, 2, length(sequence))


_STRICT: Mapping[str, Callable[..., Any]] = {
    "=": equal,
    "/=": lambda one, other: negation(equal(one, other)),
    "\\equiv": equal,
    "\\lnot": functools.partial(lifted, negation),
    "\\in": lambda value, of: contains(of, value),
    "\\notin": lambda value, of: negation(contains(of, value)),
    "\\subseteq": within,
    "\\union": functools.partial(lifted, _union),
    "\\intersect": functools.partial(lifted, _meet),
    "\\": functools.partial(lifted, _without),
    "$SetEnumerate": _set,
    "SUBSET": Subsets,
    "UNION": functools.partial(lifted, _united),
    "Cardinality": functools.partial(lifted, _cardinality),
    "$SetOfFcns": Functions,
    "$Tuple": lambda *values: tuple(values),
    "$Seq": lambda *values: tuple(values),
    "$FcnApply": applied,
    "$RcdSelect": applied,
    "DOMAIN": functools.partial(lifted, domain_of),
    "Len": length,
    "Append": lambda sequence, value: concatenated(sequence, (value,)),
    "\\o": concatenated,
    "SubSeq": part_of,
    "Head": lambda sequence: applied(sequence, 1),
    "Tail": _tail,
    "Seq": Sequences,
    "..": functools.partial(lifted, _interval),
    "+": _number(lambda one, other: one + other),
    "-": _number(lambda one, other: one - other),
    "*": _number(lambda one, other: one * other),
    "\\div": _number(
        lambda one, other: one // other if isinstance(one, int) and isinstance(other, int) else one / other
    ),
    "-.": functools.partial(lifted, lambda number: -number),
    "<": _number(lambda one, other: one < other),
    ">": _number(lambda one, other: one > other),
    "\\leq": _number(lambda one, other: one <= other),
    "\\geq": _number(lambda one, other: one >= other),
    "Nat": lambda: Integers(0, None),
    "Int": lambda: Integers(None, None),
    "TRUE": lambda: True,
    "FALSE": lambda: False,
    "BOOLEAN": lambda: frozenset((True, False)),
}

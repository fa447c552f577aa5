"""Proofs by induction: an invariant holds initially, each action preserves the invariant, and the invariant implies the
properties.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..pytla.syntax import Apply, Let, Syntax, TlaExpression
from .interpreter import Branch, Frame, Interpreter
from .terms import Formula
from .values import Unsupported, arbitrary


class Way(NamedTuple):
    """One possible step of an action; for a claim without an action, the state alone.

    Attributes:
        condition: The condition under which the step is possible.
        goal: The formula to show.
        after: The state after the step, or None for a claim without an action.
    """

    condition: Formula
    goal: Formula
    after: Mapping[str, Any] | None


class Claim(NamedTuple):
    """The claim of a condition: a conjunct of the invariant holds initially, an action preserves the conjunct, or the
    invariant implies a property.

    Attributes:
        part: The conjunct of the invariant, or the property.
        action: The action that preserves the conjunct, or None for other claims.
        at_first: Whether the claim is about the initial states.
    """

    part: str
    action: str | None = None
    at_first: bool = False

    def __str__(self) -> str:
        if self.at_first:
            return f"{self.part} at first"
        return f"{self.action} keeps {self.part}" if self.action else f"the invariant implies {self.part}"


class Condition(NamedTuple):
    """A condition of a proof, as terms of the solver.

    Attributes:
        claim: What it says.
        hypotheses: What is known.
        before: The state before the action.
        ways: The possible steps of the action, each with its goal.
    """

    claim: Claim
    hypotheses: tuple[Formula, ...]
    before: Mapping[str, Any]
    ways: tuple[Way, ...]


class Induction:
    """A proof that an invariant of a module is inductive, and implies properties.

    Args:
        syntax: The module.
        constants: The constants' values; some of the values are arbitrary.
        invariant: The name of the invariant, a conjunction of definitions.
        properties: The names of the properties.
        longest: The largest length of a sequence, or None for any length, as a proof requires.
        first: The name of the initial predicate.
        step: The name of the next-state relation.

    Raises:
        Unsupported: The module contains unsupported TLA+; the message contains the file and line.
    """

    def __init__(
        self,
        syntax: Syntax,
        constants: Mapping[str, Any],
        invariant: str,
        properties: Sequence[str],
        longest: int | None = None,
        first: str = "Init",
        step: str = "Next",
    ) -> None:
        self.syntax = syntax
        self._mentioned: dict[TlaExpression, frozenset[str]] = {}
        self._first = syntax.named(first).body
        self.interpreter = Interpreter(syntax, constants)
        self._parts = _each_named(self._conjuncts(syntax.named(invariant).body, invariant))
        self._properties = {name: syntax.named(name).body for name in properties}
        self.before = self._arbitrary_state(longest)
        self._actions = _each_named(self._disjuncts(syntax.named(step).body))

    @functools.cached_property
    def known(self) -> tuple[Formula, ...]:
        """Return the invariant, evaluated in the state before the action."""
        return tuple(self._truth(formula, self.before) for formula in self._parts.values())

    @functools.cached_property
    def _initial(self) -> list[Branch]:
        return list(self.interpreter.branches(self._primed(self._first), Frame({})))

    @functools.cached_property
    def _branches(self) -> dict[str, list[Branch]]:
        frame = Frame(self.before)
        return {name: list(self.interpreter.branches(action, frame)) for name, action in self._actions.items()}

    def claims(self) -> Iterator[Claim]:
        """Yield the claims that together form the proof."""
        yield from (Claim(part, at_first=True) for part in self._parts)
        yield from (Claim(part, action) for action in self._actions for part in self._parts)
        for name, formula in self._properties.items():
            if _stepwise(formula) is None:
                yield Claim(name)
            else:
                yield from (Claim(name, action) for action in self._actions)

    def condition(self, claim: Claim) -> Condition:
        """Build the condition of a claim."""
        formula = self._parts.get(claim.part) or self._properties[claim.part]
        if claim.at_first:
            ways = [Way(condition, self._truth(formula, after), after) for condition, after in self._initial]
            return Condition(claim, (), {}, tuple(ways))
        if claim.action is None:
            return Condition(claim, self.known, self.before, (Way(True, self._truth(formula, self.before), None),))
        step = _stepwise(formula)
        ways = [
            Way(condition, self._kept(formula, after) if step is None else self._step(step, after), after)
            for condition, after in self._branches[claim.action]
        ]
        return Condition(claim, self.known, self.before, tuple(ways))

    def _kept(self, formula: TlaExpression, after: Mapping[str, Any]) -> Formula:
        """Return the formula *this conjunct holds after the action*, which is True if the action changes none of its
        variables.
        """
        if all(after[name] is self.before[name] for name in self._variables(formula)):
            return True
        return self._truth(formula, after)

    def _variables(self, formula: TlaExpression) -> frozenset[str]:
        """Return the variables of a formula, including the variables of its definitions."""
        if formula not in self._mentioned:
            self._mentioned[formula] = frozenset(self._each_variable(formula, set()))
        return self._mentioned[formula]

    def _each_variable(self, formula: TlaExpression, seen: set[str]) -> Iterator[str]:
        if isinstance(formula, Let):
            yield from self._each_variable(formula.body, seen)
        if not isinstance(formula, Apply):
            return
        if formula.kind == "variable":
            yield formula.operator
        if formula.kind == "defined" and formula.operator not in seen:
            seen.add(formula.operator)
            yield from self._each_variable(self.syntax.definitions[formula.operator].body, seen)
        for part in (*formula.operands, *(bound.set for bound in formula.bounds)):
            yield from self._each_variable(part, seen)

    def _step(self, formula: TlaExpression, after: Mapping[str, Any]) -> Formula:
        return self.interpreter.truth(formula, Frame(self.before, after))

    def _primed(self, formula: TlaExpression) -> TlaExpression:
        """Return a state formula with primed variables, in which `x = e` assigns the variable its first value."""
        if not isinstance(formula, Apply):
            return formula
        if formula.kind == "defined" and not formula.operands:
            return self._primed(self.syntax.definitions[formula.operator].body)
        if formula.operator in ("\\land", "$ConjList"):
            return replace(formula, operands=tuple(map(self._primed, formula.operands)), level=2)
        target = formula.operands[0] if formula.operands else None
        if formula.operator in ("=", "\\in") and isinstance(target, Apply) and target.kind == "variable":
            primed = Apply("'", "built-in", (target,), (), 2, formula.location)
            return replace(formula, operands=(primed, *formula.operands[1:]), level=2)
        return formula

    def _truth(self, formula: TlaExpression, state: Mapping[str, Any]) -> Formula:
        return self.interpreter.truth(formula, Frame(state))

    def _conjuncts(self, formula: TlaExpression, name: str) -> Iterator[tuple[str, TlaExpression]]:
        """Return the conjuncts of an invariant, by the names of their definitions."""
        if isinstance(formula, Apply) and formula.operator in ("\\land", "$ConjList"):
            for operand in formula.operands:
                yield from self._conjuncts(operand, name)
        elif isinstance(formula, Apply) and formula.kind == "defined" and not formula.operands:
            definition = self.syntax.definitions[formula.operator]
            if _is_list_of_names(definition.body):
                yield from self._conjuncts(definition.body, definition.name)
            else:
                yield definition.name, formula
        else:
            yield name, formula

    def _disjuncts(self, action: TlaExpression) -> Iterator[tuple[str, TlaExpression]]:
        """Return the actions of Next, by the names of their definitions."""
        if isinstance(action, Apply) and action.operator in ("\\lor", "$DisjList"):
            for operand in action.operands:
                yield from self._disjuncts(operand)
        elif isinstance(action, Apply) and action.operator == "$BoundedExists":
            for name, inner in self._disjuncts(action.operands[0]):
                yield name, replace(action, operands=(inner,))
        else:
            defined = action.operator if isinstance(action, Apply) and action.kind == "defined" else None
            yield self.syntax.definitions[defined].name if defined else "Next", action

    def _arbitrary_state(self, longest: int | None) -> dict[str, Any]:
        r"""Return an arbitrary value of each variable, an element of the set in `variable \in set`."""
        forms: dict[str, Any] = {}
        for formula in self._parts.values():
            for variable, of in _memberships(formula, self.syntax):
                forms.setdefault(variable, of)
        missing = [name for name in self.syntax.variables if name not in forms]
        if missing:
            raise Unsupported(
                f"the invariant doesn't define the values of {', '.join(missing)}: add a conjunct "
                f"`{missing[0]} \\in …` to it"
            )
        return {name: arbitrary(self.interpreter.value(of, Frame({})), name, longest) for name, of in forms.items()}


def _each_named(formulas: Iterable[tuple[str, TlaExpression]]) -> dict[str, TlaExpression]:
    """Return the formulas by unique names, so that no formula overwrites another formula of the same name."""
    named: dict[str, TlaExpression] = {}
    for name, formula in formulas:
        places = itertools.count(2)
        own = name
        while own in named and named[own] != formula:
            own = f"{name} ({next(places)})"
        named[own] = formula
    return named


def _is_list_of_names(formula: TlaExpression) -> bool:
    """Return whether a formula is a conjunction of definitions."""
    return (
        isinstance(formula, Apply)
        and formula.operator in ("\\land", "$ConjList")
        and all(isinstance(part, Apply) and part.kind == "defined" and not part.operands for part in formula.operands)
    )


def _stepwise(formula: TlaExpression) -> TlaExpression | None:
    """Return the action of a property `[][A]_v`, which is about steps, or None for a property about states."""
    if isinstance(formula, Apply) and formula.operator == "[]":
        inner = formula.operands[0]
        if isinstance(inner, Apply) and inner.operator == "$SquareAct":
            return inner.operands[0]
        raise Unsupported(f"{formula.location}: a temporal property, but only [][A]_v and invariants can be proved")
    return None


def _memberships(formula: TlaExpression, syntax: Syntax) -> Iterator[tuple[str, TlaExpression]]:
    """Return each variable with its set, if a conjunct of the invariant says that the variable is an element of the
    set.
    """
    if not isinstance(formula, Apply):
        return
    if formula.operator in ("\\land", "$ConjList"):
        for operand in formula.operands:
            yield from _memberships(operand, syntax)
    elif formula.kind == "defined" and not formula.operands:
        yield from _memberships(syntax.definitions[formula.operator].body, syntax)
    elif (
        formula.operator == "\\in" and isinstance(formula.operands[0], Apply) and formula.operands[0].kind == "variable"
    ):
        yield formula.operands[0].operator, formula.operands[1]

"""Proves the conditions of a proof with z3.

The solver checks each goal separately. The formulas have a form in which the solver finds the required instances: first
by patterns in the terms, which is fast, then by models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from .induction import Condition
from .terms import Formula, disjunction, is_term, negation, z3

ProofAnswer = Literal["proved", "not proved", "unknown"]

Goal: TypeAlias = Sequence[Formula]
"""Formulas that are contradictory if the goal is proved: the conditions, the goal's negation, and instances."""

QUICK_MS = (200, 1000, 1000)
"""The solver's timeouts for the first attempts (ms): instances by patterns, then models from two random seeds."""


class Solver:
    """Proves conditions with z3."""

    def __init__(self, milliseconds: int) -> None:
        """Set the time limit (ms) of each goal."""
        self._milliseconds = milliseconds
        self._known: tuple[Formula, ...] | None = None
        self._solvers: dict[int, Any] = {}

    def missed(self, condition: Condition) -> Iterator[Goal]:
        """Yield the goals of a condition that short attempts don't prove; `answer` tries longer to prove a goal."""
        if condition.hypotheses is not self._known:
            self._known, self._solvers = condition.hypotheses, {}
        for way in condition.ways:
            for assumed, goal in _introduced(way.goal):
                given = [*_conjuncts([way.condition, *assumed]), *_conjuncts([negation(goal)])]
                if any(term is False for term in given):
                    continue
                given = [term for term in given if term is not True]
                missed = [*given, *(each for term in given for each in _variants(term))]
                if all(self._ask(missed, attempt, limit)[0] != "proved" for attempt, limit in enumerate(QUICK_MS)):
                    yield missed

    def answer(self, goal: Goal) -> tuple[ProofAnswer, str]:
        """Return the solver's answer on a goal, and the reason if the answer is *unknown*."""
        return self._ask(goal, len(QUICK_MS), self._milliseconds)

    def _ask(self, goal: Goal, attempt: int, limit: int) -> tuple[ProofAnswer, str]:
        """Check with z3 whether a goal's formulas contradict each other."""
        if attempt not in self._solvers:
            solver = z3().SimpleSolver()
            solver.set("mbqi", attempt > 0)
            solver.set("relevancy", 2 if attempt else 0)
            solver.set("random_seed", attempt)
            solver.add([truth for truth in self._known or () if truth is not True])
            self._solvers[attempt] = solver
        solver = self._solvers[attempt]
        solver.push()
        try:
            solver.add(goal)
            solver.set("timeout", limit)
            answer = solver.check()
            if answer == z3().unsat:
                return "proved", ""
            return ("not proved", "") if answer == z3().sat else ("unknown", solver.reason_unknown())
        finally:
            solver.pop()


def _introduced(goal: Formula) -> Iterator[tuple[list[Formula], Formula]]:
    """Split a goal into simpler goals: conjuncts become separate, for-all becomes constants, premises become known."""
    if isinstance(goal, bool):
        if not goal:
            yield [], goal
        return
    if z3().is_and(goal):
        for part in goal.children():
            yield from _introduced(part)
    elif z3().is_quantifier(goal) and goal.is_forall():
        constants = [z3().FreshConst(goal.var_sort(number)) for number in range(goal.num_vars())]
        yield from _introduced(z3().substitute_vars(goal.body(), *reversed(constants)))
    elif z3().is_or(goal) and any(z3().is_not(part) for part in goal.children()):
        premises = [part.arg(0) for part in goal.children() if z3().is_not(part)]
        rest = disjunction(part for part in goal.children() if not z3().is_not(part))
        for assumed, inner in _introduced(rest):
            yield [*premises, *assumed], inner
    else:
        yield [], goal


def _conjuncts(truths: Iterable[Formula]) -> Iterator[Formula]:
    """Return the formulas with conjunctions split into separate formulas, each with its own for-all."""
    for truth in truths:
        if not is_term(truth):
            yield truth
            continue
        for variables, clause in _clauses(truth):
            yield z3().ForAll(variables, clause) if variables else clause


def _clauses(truth: Any) -> Iterator[tuple[list[Any], Any]]:
    """Split a formula into several formulas, each with its for-all variables."""
    if not _has_quantifier(truth):
        yield [], truth
        return
    negated = z3().is_not(truth)
    inner = truth.arg(0) if negated else truth
    if negated and z3().is_not(inner):
        yield from _clauses(inner.arg(0))
    elif z3().is_quantifier(inner) and inner.is_exists() == negated:
        variables, body = _opened(inner)
        for others, clause in _clauses(negation(body) if negated else body):
            yield [*variables, *others], clause
    elif (z3().is_or if negated else z3().is_and)(inner):
        for part in inner.children():
            yield from _clauses(negation(part) if negated else part)
    elif (z3().is_and if negated else z3().is_or)(inner):
        # A disjunct that consists of several clauses stays unchanged.
        parts = [list(_clauses(negation(part) if negated else part)) for part in inner.children()]
        whole = [negation(part) if negated else part for part in inner.children()]
        chosen = [part[0] if len(part) == 1 else ([], same) for part, same in zip(parts, whole, strict=True)]
        yield [variable for variables, _ in chosen for variable in variables], z3().Or([clause for _, clause in chosen])
    else:
        yield [], truth


def _has_quantifier(truth: Any) -> bool:
    goal = z3().Goal()
    goal.add(truth)
    return bool(z3().Probe("has-quantifiers")(goal) > 0)


def _opened(quantifier: Any) -> tuple[list[Any], Any]:
    """Return a quantifier's variables, as constants, and its body."""
    variables = [z3().FreshConst(quantifier.var_sort(number)) for number in range(quantifier.num_vars())]
    return variables, z3().substitute_vars(quantifier.body(), *reversed(variables))


def _variants(truth: Formula) -> Iterator[Formula]:
    """Return instances of a for-all that the solver doesn't find by itself.

    The solver finds instances of x only in terms f(x). So this function adds instances for x - c if x occurs as x + c,
    and for x = a if the formula compares x with a.
    """
    if not z3().is_quantifier(truth) or not truth.is_forall():
        return
    variables, body = _opened(truth)
    bodies = [(variables, body)]
    for variable in variables:
        for value in _compared(body, variable):
            rest = [other for other in variables if not other.eq(variable)]
            special = z3().simplify(z3().substitute(body, (variable, value)))
            yield z3().ForAll(rest, special) if rest else special
            bodies.append((rest, special))
    for variables, body in bodies:
        for variable in filter(z3().is_int, variables):
            for offset in _offsets(body, variable):
                yield z3().ForAll(variables, z3().simplify(z3().substitute(body, (variable, variable - offset))))


def _compared(truth: Formula, variable: Any) -> list[Any]:
    """Return the constants with which a formula compares a variable, if the variable is an element of an arbitrary
    set.
    """
    found: dict[int, Any] = {}
    if z3().is_int(variable):
        return []
    for term in _subterms(truth):
        if z3().is_eq(term):
            for one, other in (term.children(), reversed(term.children())):
                if one.eq(variable) and z3().is_const(other) and not other.eq(variable):
                    found[other.get_id()] = other
    return list(found.values())


def _subterms(truth: Formula) -> Iterator[Any]:
    """Return a term and all of its subterms, each once, including subterms of quantifiers."""
    seen: set[int] = set()
    waiting = [truth]
    while waiting:
        term = waiting.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            yield term
            waiting += [term.body()] if z3().is_quantifier(term) else term.children()


def _offsets(truth: Formula, variable: Any) -> list[Any]:
    """Return the numbers c for which a variable x occurs as x + c in a function's arguments."""
    found: dict[str, Any] = {}
    for term in _subterms(truth):
        if z3().is_app(term) and term.decl().kind() == z3().Z3_OP_UNINTERPRETED:
            for child in term.children():
                if z3().is_int(child) and not child.eq(variable):
                    offset = z3().simplify(child - variable)
                    if not any(part.eq(variable) or z3().is_var(part) for part in _subterms(offset)):
                        found[offset.sexpr()] = offset
    return list(found.values())

"""Proves the entries of the catalogue: condition by condition, with a counterexample for a failed condition."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ...reference.core.errors import BadInput
from ..pytla import Function, ModelValue, Step, TlaValue, Tools, Trace
from ..pytla.syntax import Syntax, parse_module
from .entries import ProofEntry
from .induction import Claim, Condition, Induction
from .solving import ProofAnswer, Solver
from .terms import conjunction, is_term, negation, z3
from .values import Arbitrary, Cases, Queue, Unsupported

LONGEST = (0, 1, 2)
"""The lengths of the queues in a counterexample; the shortest are tried first."""

MILLISECONDS = 10_000
"""The solver's default timeout for a goal (ms)."""


class CheckedCondition(NamedTuple):
    """The result of checking one condition of a proof.

    Attributes:
        claim: What it says.
        answer: Whether the condition is proved, not proved, or *unknown* after a timeout of the solver.
        milliseconds: The run time of the check (ms).
        why: The solver's reason if the result is unknown.
        counterexample: A step from a state that satisfies the invariant to a state that violates the invariant, or a
            single state that violates a property. The value is None if the condition is proved, or if no such step
            exists with short queues.
    """

    claim: str
    answer: ProofAnswer
    milliseconds: int
    why: str = ""
    counterexample: Trace | None = None


def prove(
    entry: ProofEntry,
    tools: Tools,
    milliseconds: int = MILLISECONDS,
    report: Callable[[CheckedCondition], None] | None = None,
) -> tuple[CheckedCondition, ...]:
    """Check the conditions of a proof; a proof that is expected to fail stops at the first failure.

    Args:
        entry: The proof.
        tools: The paths of Java and of tla2tools.jar, which contains the parser.
        milliseconds: The solver's timeout for a goal (ms).
        report: A function that receives each checked condition.

    Raises:
        BadInput: The module contains unsupported TLA+, or lacks a definition that the proof names; the message contains
            the file and line.
        MissingTool: z3 isn't installed.
        TlcError: The module can't be parsed.
    """
    z3()
    checked: list[CheckedCondition] = []
    try:
        for each in _Proof(entry, parse_module(entry.module, tools), milliseconds).checked():
            checked.append(each)
            if report is not None:
                report(each)
            if each.answer == "not proved" and entry.result == "not proved":
                break
    except Unsupported as error:
        raise BadInput(f"{entry.module.name}: {error}: a proof reads a subset of TLA+, see specs/README.md") from None
    except KeyError as error:
        raise BadInput(f"{entry.module.name}: it lacks {error}, which the proof {entry.name} names") from None
    return tuple(checked)


class _Proof:
    def __init__(self, entry: ProofEntry, syntax: Syntax, milliseconds: int) -> None:
        self._entry = entry
        self._syntax = syntax
        self._solver = Solver(milliseconds)
        self._small: dict[int, _Small] = {}
        self._whole = self._induction({name: Arbitrary(name) for name in entry.sets}, None)

    def checked(self) -> Iterator[CheckedCondition]:
        """Yield the checked conditions; in a proof that should fail, first those with a counterexample for few keys."""
        if self._entry.result == "not proved":
            for longest in LONGEST:
                for claim in self._whole.claims():
                    if self._small_of(longest).counterexample(claim) is not None:
                        yield self._check(claim)
        for claim in self._whole.claims():
            yield self._check(claim)

    def _check(self, claim: Claim) -> CheckedCondition:
        """Check a claim with the solver, and look for a counterexample if the solver doesn't prove the claim."""
        start = time.monotonic()
        for goal in self._solver.missed(self._whole.condition(claim)):
            counterexample = self._counterexample(claim)
            if counterexample is not None:
                return CheckedCondition(str(claim), "not proved", _since(start), counterexample=counterexample)
            answer, why = self._solver.answer(goal)
            if answer != "proved":
                return CheckedCondition(str(claim), answer, _since(start), why)
        if self._entry.result == "not proved" and self._counterexample(claim) is not None:
            raise AssertionError(f"{self._entry.name}: z3 proves “{claim}”, which has a counterexample")
        return CheckedCondition(str(claim), "proved", _since(start))

    def _counterexample(self, claim: Claim) -> Trace | None:
        """Search for a counterexample with queues as short as possible."""
        return next(filter(None, (self._small_of(longest).counterexample(claim) for longest in LONGEST)), None)

    def _induction(self, sets: Mapping[str, Any], longest: int | None) -> Induction:
        numbers = {name: z3().Int(name) for name in self._entry.numbers}
        constants = {**self._entry.constants, **sets, **numbers, **({} if longest is None else self._entry.small)}
        missing = [name for name in self._syntax.constants if name not in constants]
        if missing:
            raise Unsupported(f"the constant {missing[0]} has no value: give it one")
        entry = self._entry
        return Induction(self._syntax, constants, entry.invariant, entry.properties, longest, entry.first, entry.step)

    def _small_of(self, longest: int) -> _Small:
        if longest not in self._small:
            self._small[longest] = _Small(self._induction(self._entry.sets, longest))
        return self._small[longest]


class _Small:
    """The same proof for few keys and short queues, for which the solver can always find a counterexample if there is
    one.
    """

    def __init__(self, induction: Induction) -> None:
        self._induction = induction
        self._solver = z3().Solver()
        self._solver.set("timeout", MILLISECONDS)
        self._known = False
        self._found: dict[Claim, Trace | None] = {}

    def counterexample(self, claim: Claim) -> Trace | None:
        """Find a step or a state that contradicts a claim, or None if there is none."""
        if claim not in self._found:
            self._found[claim] = self._search(claim)
        return self._found[claim]

    def _search(self, claim: Claim) -> Trace | None:
        condition = self._induction.condition(claim)
        if not claim.at_first and not self._known:
            self._solver.add([truth for truth in condition.hypotheses if truth is not True])
            self._known = True
        for way in condition.ways:
            wrong = conjunction((way.condition, negation(way.goal)))
            if wrong is False:
                continue
            solver = z3().Solver() if claim.at_first else self._solver
            solver.push()
            try:
                solver.add([wrong] if wrong is not True else [])
                if solver.check() == z3().sat:
                    return _trace(condition, way.after, solver.model(), self._induction.syntax)
            finally:
                solver.pop()
        return None


def _trace(condition: Condition, after: Mapping[str, Any] | None, model: Any, syntax: Syntax) -> Trace:
    """Return the step of a counterexample, or only the state for a property of states."""
    states = [("Initial", condition.before)] if condition.before else []
    if after is not None:
        states.append((condition.claim.action or "Initial", after))
    steps = []
    for number, (action, state) in enumerate(states, 1):
        known = {name: _known(state[name], model) for name in syntax.variables}
        steps.append(Step(number, action, known))
    return Trace(tuple(steps))


def _known(value: Any, model: Any) -> TlaValue:
    """Return the concrete value of an arbitrary value in z3's model."""
    if is_term(value):
        value = model.eval(value, model_completion=True)
        return bool(z3().is_true(value)) if z3().is_bool(value) else int(value.as_long())
    match value:
        case Cases():
            for condition, case in value.cases:
                if condition is True or z3().is_true(model.eval(condition, model_completion=True)):
                    return _known(case, model)
        case Queue():
            size = model.eval(value.length, model_completion=True).as_long()
            return tuple(_known(value.at(place), model) for place in range(1, size + 1))
        case tuple():
            return tuple(_known(part, model) for part in value)
        case Function():
            return Function({key: _known(part, model) for key, part in value.items()})
        case bool() | int() | str() | ModelValue() | frozenset():
            return value
    raise AssertionError(f"{value!r} has no value in a small model")


def _since(start: float) -> int:
    return round((time.monotonic() - start) * 1000)

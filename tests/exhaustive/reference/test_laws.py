"""Laws that the reference of every operator keeps on random histories: the fold, and those of `check`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from notation import Machine, broken_prefix, histories_drawn
from streamproof.properties.checking.samples import plan_of_reference
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.metamorphic.variants import VariantLaw
from streamproof.properties.laws.runs import Sample
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.clocks import CLOCKS
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.operator import OPERATORS, Behaviour, operator_named
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Dropped, Output, Record

Arrive = Callable[[Record], list[Output]]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_behaviour_folds_to_the_meaning_and_the_law_finds_where_it_does_not(operator: str, seed: int) -> None:
    histories = histories_drawn(operator, 300, seed)
    for history in histories:
        assert broken_prefix(history) == []
    assert any(broken_prefix(history, mutant(operator, silent_about_the_last)) for history in histories)


def mutant(operator: str, arrive: Callable[[Arrive, Record], list[Output]]) -> Machine:
    """The behaviour of an operator that takes a record in another way."""

    def machine(definition: Any, clock: Any) -> Behaviour:
        behaviour: Any = operator_named(operator).behaviour(definition, clock)
        right = behaviour.arrive
        behaviour.arrive = lambda record: arrive(right, record)
        return behaviour  # type: ignore[no-any-return]

    return machine


def silent_about_the_last(right: Arrive, record: Record) -> list[Output]:
    emitted = right(record)
    return emitted if record.key is None else emitted[:-1]


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_null_key_is_dropped_on_each_input_and_moves_no_clock_unless_it_is_kept(operator: str) -> None:
    for options in draw_definitions(registration_of(operator), 1, 0):
        if options.get("null_key") != "keep":
            inputs = operator_named(operator).declare(options).inputs
            lines = [line for side in inputs for line in (Record(side, None, "any", 90), CUT)]
            for clock in CLOCKS:
                played = play(History(operator, options, tuple(lines), clock))
                assert [entry.output for entry in played.entries] == [Dropped(None, "null key")] * len(inputs)
                assert played.clock == 0


@cache
def samples_of(operator: str) -> list[Sample]:
    """Those that a check of the reference draws."""
    return [draw() for draw in plan_of_reference(registration_of(operator), 60, 2)]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", ["cuts", "order", "keys", "repeats"])
def test_what_cuts_order_other_keys_and_repeats_may_change_is_what_the_registration_says(
    name: str, operator: str
) -> None:
    law = LAWS["reference"][name]
    assert isinstance(law, VariantLaw)
    judged = 0
    for sample in samples_of(operator):
        cases = [
            case for history in sample.histories if law.may_vary(sample, history) for case in law.cases_of(history)
        ]
        assert [one for one in law.recheck(cases) if one.differences] == []
        judged += len(cases)
    assert bool(judged) == (law.not_checked(registration_of(operator)) is None)

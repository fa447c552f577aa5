"""Samples with schedules of delivery, and those of Spark's own operators: how large they are."""

from __future__ import annotations

import pytest
from streamproof.properties.checking.samples import ON_NATIVE, SCHEDULED_STEPS, native_sample, scheduled_sample
from streamproof.properties.laws.on_spark.native import native_of
from streamproof.properties.laws.scheduling import GOALS, goals_met
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.reference.core.history import Delivery
from streamproof.reference.core.play import play

NATIVE = [name for name in registered() if registration_of(name).native is not None]


@pytest.mark.parametrize("seed", range(3))
def test_a_schedule_of_delivery_has_few_steps_and_all_goals_come_up(seed: int) -> None:
    drawn = scheduled_sample(registration_of("foreign_key_join"), 200, seed).histories
    assert max(len(history.lines) for history in drawn) == SCHEDULED_STEPS
    # A few have right rows alone, which send nothing.
    assert sum(any(isinstance(line, Delivery) for line in history.lines) for history in drawn) > 150
    met = [goals_met(history) for history in drawn]
    assert all(sum(bool(one[goal]) for one in met) >= 10 for goal in GOALS)
    for history in drawn:
        play(history)  # nothing is delivered that doesn't wait


@pytest.mark.parametrize("operator", NATIVE)
def test_a_sample_for_sparks_own_operator_is_as_large_as_its_goals_need(operator: str) -> None:
    registration = registration_of(operator)
    profile = next(iter(native_of(registration).profiles))
    assert len(native_sample(registration, profile, 10_000, 0).histories) == ON_NATIVE

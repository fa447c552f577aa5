"""Registrations for tests: those there are, changed for the time of a test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from streamproof.properties.generators.options import met_by, option_goals
from streamproof.properties.registration import registration as registrations
from streamproof.properties.registration.registration import Options, Registration, registration_of


def change(monkeypatch: pytest.MonkeyPatch, operator: str, **changed: Any) -> None:
    """Register an operator with other fields until the test ends."""
    monkeypatch.setitem(registrations._REGISTERED, operator, replace(registration_of(operator), **changed))


def options_missing(registration: Registration, option_sets: Iterable[Options]) -> list[str]:
    """Name the values and legal pairs of values that none of some sets of options has."""
    met = {goal for options in option_sets for goal in met_by(registration, options)}
    return [goal for goal in option_goals(registration) if goal not in met]

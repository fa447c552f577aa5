"""Registrations for tests: those there are, changed for the time of a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamproof.properties.registration import registration as registrations
from streamproof.properties.registration.registration import registration_of


def change(monkeypatch: pytest.MonkeyPatch, operator: str, **changed: Any) -> None:
    """Register an operator with other fields until the test ends."""
    monkeypatch.setitem(registrations._REGISTERED, operator, replace(registration_of(operator), **changed))

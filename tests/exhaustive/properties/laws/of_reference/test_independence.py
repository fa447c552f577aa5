"""DuckDB reads options by itself: where the reference misreads one, the law *duckdb* is violated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from registrations import change
from streamproof.properties.checking import findings
from streamproof.properties.checking.check import check_reference
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.generators.options import draw_definitions
from streamproof.properties.laws.base import Verdict
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import Operator

HISTORIES = 100
OTHER = {"min": "max", "max": "min", "average": "sum", "list": "count"}
NOT_SEEN = {"protocol"}
"""Options that change no result where each message goes at once."""
Options = Mapping[str, Any]


def misread(options: Options, name: str) -> dict[str, Any]:
    """Return options in which a number is one more, an aggregate is another, and anything else is left out."""
    value = options.get(name)
    if name == "aggregate":
        return {**options, name: OTHER.get(value, value)}
    if type(value) is int:
        return {**options, name: value + 1}
    return {other: given for other, given in options.items() if other != name}


@cache
def misreadings(operator: str) -> Mapping[str, Sequence[Options]]:
    """Return by the name of an option drawn definitions that are others where it is misread."""
    registration, found = registration_of(operator), dict[str, list[Options]]()
    for options in draw_definitions(registration, 80, 0):
        for name in options.keys() - {*registration.domain.silent} - NOT_SEEN:
            try:
                differs = registration.declare(misread(options, name)) != registration.declare(options)
            except BadInput:
                continue
            if differs:
                found.setdefault(name, []).append(options)
    return {name: found[name][:4] for name in sorted(found)}


def cases() -> Iterator[tuple[str, str]]:
    return ((operator, name) for operator in registered() for name in misreadings(operator))


@pytest.mark.parametrize(("operator", "name"), cases())
def test_an_option_that_the_reference_misreads_is_caught_by_duckdb(
    operator: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = {str(number): options for number, options in enumerate(misreadings(operator)[name])}
    # Without a space, whose definitions a reference that misreads options may refuse.
    change(monkeypatch, operator, profiles=profiles, without_late_data={}, space=None, kafka=None, protocol=None)
    # Shrinking asks the same question hundreds of times more.
    monkeypatch.setattr(findings, "confirmed", lambda law, violation, witness, asked: (violation, ""))

    right = Operator.declare
    monkeypatch.setattr(Operator, "declare", lambda self, given: right(self, misread(given, name)))
    assert check_reference(operator, FolderStore(tmp_path), HISTORIES).result("duckdb").verdict is Verdict.VIOLATED


def test_the_options_of_every_operator_are_misread() -> None:
    assert {operator for operator, _ in cases()} == {*registered()}
    assert len([*cases()]) > 30

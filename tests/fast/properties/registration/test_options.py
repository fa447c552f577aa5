"""The options of an operator from outside are drawn like those of the twelve."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deduplicate import register_deduplicate
from registrations import options_missing
from streamproof import OptionSpace, Registration
from streamproof.properties.generators.options import draw_definitions, option_goals
from streamproof.properties.registration.options import ABSENT
from streamproof.properties.registration.registration import unregister


@pytest.fixture(scope="module")
def deduplicate() -> Iterator[Registration]:
    yield register_deduplicate()
    unregister("deduplicate")


def test_the_options_of_an_eleventh_operator_are_drawn(deduplicate: Registration) -> None:
    drawn = draw_definitions(deduplicate, 0, 0)
    assert sorted(options["horizon_ms"] for options in drawn) == [0, 1, 5, 20]
    assert option_goals(deduplicate) == tuple(f"options horizon_ms={value}" for value in (0, 1, 5, 20))
    assert options_missing(deduplicate, drawn) == []
    assert options_missing(deduplicate, drawn[:2]) == ["options horizon_ms=0", "options horizon_ms=1"]


def test_a_space_says_that_an_option_is_left_out_by_a_name_of_its_own() -> None:
    assert OptionSpace.ABSENT is ABSENT
    assert OptionSpace({"step": (OptionSpace.ABSENT, 1)}).independent == ()

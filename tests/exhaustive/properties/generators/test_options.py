"""Options are drawn such that every value and every legal pair comes up, and nothing illegal does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, replace
from itertools import combinations, product
from typing import Any

import pytest
from registrations import options_missing
from streamproof.properties.generators.options import (
    described,
    draw_definitions,
    impossible_values,
    met_by,
    option_goals,
)
from streamproof.properties.registration.options import ABSENT, OptionSpace
from streamproof.properties.registration.registration import Registration, registration_of
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import OPERATORS, Operator
from streamproof.reference.definitions.declarations import UNSET, Definition, not_negative, one_of

SEEDS = (0, 1, 7)


@dataclass(frozen=True)
class Three(Definition):
    """Three options, of which some don't go together."""

    size: int = field(metadata={"needed": "a size"})
    step: int = field(default_factory=lambda: UNSET)
    emit: str = "update"

    def __post_init__(self) -> None:
        if self.step is UNSET:
            object.__setattr__(self, "step", self.size)
        not_negative(self, "size", "step")
        one_of(self, "emit", "update", "close")
        if self.step > self.size:
            raise BadInput("the step is larger than the size")


def three(**of_space: Any) -> Registration:
    values = {"size": (1, 2, 3), "step": (ABSENT, 1, 2), "emit": ("update", "close")}
    operator = Operator("three", Three, lambda definition, clock: None, lambda *all_: {})  # type: ignore[arg-type, return-value]
    return Registration(operator, {"plain": {"size": 2}}, space=OptionSpace(**{"values": values, **of_space}))


def legal_sets(registration: Registration) -> list[dict[str, Any]]:
    """Return all legal options of a space, by trying every combination."""
    assert registration.space is not None
    names = registration.space.values
    every = (dict(zip(names, chosen, strict=True)) for chosen in product(*names.values()))
    given = [{name: value for name, value in one.items() if value is not ABSENT} for one in every]
    return [options for options in given if _is_legal(registration, options)]


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_value_and_every_legal_pair_comes_up(operator: str) -> None:
    registration = registration_of(operator)
    for seed in SEEDS:
        drawn = draw_definitions(registration, 0, seed)
        assert options_missing(registration, drawn) == []
        assert {goal for options in drawn for goal in met_by(registration, options)} == {*option_goals(registration)}


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_profiles_come_first_no_options_twice_and_none_that_are_illegal(operator: str) -> None:
    registration = registration_of(operator)
    drawn = draw_definitions(registration, 100, 3)
    assert drawn[: len(registration.profiles)] == list(registration.profiles.values())
    texts = [json.dumps(options, sort_keys=True) for options in drawn]
    assert len(set(texts)) == len(texts)
    assert [json.loads(text) for text in texts] == drawn
    assert all(_is_legal(registration, options) for options in drawn)


def test_the_seed_decides_what_is_drawn() -> None:
    registration = registration_of("session_windows")
    assert draw_definitions(registration, 60, 4) == draw_definitions(registration, 60, 4)
    assert draw_definitions(registration, 60, 4) != draw_definitions(registration, 60, 5)


def test_more_are_drawn_at_random_once_all_pairs_came_up() -> None:
    registration = registration_of("session_windows")
    few, many = draw_definitions(registration, 0, 2), draw_definitions(registration, 90, 2)
    assert many[: len(few)] == few
    assert len(many) == 90
    assert len(draw_definitions(three(), 1000, 2)) <= 2 * len(legal_sets(three()))


@pytest.mark.parametrize(
    "operator", ["three", *(one for one in OPERATORS if one not in ("window_aggregate", "windowed_table"))]
)
def test_the_goals_are_the_pairs_of_all_legal_options(operator: str) -> None:
    """Of the two operators that are left out, trying all combinations takes more than a moment."""
    registration = three() if operator == "three" else registration_of(operator)
    written = legal_sets(registration)
    left_out = [{name: value for name, value in one.items() if name != option} for one in written for option in one]
    legal = [*written, *(options for options in left_out if _is_legal(registration, options))]
    assert {goal for options in legal for goal in met_by(registration, options)} == set(option_goals(registration))


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_option_with_a_default_is_left_out_on_any_seed(operator: str) -> None:
    registration = registration_of(operator)
    assert registration.space is not None
    fields = registration.operator.definition.__dataclass_fields__
    defaults = {
        name
        for name in registration.space.values
        if fields[name if name in fields else f"{name}_"].default is not MISSING
    }
    assert {f"options {name} left out" for name in defaults} <= {*option_goals(registration)}
    for seed in range(20):
        drawn = draw_definitions(registration, 0, seed)
        assert all(any(name not in options for options in drawn) for name in defaults)


@pytest.mark.parametrize("operator", OPERATORS)
def test_independent_options_go_with_all_others(operator: str) -> None:
    registration = registration_of(operator)
    assert registration.space is not None
    values = registration.space.values
    independent = set(registration.space.independent)
    assert independent <= set(values)
    depending = [name for name in values if name not in independent]
    for chosen in list(product(*(values[name] for name in depending)))[:: 1 + len(depending)]:
        core = {name: value for name, value in zip(depending, chosen, strict=True) if value is not ABSENT}
        legal = {
            _is_legal(
                registration, {**core, **{name: values[name][-1 - at % len(values[name])] for name in independent}}
            )
            for at in range(max((len(values[name]) for name in independent), default=1))
        }
        assert len(legal) == 1


def _is_legal(registration: Registration, options: Mapping[str, Any]) -> bool:
    try:
        registration.declare(options)
    except BadInput:
        return False
    return True


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_documented_option_is_drawn(operator: str) -> None:
    registration = registration_of(operator)
    assert registration.space is not None
    known = {
        name.removesuffix("_")
        for name, one in registration.operator.definition.__dataclass_fields__.items()
        if not one.metadata.get("python_only")
    }
    # A schedule of delivery is drawn apart.
    assert set(registration.space.values) == known - {"delivery"}


def test_defaults_count_as_if_they_were_written_down() -> None:
    sessions = registration_of("session_windows")
    assert "options emit=update with late=merged" in met_by(sessions, {"gap_ms": 5})


def test_a_default_that_depends_on_other_options_counts_as_left_out() -> None:
    met = met_by(registration_of("windowed_table"), {"size_ms": 10})
    assert {"options with=none", "options step_ms left out", "options join left out"} <= met
    assert not {"options step_ms=10", "options join=left"} & met


def test_a_further_predicate_takes_options_out() -> None:
    registration = three(legal=lambda options: options["size"] != 3 or options.get("emit") != "close")
    assert not any("size=3 with emit=close" in goal for goal in option_goals(registration))
    drawn = draw_definitions(registration, 50, 1)
    assert not any(options["size"] == 3 and options.get("emit") == "close" for options in drawn)
    assert options_missing(registration, drawn) == []


def test_a_value_that_no_legal_options_have_is_named_and_stays_unmet() -> None:
    registration = three(values={"size": (1, 2), "step": (ABSENT, 1, 5), "emit": ("update", "often")})
    assert impossible_values(registration) == ["step=5", "emit=often"]
    missing = options_missing(registration, draw_definitions(registration, 50, 1))
    assert missing == ["options step=5", "options emit=often"]


def test_a_space_without_legal_options_is_refused() -> None:
    with pytest.raises(BadInput, match="three: no options of its space are legal"):
        draw_definitions(three(values={"size": (-1,)}), 1, 1)


def test_a_space_that_is_too_large_to_search_is_refused() -> None:
    values = {"size": tuple(range(300)), "step": tuple(range(300))}
    with pytest.raises(BadInput, match="has 90000 combinations, more than 50000: declare the options"):
        draw_definitions(three(values=values), 1, 1)


def test_without_a_space_the_profiles_are_drawn_and_there_are_no_goals() -> None:
    registration = replace(registration_of("session_windows"), space=None)
    assert draw_definitions(registration, 100, 1) == list(registration.profiles.values())
    assert option_goals(registration) == ()
    assert met_by(registration, {"gap_ms": 1}) == set()


def test_options_are_described_by_their_profile_or_in_words() -> None:
    registration = registration_of("session_windows")
    assert described(registration, {"gap_ms": 10, "aggregate": "max"}) == "no grace"
    assert described(registration, {"gap_ms": 3, "emit": "close"}) == "gap_ms=3, emit=close"
    assert described(registration_of("table_table_join"), {}) == "all defaults"


@pytest.mark.parametrize("operator", OPERATORS)
def test_two_of_three_options_are_few(operator: str) -> None:
    """A covering by pairs is near the product of the two options with most values, not of all."""
    registration = registration_of(operator)
    assert registration.space is not None
    counts = [len(values) for values in registration.space.values.values()]
    largest = max((one * other for one, other in combinations(counts, 2)), default=counts[0])
    assert len(draw_definitions(registration, 0, 1)) <= 1.6 * largest + len(registration.profiles)

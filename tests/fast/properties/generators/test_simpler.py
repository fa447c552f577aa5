from __future__ import annotations

from typing import Any

import pytest
from streamproof.properties.generators.simpler import key_size, simpler_keys, simpler_values, simplest_value, value_size
from streamproof.properties.generators.values import KEY_SETS, VALUE_KINDS

VALUES = [value for kind in VALUE_KINDS.values() for value in kind.examples] + [
    {"group": "", "amount": [1.5, {"a": None}]},
    [[[[-1]]]],
    "x" * 40,
    float("nan"),
    float("-inf"),
    -(10**40),
]


def shrunk(value: Any) -> list[Any]:
    """A way down: of a dozen steps each time the least simple, then the simplest."""
    steps = [value]
    while further := list(simpler_values(steps[-1])):
        steps.append(max(further, key=value_size) if len(steps) < 12 else further[0])
    return steps


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_step_is_simpler_and_of_the_same_kind(value: Any) -> None:
    for step in simpler_values(value):
        assert value_size(step) < value_size(value)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        assert type(step) in ((int, float) if number else (type(value),))
        if isinstance(value, dict):
            assert step.keys() == value.keys()


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_way_down_ends_at_the_simplest(value: Any) -> None:
    last = shrunk(value)[-1]
    assert repr(last) in (repr(simplest_value(value)), "0.0" if isinstance(value, float) else "")


@pytest.mark.parametrize(
    ("value", "simplest"),
    [(-7, 0), (2**57, 0), (-0.25, 0), ("é", ""), (True, False), ([1, "a"], []), (None, None), ({"b": [3]}, {"b": []})],
)
def test_the_simplest_value_is_the_first_step(value: Any, simplest: Any) -> None:
    assert repr(simplest_value(value)) == repr(simplest)
    assert repr(next(simpler_values(value), None)) == repr(None if value == simplest else simplest)


def test_a_whole_number_steps_to_half_and_to_the_number_beside_it() -> None:
    assert {4, 8} <= set(simpler_values(9))
    assert {9, -4, -8} <= set(simpler_values(-9))
    assert 2**56 in set(simpler_values(2**57 + 1))


@pytest.mark.parametrize("key", [key for keys in KEY_SETS.values() for key in keys])
def test_a_key_steps_to_a_letter_and_to_shorter_text(key: str) -> None:
    steps = list(simpler_keys(key))
    assert all(key_size(step) < key_size(key) for step in steps)
    assert steps[:1] == (["a"] if key != "a" else [])


def test_of_keys_the_simplest_is_a() -> None:
    assert list(simpler_keys("a")) == []
    assert sorted(["é", "aa", "", "b", "a"], key=key_size) == ["a", "b", "", "aa", "é"]


def test_no_key_is_simpler_than_a_letter_and_a_letter_than_any_other_text() -> None:
    keys = [None, *"abyz", "", "A", "aa"]
    sizes = [key_size(key) for key in keys]
    assert sizes[:6] == sorted({*sizes[:6]})
    assert min(sizes[6:]) > sizes[4]

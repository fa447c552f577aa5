from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unicodedata import normalize

import pytest
from registrations import change
from streamproof.properties.generators.cohorts import clock_schedule, one_cohort, unpack
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.generators.values import (
    EQUAL,
    KEY_SETS,
    PLAIN,
    SMALL,
    VALUE_KINDS,
    keys_named,
    kind_named,
    kinds_taken,
)
from streamproof.properties.registration.domain import Domain
from streamproof.properties.registration.key_space import WATERMARK_DRIVER, prefixed_key
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History
from streamproof.reference.core.play import Entry
from streamproof.reference.core.records import Change
from streamproof.reference.definitions.aggregates import AGGREGATES_OF_SAMZA

NUMBERS = {SMALL, EQUAL, "negative integers", "integers that cancel", "large integers", "fractions", "all different"}
TEXTS = {"text", "text of all scripts", "text like other values", "text with separators"}


def settings_of(operator: str, profile: str, **more: Any) -> HistorySettings:
    return HistorySettings(operator, registration_of(operator).profiles[profile], SCHEDULE, **more)


def drawn(operator: str, profile: str, count: int, seed: int = 1, **more: Any) -> list[History]:
    return list(draw_histories(settings_of(operator, profile, **more), count, seed, mixed=True))


def values_of(some: list[History], side: str) -> list[Any]:
    return [record.value for history in some for record in history.records if record.input == side]


def are(*kinds: type) -> Callable[[list[Any]], bool]:
    return lambda some: {*map(type, some)} == {*kinds}


TELLING: dict[str, Callable[[list[Any]], bool]] = {
    SMALL: lambda some: some == [0, 1, 2, 3] * 2,
    "negative integers": lambda some: max(some) == 0 > min(some),
    "integers that cancel": lambda some: {-1, 1, 0} < {*some},
    "large integers": lambda some: max(some) > 2**53 and min(some) < -(2**53),
    "fractions": lambda some: {one % 1 for one in some if one < 0} > {0} and are(float, int)(some),
    EQUAL: lambda some: len({*some}) == 1,
    "all different": lambda some: len({*some}) == 8 and min(some) < 0 < max(some),
    "text": lambda some: {"", "a", "a "} < {*some} and sorted(some) != sorted(some, key=str.lower),
    "text of all scripts": lambda some: (
        len({normalize("NFC", one) for one in some}) < len({*some})
        and sorted(some) != sorted(some, key=lambda one: one.encode("utf-16-be"))
    ),
    "text like other values": lambda some: {"0", "null", "1.0", "True"} == {*some},
    "text with separators": lambda some: {*'"|,\t\\\n\r'} == {*"".join(some)},
    "truth values": are(bool),
    "values that are false": lambda some: not any(some) and are(int, bool, str, list)(some),
    "values like one": lambda some: all(some) and some[0] == some[1] and are(int, bool, str, list)(some),
    "lists and objects": lambda some: [] in some and {} in some and are(list, dict)(some),
    "null among others": lambda some: None in some and [None] in some and "null" in some,
}
"""What the values of each kind have, which a wrong comparison, sum or order of values shows by."""
CONFUSIONS: dict[str, Callable[[str], Any]] = {
    "prefixes of a cohort": lambda key: key.split("|")[-1] or key,
    "reserved": lambda key: key.startswith("~clock"),
    "windows": lambda key: key.split("@")[0],
    "empty": lambda key: key.strip() and key,
    "all scripts": lambda key: normalize("NFC", key),
    "numbers": lambda key: float(key),
    "case and spaces": str.lower,
    "long": lambda key: key[:299],
}
"""What confuses two keys of a set."""


def test_each_kind_has_the_values_that_tell() -> None:
    told = {
        name: [kind for kind, one in VALUE_KINDS.items() if _tells(tells, one.examples)]
        for name, tells in TELLING.items()
    }
    assert {name: [name] for name in VALUE_KINDS} == told
    assert all(len(one.examples) == 8 for one in VALUE_KINDS.values())


def _tells(tells: Callable[[list[Any]], bool], examples: list[Any]) -> bool:
    try:
        return tells(examples)
    except (TypeError, AttributeError):
        return False


def test_each_set_has_keys_that_are_easily_confused() -> None:
    assert {*CONFUSIONS} == {*KEY_SETS} - {PLAIN, "JSON"}
    for name, confused in CONFUSIONS.items():
        assert len({*map(confused, KEY_SETS[name])}) < 3, name


def test_forty_large_integers_add_up_to_a_bigint_and_no_double_holds_them_all() -> None:
    large = kind_named("large integers").examples
    assert 40 * max(map(abs, large)) < 2**63
    assert all(abs(value) >= 2**31 for value in large)
    assert sum(int(float(value)) != value for value in set(large)) == 2


def test_fractions_add_up_exactly_in_any_order() -> None:
    assert all(float(value) * 4 == int(value * 4) for value in kind_named("fractions").examples)


def test_values_that_are_all_different_differ_in_a_history_of_forty_records() -> None:
    kind = kind_named("all different")
    assert len({kind.of(arrival % 4, arrival) for arrival in range(40)}) == 40


def test_two_kinds_of_texts_have_another_order_in_lower_case() -> None:
    """Of windowed tables, one kind showed in too few histories that a minimum disregards case."""
    texts = {name: [str(value) for value in kind_named(name).examples[:4]] for name in TEXTS}
    assert sum(sorted(some) != sorted(some, key=str.lower) for some in texts.values()) >= 2


@pytest.mark.parametrize("name", KEY_SETS)
def test_a_set_has_three_keys_that_can_be_written(name: str) -> None:
    keys = keys_named(name)
    assert len(set(keys)) == 3
    assert [key.encode().decode() for key in keys] == list(keys)


@pytest.mark.parametrize("part", ["|", "@", "~", WATERMARK_DRIVER, "00001|a", '"', "\U0001f600", "\u0301"])
def test_some_key_holds_each_of_our_separators_and_reserved_texts(part: str) -> None:
    assert any(part in key for keys in KEY_SETS.values() for key in keys)


@pytest.mark.parametrize("named", [kind_named, keys_named])
def test_an_unknown_name_is_refused_with_those_there_are(named: Any) -> None:
    with pytest.raises(BadInput, match=r"unknown .* 'odd': use one of "):
        named("odd")


@pytest.mark.parametrize("name", AGGREGATES_OF_SAMZA)
def test_an_aggregate_takes_the_kinds_of_its_definition(name: str) -> None:
    expected = {"sum": NUMBERS, "average": NUMBERS, "min": NUMBERS | TEXTS, "max": NUMBERS | TEXTS}
    assert set(kinds_taken(AGGREGATES_OF_SAMZA[name])) == expected.get(name, set(VALUE_KINDS))


def test_mixed_histories_are_the_same_for_the_same_seed_and_begin_with_the_same_ones() -> None:
    assert drawn("foreign_key_join", "left", 20) == drawn("foreign_key_join", "left", 20)
    assert drawn("foreign_key_join", "left", 20)[:5] == drawn("foreign_key_join", "left", 5)
    assert drawn("foreign_key_join", "left", 20) != drawn("foreign_key_join", "left", 20, seed=2)


def test_a_mixed_history_has_the_times_of_the_plain_one() -> None:
    plain = draw_histories(settings_of("session_windows", "update"), 30, seed=1)
    for one, other in zip(plain, drawn("session_windows", "update", 30), strict=True):
        assert clock_schedule(one) == clock_schedule(other)
        assert [record.timestamp for record in one.records] == [record.timestamp for record in other.records]


@pytest.mark.parametrize("name", KEY_SETS)
def test_a_key_comes_out_of_a_cohort_as_the_history_that_sent_it_knows_it(name: str) -> None:
    own = settings_of("session_windows", "update", key_set=name)
    cohort = one_cohort(list(draw_histories(own, 3, seed=1)))
    entries = [
        Entry(-1, 0, Change(prefixed_key(number, key), None, 1, 0)) for number in (2, 0) for key in keys_named(name)
    ]
    unpacked = unpack(cohort, [*entries, Entry(-1, 0, Change(WATERMARK_DRIVER, None, 1, 0))])
    assert [[entry.output.key for entry in one] for one in unpacked] == [
        list(keys_named(name)),
        [],
        [*keys_named(name)],
    ]


@pytest.mark.parametrize("name", KEY_SETS)
def test_keys_that_values_name_are_those_of_the_set(name: str) -> None:
    keys = {*keys_named(name)}
    joined = list(draw_histories(settings_of("foreign_key_join", "left", key_set=name), 30, seed=1))
    named = {value["artist"] for value in values_of(joined, "left") if value is not None}
    grouped = list(draw_histories(settings_of("table_aggregate", "sum", key_set=name), 30, seed=1))
    groups = {value["group"] for value in values_of(grouped, "events") if value is not None}
    if name == PLAIN:
        assert (named, groups) == ({"r1", "r2", "r", None}, {"x", "y", "z", None})
    else:
        assert (named, groups) == (keys | {None}, keys | {None})


def test_a_kind_that_an_input_refuses_leaves_it_the_first_that_it_takes() -> None:
    own = settings_of("windowed_table", "with table", kind="text")
    own = replace(own, options={**own.options, "aggregate": "sum"})
    found = list(draw_histories(own, 30, seed=1))
    assert set(values_of(found, "events")) == {0, 1, 2, 3}
    assert set(values_of(found, "right")) == {None, *kind_named("text").examples}


def test_a_domain_that_says_no_kinds_is_given_small_integers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    given: set[Any] = set()

    def value(definition: Any, side: str, small: Any, choice: int, near: int) -> Any:
        given.add(small)
        return small

    change(monkeypatch, "table_table_join", domain=Domain(value=value))
    assert drawn("table_table_join", "inner", 60)
    assert given == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("emitted", "key", "is_of"), [("a@5@10", "a@5", True), ("a@5@10", "a", False), ("a@5", "a", True)]
)
def test_the_window_in_a_key_is_not_taken_for_an_at_sign_of_the_key(emitted: str, key: str, is_of: bool) -> None:
    registration = registration_of("windowed_table")
    table = registration.declare({"size_ms": 10, "to_stream": "window_in_key"})
    assert registration.key_independence is not None
    assert registration.key_independence.is_of(table, emitted, key) is is_of

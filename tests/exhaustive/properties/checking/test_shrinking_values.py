from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamproof.properties.checking.shrinking import shrink
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.generators.values import KEY_SETS, PLAIN, VALUE_KINDS
from streamproof.properties.registration.registration import registered
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record


def of(operator: str, options: dict[str, Any], arrivals: int = 6, **more: Any) -> HistorySettings:
    return HistorySettings(operator, options, (20, 45), arrivals, **more)


def shrunk(own: HistorySettings, planted: Callable[[History], bool]) -> list[Record]:
    history = next(history for history in draw_histories(own, 500, 1) if planted(history))
    smallest = shrink(history, lambda candidates: [planted(candidate) for candidate in candidates], rounds=60)
    assert planted(smallest)
    return smallest.records


def has_two_records(history: History) -> bool:
    return len(history.records) >= 2


@pytest.mark.parametrize(
    ("kind", "key_set"), [*((kind, "JSON") for kind in VALUE_KINDS), *(("text", key_set) for key_set in KEY_SETS)]
)
def test_values_and_keys_that_mean_nothing_shrink_to_the_simplest(kind: str, key_set: str) -> None:
    own = of("stream_stream_join", {"before_ms": 4, "after_ms": 6}, 3, kind=kind, key_set=key_set)
    records = shrunk(own, has_two_records)
    assert [record.key for record in records] == ["a", "a"]
    assert all(record.value in (None, 0, "", False, [], {}, {"b": 0, "a": {"": ""}}) for record in records)


@pytest.mark.parametrize(
    ("kind", "planted", "smallest"),
    [
        ("negative integers", lambda value: value < -1, -2),
        ("large integers", lambda value: value > 2**53, 2**53 + 1),
        ("large integers", lambda value: abs(value) > 2**31, 2**31 + 1),
        ("fractions", lambda value: value < 0, -1),
        ("text of all scripts", lambda value: not value.isascii(), None),
        ("text like other values", lambda value: len(value) > 2, "aaa"),
        ("lists and objects", lambda value: isinstance(value, list) and len(value) == 2, ["", []]),
    ],
)
def test_a_value_that_matters_shrinks_as_far_as_it_may(
    kind: str, planted: Callable[[Any], bool], smallest: Any
) -> None:
    own = of("session_windows", {"gap_ms": 10, "aggregate": "list"}, kind=kind)
    (record,) = shrunk(own, lambda history: any(planted(record.value) for record in history.records))
    assert record.value == smallest or (smallest is None and len(record.value) == 1)


@pytest.mark.parametrize("key_set", [name for name in KEY_SETS if name != PLAIN])
def test_a_foreign_key_and_the_rows_that_have_it_shrink_together(key_set: str) -> None:
    def has_a_row_found(history: History) -> bool:
        rights = {record.key for record in history.records if record.input == "right"}
        lefts = [record.value for record in history.records if record.input == "left" and record.value is not None]
        return any(value["artist"] in rights for value in lefts)

    own = of("foreign_key_join", {"foreign_key": "artist"}, 12, kind="text", key_set=key_set)
    records = shrunk(own, has_a_row_found)
    assert len(records) == 2
    assert {record.key for record in records} == {"a"}
    assert [record.value for record in records if record.input == "left"] == [{"artist": "a", "value": ""}]


def test_a_key_that_matters_stays_and_the_others_become_plain() -> None:
    def has_two_keys_one_reserved(history: History) -> bool:
        keys = {record.key for record in history.records}
        return "~clock" in keys and len(keys) > 1

    records = shrunk(of("table_aggregate", {"group_by": "group"}, 12, key_set="reserved"), has_two_keys_one_reserved)
    assert {record.key for record in records} == {"~clock", "a"}


def test_two_keys_never_become_one_by_a_shorter_name_alone() -> None:
    own = of("session_windows", {"gap_ms": 10}, key_set="long")
    records = shrunk(own, lambda history: len({record.key for record in history.records}) == 3)
    assert {record.key for record in records} == {"a", "b", "c"}


def test_no_candidate_has_a_value_that_the_operator_refuses() -> None:
    for name, registration in registered().items():
        for options in registration.profiles.values():
            for history in draw_histories(HistorySettings(name, options, (20, 45), 5), 2, 1, mixed=True):
                asked: list[History] = []
                shrink(history, lambda candidates, asked=asked: [bool(asked.append(one)) for one in candidates], 1)  # type: ignore[misc]
                assert asked
                for candidate in asked[:: 1 + len(asked) // 60]:
                    assert parse_history(candidate.to_text()) == candidate
                    play(candidate)  # nor records that contradict each other

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from history_strategies import histories
from hypothesis import HealthCheck, find, settings
from streamproof.properties.generators.draws import HistorySettings
from streamproof.properties.generators.values import VALUE_KINDS
from streamproof.reference.core.history import History

SEARCH = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def of(operator: str, options: dict[str, Any], arrivals: int = 6, **more: Any) -> HistorySettings:
    return HistorySettings(operator, options, (20, 45), arrivals, **more)


def has_two_records(history: History) -> bool:
    return len(history.records) >= 2


@pytest.mark.parametrize("kind", ["negative integers", "text", "all different", "lists and objects"])
def test_hypothesis_shrinks_mixed_histories_to_the_first_value_of_their_kind(kind: str) -> None:
    own = replace(of("table_table_join", {}, 3), kind=kind)
    found = find(histories(own), has_two_records, settings=SEARCH)
    assert [repr(record.value) for record in found.records] == [repr(VALUE_KINDS[kind].of(0, n)) for n in range(2)]


def test_hypothesis_shrinks_the_kind_and_the_keys_to_the_plainest() -> None:
    found = find(histories(of("table_table_join", {}, 3), mixed=True), has_two_records, settings=SEARCH)
    assert [(record.key, record.value) for record in found.records] == [("a", 0), ("a", 0)]

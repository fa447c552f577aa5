"""Values of the smallest history: where they don't matter, they are the plainest, whatever they were."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.properties.generators.columns.histories.drawing import draw_histories
from streamproof.properties.generators.columns.histories.shrinking import _key_size, _Placed, _Values, shrink, size
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.generators.columns.resolving import resolve_all

PLAINEST = {
    "string": "''",
    "bigint": "0",
    "double": "0.0",
    "boolean": "False",
    "decimal(9,2)": "Decimal('0.00')",
    "array<int>": "[]",
}


@pytest.mark.parametrize("kind", PLAINEST)
def test_values_that_do_not_matter_become_the_plainest(kind: str) -> None:
    inputs = resolve_all([Input(f"k string, at timestamp, v {kind} not null", key="k", name="rows")], 0)
    found = set()
    for history in draw_histories(inputs, [], 3, 1):
        one = shrink(
            history, inputs, lambda candidates: [bool(candidate.arrivals) for candidate in candidates], rounds=30
        )
        assert size(one, inputs) <= size(history, inputs)
        (arrival,) = one.arrivals
        found.add((arrival.row["k"], repr(arrival.row["v"])))
    assert found == {("a", PLAINEST[kind])}


def test_keys_are_simpler_in_the_order_in_which_they_are_drawn() -> None:
    keys = [1, 2, 9, 0, -1, 100]
    assert sorted(keys, key=_key_size) == keys
    assert sorted(["b", "a", "ab"], key=_key_size) == ["a", "b", "ab"]
    assert sorted([None, b"ab", b"a"], key=_key_size) == [b"a", b"ab", None]


@pytest.mark.parametrize("kind", ["int", "string"])
def test_only_simpler_values_of_the_user_s_are_tried(kind: str) -> None:
    pool = [3, -3, 5, 40] if kind == "int" else ["a", "b", "abc"]
    inputs = resolve_all([Input(f"k string, at timestamp, v {kind}", key="k", name="rows", values={"v": pool})], 0)
    values = _Values(inputs, 0)
    for value in pool:
        simpler = [*values._of_column("rows", "v", value)]
        assert value not in simpler
        assert all(values.size("rows", "v", one) < values.size("rows", "v", value) for one in simpler)


def test_a_column_is_simplified_in_every_row_that_has_a_simpler_value() -> None:
    inputs = resolve_all([Input("k string, at timestamp, v int, w int", key="k", name="rows")], 0)
    of_rows = [{"k": "a", "at": None, "v": value, "w": 7} for value in (5, 5, 0)]
    rows: Any = [_Placed(0, "rows", row, "") for row in of_rows]
    found = [[(one.row["v"], one.row["w"]) for one in made] for made in _Values(inputs, 0).simpler(rows)]
    assert found[0] == [(0, 0)] * 3
    assert [(0, 7)] * 3 in found  # one column in all rows
    assert [(0, 0), (5, 7), (0, 7)] in found  # one row
    assert [(5, 7), (0, 7), (0, 7)] in found  # one value

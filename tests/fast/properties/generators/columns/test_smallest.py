"""Values of the smallest history: where they don't matter, they are the plainest, whatever they were."""

from __future__ import annotations

import pytest
from streamproof.properties.generators.columns.histories.drawing import draw_histories
from streamproof.properties.generators.columns.histories.shrinking import shrink, size
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

"""How rows of a job are compared."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from streamproof import drop_duplicates, static_join, windows
from streamproof.properties.jobs.comparison import difference, in_words, with_columns
from streamproof.properties.jobs.model import Expected
from streamproof.properties.jobs.queries.rows import rows_of
from streamproof.properties.witnesses.equality import EXACT, TWELVE_DIGITS

NOON = datetime(2024, 7, 15, 12, tzinfo=UTC)


def differ(expected: Any, emitted: Any) -> bool:
    rows = Expected("batches", [[{"user": "a", "value": expected}]])
    return difference(rows, [[{"value": emitted, "user": "a", "extra": 1}]], "append", ["user"]) is not None


def test_a_sum_on_the_other_side_of_a_rounding_edge_does_not_differ() -> None:
    total = 100_000_000_000.5
    assert not differ(total, math.nextafter(total, math.inf))
    assert not differ([{"mean": total}], [{"mean": math.nextafter(total, math.inf)}])


def test_integers_and_decimals_beyond_12_digits_differ() -> None:
    assert differ(10**17, 10**17 + 1)


def test_the_comparison_is_named_with_how_exact_it_is() -> None:
    assert in_words("batches", TWELVE_DIGITS) == "the rows of each batch, as a bag; floating-point numbers to 12 digits"
    assert in_words("end", EXACT) == "the table at the end; numbers exactly"


def test_what_is_expected_is_projected_onto_the_columns_of_the_result() -> None:
    expected = [Expected("batches", [[], [{"user": "a", "at": NOON, "id": 1}]])]
    assert with_columns(expected, ["id", "user", "extra"]) == (
        [Expected("batches", [[], [{"user": "a", "id": 1}]])],
        ["at"],
    )
    # With none of them it would compare nothing: it is refused for what it lacks.
    assert with_columns(expected, ["name"]) == (expected, [])


def test_only_rules_that_emit_columns_of_their_inputs_are_projected() -> None:
    once = drop_duplicates(["user"])
    hours = windows("1 hour", delay="5 minutes")
    assert once.allows_fewer_columns
    assert static_join([{"user": "a"}], "user").allows_fewer_columns
    assert (hours.allows_fewer_columns, (once >> hours).allows_fewer_columns) == (False, False)


@pytest.mark.parametrize("value", [{"b": 1, "a": 2}, {}, None, {"a": None}])
def test_a_map_is_a_dict_wherever_it_stands(value: Any) -> None:
    kind = pa.map_(pa.string(), pa.int64())
    table = pa.table(
        {
            "plain": pa.array([value], kind),
            "nested": pa.array(
                [[{"of": value, "at": NOON}]], pa.list_(pa.struct({"of": kind, "at": pa.timestamp("us", "UTC")}))
            ),
        }
    )
    assert rows_of(table) == [{"plain": value, "nested": [{"of": value, "at": NOON}]}]
    assert not differ(value, rows_of(table)[0]["plain"])

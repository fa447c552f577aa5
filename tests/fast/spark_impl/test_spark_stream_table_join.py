"""The stream-table join on Spark: what becomes of rows without a key or a value."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.definitions.joins import StreamTableJoin
from streamproof.spark_impl.runtime.logic import Arrived
from streamproof.spark_impl.stream_table_join import StreamTableLogic


@pytest.mark.parametrize("key", [(None,), (None, "a"), ("a", None)])
@pytest.mark.parametrize(
    ("join", "side", "row", "reason"),
    [
        ("left", "left", "x", None),
        ("inner", "left", "x", "null key"),
        ("left", "right", "x", "null key"),
        ("inner", "right", "x", "null key"),
        ("left", "left", None, "null value"),
        ("inner", "left", None, "null key"),
    ],
)
def test_a_row_without_a_key_is_dropped_where_it_can_emit_nothing(
    join: Any, side: str, row: Any, reason: str | None, key: Any
) -> None:
    logic = StreamTableLogic(StreamTableJoin(join, "keep"))
    state = logic.empty()
    (output,) = logic.take(key, state, Arrived(5, 0, row, side), 0)
    assert (output.reason, state) == (reason, [None])

"""The coverage goals of operators are met by what they name alone: one less, or beside it, leaves them unmet."""

from __future__ import annotations

from typing import Any

import pytest
from notation import history_of
from streamproof.properties.generators.coverage import count_goals_met

RANGE, JOIN = {"preceding_ms": 5}, {"before_ms": 3, "after_ms": 5}
OF: dict[str, set[str]] = {
    "range_aggregate": {"exact bound", "bound + 1", "range of several"},
    "stream_stream_join": {"pair", "unmatched row", "several partners", "exact bound", "bound + 1"},
    "stream_table_join": {"row found", "row missing", "row deleted before"},
    "table_aggregate": {"row left", "group changed", "same group", "group emptied"},
    "table_table_join": {"both sides", "tombstone"},
    "window_aggregate": {
        "window emitted",
        "window emitted again",
        "emitted session merged",
        "window of several",
    },
    "windowed_table": {"several windows", "window emitted", "both sides", "unmatched row", "tombstone"},
    "foreign_key_join": {
        *("row found", "foreign key changed", "moved to a missing row", "left row deleted", "right row deleted"),
        *("foreign key became null", "null foreign key", "fan-out"),
    },
    "scd1": {
        *("event again", "older event", "event older than a delete", "missing row deleted"),
        *("row comes back", "row deleted", "row changed", "tie decided"),
    },
    "scd2": {"version ended", "ended version changed", "version with a newer row"},
}
FIXED, SESSION = {"size": 10}, {"size": 10, "type": "session"}


@pytest.mark.parametrize(
    ("operator", "options", "text", "goals"),
    [
        ("range_aggregate", RANGE, "k@0", set()),
        ("range_aggregate", RANGE, "k@0 k@4", set()),
        ("range_aggregate", RANGE, "k@0 k@5", {"exact bound"}),
        ("range_aggregate", RANGE, "k@0 j@5", set()),
        ("range_aggregate", RANGE, "k@0 k@6", {"bound + 1"}),
        ("range_aggregate", RANGE, "k@1 k@2 k@4", {"range of several"}),
        ("range_aggregate", RANGE, "k@0 k@2 k@7", {"exact bound"}),
        ("range_aggregate", RANGE, "k@9 k@4 k@7", set()),
        ("stream_stream_join", JOIN, "L k@0", set()),
        ("stream_stream_join", JOIN, "L k@0 R k@4", {"pair"}),
        ("stream_stream_join", JOIN, "L k@0 R k@5", {"pair", "exact bound"}),
        ("stream_stream_join", JOIN, "L k@3 R k@0", {"pair", "exact bound"}),
        ("stream_stream_join", JOIN, "L k@5 R k@0", set()),
        ("stream_stream_join", JOIN, "L k@0 R k@6", {"bound + 1"}),
        ("stream_stream_join", JOIN, "R k@0 L k@4", {"bound + 1"}),
        ("stream_stream_join", JOIN, "L k@0 k@1 R k@2", {"pair", "several partners"}),
        ("stream_stream_join", JOIN, "L k@0 R k@1 k@2", {"pair"}),
        ("stream_stream_join", {**JOIN, "join": "left", "emit": "eager"}, "L k@0", {"unmatched row"}),
        ("stream_table_join", {}, "L k@0", {"row missing"}),
        ("stream_table_join", {}, "R k=x L k", {"row found"}),
        ("stream_table_join", {}, "R j=x L k", {"row missing"}),
        ("stream_table_join", {}, "R k=x k=∅ L k", {"row deleted before"}),
        ("stream_table_join", {}, "R k=∅ L k", {"row missing"}),
        ("stream_table_join", {}, "R k=x k=∅ k=y L k", {"row found"}),
        ("table_aggregate", {}, "k=v/g", set()),
        ("table_aggregate", {}, "k=v/g k=w/g", {"same group"}),
        ("table_aggregate", {}, "k=v/g j=v/g k=v/h", {"group changed"}),
        ("table_aggregate", {}, "k=v/g k=v/h", {"group changed", "group emptied"}),
        ("table_aggregate", {}, "k=v/g k=∅", {"row left", "group emptied"}),
        ("table_aggregate", {}, "k=v/g j=v/g k=v/null", {"row left"}),
        ("table_table_join", {"join": "left"}, "L k=x", set()),
        ("table_table_join", {"join": "left"}, "L k=x R k=y", {"both sides"}),
        ("table_table_join", {"join": "left"}, "L k=x R j=y", set()),
        ("table_table_join", {"join": "left"}, "L k=x k=∅", {"tombstone"}),
        ("window_aggregate", FIXED, "k@0", set()),
        ("window_aggregate", FIXED, "k@0 k@10", {"window emitted"}),
        ("window_aggregate", FIXED, "k@0 k@9", {"window of several"}),
        ("window_aggregate", {**FIXED, "early": {"every_tuples": 1}}, "k@0", {"window emitted"}),
        (
            "window_aggregate",
            {**FIXED, "early": {"every_tuples": 1}},
            "k@0 k@9",
            {"window emitted", "window emitted again", "window of several"},
        ),
        ("windowed_table", {"size_ms": 10}, "k@0", {"window emitted"}),
        ("windowed_table", {"size_ms": 10, "emit": "close"}, "k@0", set()),
        ("windowed_table", {"size_ms": 10, "step_ms": 5}, "k@7", {"window emitted", "several windows"}),
        ("windowed_table", {"size_ms": 10, "step_ms": 5}, "k@3", {"window emitted"}),
        ("windowed_table", {"size_ms": 10, "with": "table"}, "k@0", {"window emitted", "unmatched row"}),
        ("windowed_table", {"size_ms": 10, "with": "table"}, "R k=x E k@1", {"window emitted", "both sides"}),
        ("foreign_key_join", {}, "L k=v|r1", set()),
        ("foreign_key_join", {}, "R r1=x L k=v|r1", {"row found"}),
        ("foreign_key_join", {}, "L k=v|r1 k=v|r2", {"foreign key changed"}),
        ("foreign_key_join", {}, "L k=v|r1 k=w|r1", set()),
        (
            "foreign_key_join",
            {},
            "R r1=x L k=v|r1 k=v|r2",
            {"row found", "foreign key changed", "moved to a missing row"},
        ),
        ("foreign_key_join", {}, "L k=v|r1 k=∅", {"left row deleted"}),
        ("foreign_key_join", {}, "L k=v|null", {"null foreign key"}),
        ("foreign_key_join", {}, "L k=v|r1 k=v|null", {"foreign key became null"}),
        ("foreign_key_join", {}, "L k=v|r1 j=v|r1 R r1=x", {"fan-out"}),
        ("foreign_key_join", {}, "L k=v|r1 j=v|r2 R r1=x", set()),
        ("foreign_key_join", {}, "R r1=x L k=v|r1 R r1=∅", {"row found", "right row deleted"}),
        ("foreign_key_join", {}, "R r1=x r1=∅", set()),
        ("foreign_key_join", {}, "L k=v|r1 R r1=∅", set()),
        ("scd1", {}, "k=x@5 j=y@5", set()),
        ("scd1", {}, "k=x@5 k=x@5", {"event again"}),
        ("scd1", {}, "k=x@5 k=y@6", {"row changed"}),
        ("scd1", {}, "k=x@5 k=y@4", {"older event"}),
        ("scd1", {}, "k=x@5 k=∅@6", {"row deleted"}),
        ("scd1", {}, "k=∅@6", {"missing row deleted"}),
        ("scd1", {}, "k=∅@6 k=x@5", {"missing row deleted", "event older than a delete"}),
        ("scd1", {}, "k=∅@6 k=x@7", {"missing row deleted", "row comes back"}),
        ("scd1", {"ties": "start"}, "k=x:1@5 k=y:2@5", {"row changed", "tie decided"}),
        ("scd1", {"ties": "start"}, "k=x:1@5 k=y:2@6", {"row changed"}),
        ("scd2", {}, "k=x@5 k=x@6", set()),
        ("scd2", {}, "k=x@5 k=y@6", {"version ended"}),
        ("scd2", {}, "k=x@5 k=y@9 k=z@7", {"version ended", "ended version changed"}),
        ("scd2", {"track": ["group"]}, "k=x/g@5 k=y/g@6", {"version with a newer row"}),
    ],
)
def test_a_history_meets_exactly_the_goals_of_its_operator(
    operator: str, options: dict[str, Any], text: str, goals: set[str]
) -> None:
    assert {*count_goals_met([history_of(text, operator, **options)])} & OF[operator] == goals

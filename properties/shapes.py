"""The definitions under which each operator is drawn: every option is in one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Options = Mapping[str, Any]

SCHEDULE = (30, 38, 75, 90)
"""The clock (ms) after every batch of a random history."""

_BOUNDS = {"before_ms": 4, "after_ms": 6}
_HOPPING = {"size_ms": 10, "step_ms": 5}

SHAPES: Mapping[str, Mapping[str, Options]] = {
    "session_windows": {
        "update": {"gap_ms": 10, "grace_ms": 5, "aggregate": "list"},
        "close": {"gap_ms": 10, "grace_ms": 5, "aggregate": "sum", "emit": "close", "retention_ms": 60},
        "own": {"gap_ms": 7, "grace_ms": 0, "aggregate": "count", "late": "own"},
        "no grace": {"gap_ms": 10, "aggregate": "max"},
    },
    "window_aggregate": {
        "fixed": {"size": 10, "aggregate": "sum"},
        "hopping, late update": {"size": 10, "step": 4, "late": "update", "retention_ms": 15, "aggregate": "list"},
        "early by tuples": {"size": 12, "early": {"every_tuples": 2}, "late": "update", "retention_ms": 40},
        "early by time": {"size": 20, "step": 10, "early": {"every_ms": 7}, "aggregate": "max"},
        "full": {"size": 10, "step": 5, "storage": "full", "early": {"every_tuples": 2}},
        "by tuple": {"unit": "tuple", "size": 3, "step": 2, "aggregate": "average"},
        "by tuple, early": {"unit": "tuple", "size": 4, "early": {"every_tuples": 2}, "aggregate": "list"},
        "session": {"type": "session", "size": 6, "aggregate": "list"},
        "session, late update": {
            "type": "session",
            "size": 6,
            "late": "update",
            "retention_ms": 20,
            "aggregate": "sum",
        },
        "session, early": {"type": "session", "size": 8, "early": {"every_tuples": 2}},
        "session, full": {"type": "session", "size": 6, "storage": "full"},
    },
    "range_aggregate": {
        "average": {"preceding_ms": 10, "aggregate": "average"},
        "list": {"preceding_ms": 6, "aggregate": "list"},
        "sum": {"preceding_ms": 0, "aggregate": "sum"},
        "max": {"preceding_ms": 20, "aggregate": "max"},
    },
    "stream_stream_join": {
        "inner": {**_BOUNDS, "grace_ms": 5},
        "left, arrival": {**_BOUNDS, "join": "left", "grace_ms": 5},
        "left, eager": {**_BOUNDS, "join": "left", "grace_ms": 5, "emit": "eager"},
        "left, close": {**_BOUNDS, "join": "left", "grace_ms": 5, "emit": "close", "null_key": "keep"},
        "outer, eager": {**_BOUNDS, "join": "outer"},
        "outer, close": {**_BOUNDS, "join": "outer", "grace_ms": 5, "emit": "close", "null_key": "keep"},
        "symmetric": {"before_ms": 5, "after_ms": 5, "join": "outer", "emit": "close"},
    },
    "stream_table_join": {
        "left": {},
        "left, null keys kept": {"null_key": "keep"},
        "inner": {"join": "inner"},
    },
    "table_table_join": {join: {"join": join} for join in ("inner", "left", "outer")},
    "table_aggregate": {
        "count": {"group_by": "group"},
        "sum": {"group_by": "group", "aggregate": "sum", "field": "amount"},
        "list": {"group_by": "group", "aggregate": "list", "field": "amount"},
    },
    "windowed_table": {
        "tumbling": {"size_ms": 10, "grace_ms": 5, "aggregate": "sum"},
        "hopping": {**_HOPPING, "aggregate": "list"},
        "close": {**_HOPPING, "grace_ms": 5, "emit": "close", "aggregate": "max"},
        "with table": {**_HOPPING, "with": "table"},
        "with table, close": {"size_ms": 10, "emit": "close", "with": "table", "to_stream": "window_in_key"},
        **{
            f"{join} with windowed table": {**_HOPPING, "grace_ms": 5, "with": "windowed_table", "join": join}
            for join in ("inner", "left", "outer")
        },
        **{
            f"{join}, shifted": {"size_ms": 10, "with": "windowed_table", "join": join, "shift_ms": shift}
            for join, shift in (("inner", -10), ("left", -10), ("outer", 10))
        },
        "outer, close": {"size_ms": 10, "with": "windowed_table", "join": "outer", "emit": "close"},
        "looked up by a stream": {**_HOPPING, "with": "stream_lookup", "window_start": "start"},
        "looked up by a table": {**_HOPPING, "with": "table_lookup", "window_start": "start"},
        "window in value": {**_HOPPING, "to_stream": "window_in_value"},
    },
    "foreign_key_join": {
        "inner": {"foreign_key": "artist"},
        "inner, answer": {"foreign_key": "artist", "protocol": "answer"},
        "left": {"foreign_key": "artist", "join": "left"},
        "left, null kept": {"foreign_key": "artist", "join": "left", "null_foreign_key": "keep"},
    },
    "one_to_many_join": {
        "inner": {"foreign_key": "artist"},
        "inner, answer": {"foreign_key": "artist", "protocol": "answer"},
        "left": {"foreign_key": "artist", "join": "left"},
        "left, null kept": {"foreign_key": "artist", "join": "left", "null_foreign_key": "keep"},
    },
}

NATIVE_SHAPES: Mapping[str, Mapping[str, Options]] = {
    "window_aggregate": {
        "hopping": {"size": 10, "step": 4, "retention_ms": 15, "aggregate": "average"},
    },
    "stream_stream_join": {
        "inner": {**_BOUNDS, "grace_ms": 5},
        "left": {**_BOUNDS, "join": "left", "grace_ms": 5, "emit": "close"},
        "outer": {"before_ms": 5, "after_ms": 5, "join": "outer", "emit": "close"},
    },
    "stream_table_join": {"left": {}, "inner": {"join": "inner"}},
    "windowed_table": {
        # The clock at 30 is just where a window closes, and at 38 a ms before that.
        "tumbling": {"size_ms": 9, "grace_ms": 3, "aggregate": "sum", "emit": "close"},
        "hopping, re-keyed": {
            "size_ms": 10,
            "step_ms": 4,
            "aggregate": "list",
            "emit": "close",
            "to_stream": "window_in_value",
        },
    },
}
"""The definitions under which Spark's own operators are drawn; those of session windows stand in `check`."""

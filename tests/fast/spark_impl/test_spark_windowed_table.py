"""How long a windowed table on Spark keeps a window: by its grace, its join and its retention."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.reference.definitions.windows import WindowedTable
from streamproof.spark_impl.windowed_table import Windowed, WindowedLogic, WindowedState

CLOSED = 20 + 10 + 5
"""A window of 10 ms that begins at 20 ms is closed then, with a grace of 5 ms."""


@pytest.mark.parametrize(
    ("more", "retention_ms", "over"),
    [
        ({}, None, [CLOSED, CLOSED]),
        ({}, 7, [CLOSED, CLOSED]),
        ({"with_": "table"}, None, [None, None]),
        ({"with_": "table"}, 7, [CLOSED + 7, CLOSED + 7]),
        ({"with_": "windowed_table"}, 7, [CLOSED, CLOSED]),
        ({"with_": "windowed_table", "step_ms": 2, "shift_ms": 4}, None, [CLOSED + 4, CLOSED]),
        ({"with_": "windowed_table", "step_ms": 2, "shift_ms": -4}, None, [CLOSED, CLOSED + 4]),
    ],
)
def test_a_window_is_forgotten_once_nothing_can_ask_for_it_any_more(
    more: dict[str, Any], retention_ms: int | None, over: list[int | None]
) -> None:
    logic = WindowedLogic(WindowedTable(10, grace_ms=5, **more))
    logic.retention_ms = retention_ms
    assert [logic.over(side, 20) for side in ("events", "right")] == over
    for emit in ("update", "close"):
        logic = WindowedLogic(WindowedTable(10, grace_ms=5, emit=emit, **more))
        logic.retention_ms = retention_ms
        for side, until in zip(("events", "right"), over, strict=True):
            for clock in (CLOSED - 1, CLOSED, CLOSED + 3, CLOSED + 4, CLOSED + 6, CLOSED + 7):
                state = WindowedState({"events": {}, "right": {}, side: {20: Windowed(1, 25)}}, None)
                kept = logic.keep(state, clock if emit == "close" else CLOSED - 1, clock)
                assert bool(kept.sides[side]) == (until is None or clock < until)


@pytest.mark.parametrize(
    ("emit", "clock", "due"), [("update", 0, 35), ("update", 35, None), ("close", 0, 35), ("close", 35, None)]
)
def test_a_timer_comes_when_a_window_closes_or_a_multiple_of_half_its_life_later(
    emit: Any, clock: int, due: int | None
) -> None:
    state = WindowedState({"events": {20: Windowed(1, 25)}, "right": {}}, None)
    assert WindowedLogic(WindowedTable(10, grace_ms=5, emit=emit)).due(state, clock) == due
    later = WindowedLogic(WindowedTable(10, grace_ms=5, emit=emit, with_="table"))
    later.retention_ms = 9
    assert later.due(state, 36) == 49  # 44 ms, up to a multiple of 7 ms
    assert later.due(state, 0) == (35 if emit == "close" else 49)

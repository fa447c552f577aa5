"""The laws of Samza's window operator, and a join made of two of them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from notation import (
    histories_drawn,
    history_of,
)
from streamproof.reference.core.operator import OPERATORS
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Record, bag
from streamproof.reference.definitions.aggregates import SUM
from streamproof.reference.definitions.windows import Early, WindowAggregate
from streamproof.reference.window_aggregate import Behaviour
from window_aggregates import WINDOWS, machine_of

# Case study: the join of Orders and Shipments, out of two full-state window operators.


def joined_by_windows(arrivals: list[Record], within_ms: int, **windows: Any) -> list[Change]:
    """Samza's StreamStreamJoinOperator: every message goes to its stream's windows, and reads the other's."""
    operators = {side: machine_of(retention_ms=10_000, late="update", **windows) for side in ("left", "right")}
    pairs = []
    for record in arrivals:
        operators[record.input].arrive(record)
        at = record.timestamp
        bounds = (at, at + within_ms) if record.input == "left" else (at - within_ms, at)
        others = operators["right" if record.input == "left" else "left"].messages(*bounds, id=record.value["id"])
        for other in others:
            order, shipment = (record, other) if record.input == "left" else (other, record)
            latest = max(at, other.timestamp)
            pairs.append(Change(record.key, None, [order.value, shipment.value], latest))
    return pairs


def orders_and_shipments(draw: random.Random) -> list[Record]:
    records = []
    for index in range(draw.randint(2, 14)):
        order = draw.choice(["o1", "o2", "o3"])
        at = max(0, index * 2 + draw.randint(-9, 6))
        records.append(Record(draw.choice(["left", "right"]), order, {"id": order, "n": index}, at))
    return records


@pytest.mark.parametrize(
    "windows",
    [{"size": 10}, {"size": 10, "step": 5}, {"type": "session", "size": 3}],
    ids=["fixed", "hopping", "sessions"],
)
def test_two_full_state_windows_read_by_range_and_filter_make_the_stream_stream_join(windows: dict[str, Any]) -> None:
    draw = random.Random(1)
    options = {"before_ms": 0, "after_ms": 5, "grace_ms": 1000}
    pairs = 0
    for _ in range(150):
        arrivals = orders_and_shipments(draw)
        join = play(history_of("", "stream_stream_join", **options).with_lines(arrivals)).result
        assert bag(joined_by_windows(arrivals, 5, **windows)) == join
        pairs += len(join)
    assert pairs > 150


# Laws.


@pytest.mark.parametrize("storage", ["aggregate", "full"])
def test_the_fold_is_the_meaning_with_callbacks_too(storage: Any) -> None:
    def process(record: Record) -> Record | None:
        return None if record.value % 3 == 0 else record._replace(value=record.value + 1)

    def send(change: Change) -> Change | None:
        return None if change.value is not None and change.value % 2 else change

    windows = WindowAggregate(
        5, storage=storage, aggregate=SUM, before_process=process, before_send=send, early=Early(every_tuples=2)
    )
    emitted = 0
    for history in histories_drawn(WINDOWS, 100, 5, options={"size": 5, "aggregate": "sum"}):
        played = play(history, lambda _, clock: Behaviour(windows, clock))
        outputs = [entry.output for entry in played.entries if isinstance(entry.output, Change)]
        meant = OPERATORS[WINDOWS].meaning(windows, played.accepted, played.clock)
        if storage == "full":
            assert bag(outputs) == meant
        else:
            # What is kept back leaves what was emitted before: the last change of a window decides.
            assert set(meant) <= {(change.key, change.window) for change in outputs}
        emitted += len(outputs)
    assert emitted > 20

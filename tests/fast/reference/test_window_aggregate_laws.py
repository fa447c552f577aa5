"""The laws of Samza's window operator, and a join made of two of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from notation import (
    broken_prefix,
    histories_drawn,
    history_of,
)
from streamproof.reference.core.operator import OPERATORS
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Output, Record, bag
from streamproof.reference.definitions.aggregates import SUM
from streamproof.reference.definitions.windows import Early, WindowAggregate
from streamproof.reference.window_aggregate import Behaviour, Filled, Message
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


def test_reading_without_the_filter_makes_another_join() -> None:
    arrivals = [Record("left", "o1", {"id": "o1"}, 0), Record("right", "o2", {"id": "o2"}, 1)]
    assert joined_by_windows(arrivals, 5) == []
    machine = machine_of()
    machine.arrive(arrivals[0])
    assert machine.messages(0, 5) == [arrivals[0]]
    assert machine.messages(0, 5, id="o2") == []


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


class OneWindow(Behaviour):
    """Adds a message to one of its windows alone."""

    def __init__(self, windows: WindowAggregate, clock: Any) -> None:
        super().__init__(replace(windows, step=windows.size), clock)


class Inclusive(Behaviour):
    """Takes messages into a window that has just become complete."""

    def arrive(self, record: Record) -> list[Output]:
        now, self.clock.now = self.clock.now, max(0, self.clock.now - 1)
        emitted = super().arrive(record)
        self.clock.now = max(now, self.clock.now)
        return emitted


class NoTombstones(Behaviour):
    """Leaves a merged session standing."""

    def advance(self) -> list[Output]:
        return [one for one in super().advance() if isinstance(one, Change) and one.value is not None]


def test_the_law_of_the_fold_finds_a_message_that_is_missing_in_a_window() -> None:
    options = {"size": 10, "step": 5}
    assert any(broken_prefix(one, OneWindow) for one in histories_drawn(WINDOWS, 60, options=options))


def test_the_law_of_the_fold_finds_a_close_that_is_off_by_one() -> None:
    assert any(broken_prefix(one, Inclusive) for one in histories_drawn(WINDOWS, 200, options={"size": 5}))


def test_the_law_of_the_fold_finds_a_merged_session_that_stands() -> None:
    options = {"type": "session", "size": 5, "early": {"every_tuples": 1}}
    assert any(broken_prefix(one, NoTombstones) for one in histories_drawn(WINDOWS, 60, options=options))


@pytest.mark.parametrize("policy", ["is_due", "emit"])
def test_the_law_of_the_fold_finds_a_window_that_is_emitted_twice(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"size": 5, "storage": "full", "early": {"every_tuples": 2}}
    drawn = histories_drawn(WINDOWS, 60, options=options)
    assert not any(broken_prefix(history) for history in drawn)

    class Twice(Behaviour):
        def advance(self) -> list[Output]:
            emitted = super().advance()
            return emitted * 2 if policy == "emit" else emitted[:-1]

    assert any(broken_prefix(history, Twice) for history in drawn)


def test_a_window_knows_its_not_emitted_messages() -> None:
    message = Message(Record("events", "k", 1, 3), 3)
    filled = Filled(WindowAggregate(10), "k", (0, 10), [message])
    assert filled.not_emitted == [message]
    filled.emit()
    assert filled.not_emitted == []

"""The processor of shared queries: timers, errors and state are each key's own; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from memory_runtime import Groups, Row, came, sent, stage_of
from streamproof.properties.registration.shared import FAILED
from streamproof.properties.witnesses.spark.dispatch import ROWS, Dispatch, DispatchProcessor
from streamproof.properties.witnesses.spark.query import stored_in
from streamproof.spark_impl.runtime.logic import Arrived, Key, Logic, LogicOutput, changed


class Counting(Logic[dict[str, Any]]):
    """Counts rows, and emits the count a time after the last one; a value `"raise"` raises."""

    def __init__(self, after: int) -> None:
        self.after = after

    def empty(self) -> dict[str, Any]:
        return {"count": 0, "last": None, "seen": []}

    def pack(self, state: dict[str, Any]) -> tuple[Any, ...] | None:
        return tuple(state.values()) if state["count"] else None

    def unpack(self, fields: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(("count", "last", "seen"), fields, strict=True))

    def take(self, key: Key, state: dict[str, Any], row: Arrived, clock: int) -> list[LogicOutput]:
        if row.value == "raise":
            raise ValueError("no such value")
        state["count"] += 1
        state["last"] = max(row.timestamp or 0, state["last"] or 0)
        state["seen"].append(row.value)
        return []

    def close(self, state: dict[str, Any], emitted: int, clock: int) -> list[LogicOutput]:
        if state["last"] is None or state["last"] + self.after > clock:
            return []
        return [changed(Arrived(0, None, None), state["count"], state["last"])]

    def keep(self, state: dict[str, Any], emitted: int, clock: int) -> dict[str, Any]:
        is_closed = state["last"] is not None and state["last"] + self.after <= emitted
        return self.empty() if is_closed else state

    def due(self, state: dict[str, Any], clock: int) -> int | None:
        return None if state["last"] is None else max(state["last"] + self.after, clock + 1)


class Serving(Counting):
    """Emits whenever it is served: nothing but a timer of its own may do that."""

    def close(self, state: dict[str, Any], emitted: int, clock: int) -> list[LogicOutput]:
        return [changed(Arrived(0, None, None), "served", clock)]

    def keep(self, state: dict[str, Any], emitted: int, clock: int) -> dict[str, Any]:
        return state

    def due(self, state: dict[str, Any], clock: int) -> int | None:
        return None


class Overdue(Counting):
    """Wants to be served at a time that has passed."""

    def due(self, state: dict[str, Any], clock: int) -> int | None:
        return clock


class Player:
    """A group of a shared query: each history's logic decides for all of its keys."""

    def __init__(self, *logics: Logic[Any]) -> None:
        self.logics = logics
        self.groups = Groups(1, DispatchProcessor)
        self.memory = self.groups.memories[0]

    def batch(self, clock: int, *rows: Row) -> list[tuple[Key, LogicOutput]]:
        """Serve the group as a restarted worker does; give the changes by history and key."""
        dispatch = Dispatch(self.logics, range(len(self.logics)))
        changes = came(self.groups.batch(stage_of(dispatch, [ROWS]), rows, clock))
        return sorted(((one.key, one.emitted) for one in changes), key=lambda one: (one[0][0], repr(one[0])))

    @property
    def state(self) -> list[Any]:
        groups = [] if self.memory.state is None else [{"value": {"packed": self.memory.state[0]}}]
        found = stored_in(groups)
        return [(key, fields, one.emitted, one.due) for key, fields, one in found]


def row(history: int, key: str | None, timestamp: int, value: Any = 1, order: int = 0) -> Row:
    return Row((history, key), timestamp, order, ("events", value))


def seen(changes: list[tuple[Key, LogicOutput]]) -> list[tuple[int, Any, Any]]:
    return [(*key, one.value) for key, one in changes]


def test_each_key_is_served_when_its_own_timer_is_due() -> None:
    player = Player(Counting(10), Counting(100))
    assert player.batch(0, row(0, "a", 5), row(0, "b", 30), row(1, "a", 5)) == []
    assert player.memory.timers == {15}
    assert seen(player.batch(20)) == [(0, "a", 1)]
    assert player.memory.timers == {40}
    assert seen(player.batch(50)) == [(0, "b", 1)]
    assert seen(player.batch(500)) == [(1, "a", 1)]
    assert (player.memory.timers, player.state) == (set(), [])


@pytest.mark.parametrize("with_rows", [False, True])
def test_a_key_that_is_never_due_is_not_served_by_the_timer_of_another(with_rows: bool) -> None:
    player = Player(Counting(10), Serving(0))
    player.batch(0, row(0, "a", 5), row(1, "a", 5))
    rows = [row(1, "b", 21)] if with_rows else []
    assert seen(player.batch(20, *rows)) == [(0, "a", 1)]
    assert {key[0] for key, *_ in player.state} == {1}


def test_rows_that_come_when_a_timer_is_due_are_taken_after_what_has_closed() -> None:
    player = Player(Counting(10))
    player.batch(0, row(0, "a", 5))
    assert seen(player.batch(20, row(0, "a", 21))) == [(0, "a", 1)]
    assert player.memory.timers == {31}
    assert seen(player.batch(40)) == [(0, "a", 2)]


def test_rows_are_taken_in_order_of_arrival_and_null_keys_are_dropped() -> None:
    player = Player(Counting(10))
    rows = [
        row(0, "a", 1, "third", 9),
        row(0, "a", 5, "first", 1),
        row(0, None, 2, "none", 2),
        row(0, "a", 0, "second", 4),
    ]
    ((key, dropped),) = player.batch(0, *rows)
    assert (key, dropped.change, dropped.reason) == ((0, None), "dropped", "null key")
    (kept,) = player.state
    assert kept[1][2] == ["first", "second", "third"]


def test_a_logic_that_raises_reports_it_and_the_others_go_on() -> None:
    player = Player(Counting(10), Counting(10))
    ((key, failed),) = player.batch(0, row(0, "a", 5, "raise"), row(0, "b", 5), row(1, "a", 5))
    assert (key, failed.change) == ((0, "a"), FAILED)
    assert failed.reason == "failed: ValueError: no such value"
    assert seen(player.batch(20)) == [(0, "b", 1), (1, "a", 1)]


@pytest.mark.parametrize(("method", "clock"), [("close", 20), ("keep", 20), ("pack", 20), ("due", 10)])
def test_a_logic_that_raises_at_its_end_reports_it_too(method: str, clock: int) -> None:
    def raises(*arguments: Any) -> None:
        raise RuntimeError(method)

    player = Player(broken := Counting(10), Counting(10))
    player.batch(0, row(0, "a", 5), row(1, "a", 5))
    setattr(broken, method, raises)
    changes = player.batch(clock, row(0, "a", 6))
    # What is emitted before it fails counts too.
    assert [(key[0], one.reason) for key, one in changes if one.change == FAILED] == [
        (0, f"failed: RuntimeError: {method}")
    ]
    assert (clock == 20) == ((1, "a", 1) in seen(changes))


def test_a_timer_that_is_not_after_the_watermark_is_reported() -> None:
    player = Player(Overdue(0), Counting(10))
    ((_, failed),) = player.batch(20, row(0, "a", 5), row(1, "a", 25))
    assert failed.reason == "failed: ValueError: the timer 20 isn't after the watermark 20, as Spark requires"
    assert seen(player.batch(40)) == [(1, "a", 1)]


@pytest.mark.parametrize(
    "value", [None, True, 0, -1, 2**62, 0.1, -0.0, "", "ä\0", [1, [None]], {"a": [1.5, {"b": None}], "": False}]
)
def test_state_and_values_come_back_as_they_were(value: Any) -> None:
    player = Player(Counting(10))
    player.batch(0, row(0, "a", 5, value))
    assert player.state == [((0, "a"), [1, 5, [value]], 0, 15)]
    player.batch(1, row(0, "b", 9))
    (again,) = [one for one in player.state if one[0] == (0, "a")]
    assert repr(again) == repr(((0, "a"), [1, 5, [value]], 0, 15))


def test_changes_of_a_stage_go_on_to_the_next_with_their_place() -> None:
    class Passing(Counting):
        def take(self, key: Key, state: dict[str, Any], row: Arrived, clock: int) -> list[LogicOutput]:
            return [changed(row, row.value, row.timestamp)]

    hop: Callable[..., Any] = lambda key, one: (("to", *key), (one.value,))  # noqa: E731
    rows = [Row(("a",), 5, [order, 5], value) for order, value in ((4, "y"), (3, "x"))]
    messages = sent(Groups().batch(stage_of(Passing(0), hop=hop), rows, 0))
    second = Groups().batch(stage_of(Passing(0), ["messages"]), [Row(*message) for message in messages], 0)
    changes = [(one.key, one.emitted.value[2], one.emitted.cause) for one in came(second)]
    assert changes == [(("to", "a"), "x", [3, 5, 0]), (("to", "a"), "y", [4, 5, 1])]

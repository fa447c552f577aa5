"""Pass each key of a shared query to the logic of its history, in the production runtime."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from ....spark_impl.runtime.logic import Arrived, Key, Logic, LogicOutput
from ....spark_impl.runtime.processor import Hop, KeyedProcessor
from ...registration.shared import FAILED

ROWS = "rows"
"""The input of a shared query; each value begins with the value's own input."""
NOBODY = -1
"""The history number of a row that only moves the clock."""


class Dispatch(Logic[Any]):
    """The logics of many histories in one stage, under keys that begin with a history's number.

    Args:
        logics: The logic of each definition in this stage (None if the definition's stages begin later).
        logic_of: The number of each history's definition.
    """

    def __init__(self, logics: Sequence[Logic[Any] | None], logic_of: Sequence[int]) -> None:
        self.logics = logics
        self.logic_of = logic_of
        self.own: dict[int, Logic[Any]] = {}

    def for_key(self, key: Key) -> Logic[Any]:
        """Return the logic of a history, as a separate object, because mutants may keep state between calls."""
        history = key[0]
        if history not in self.own:
            logic = None if history == NOBODY else self.logics[self.logic_of[history]]
            self.own[history] = _Nobody() if logic is None else _OfHistory(copy(logic))
        return self.own[history]


class _Nobody(Logic[Any]):
    """Process rows that only move the clock."""

    def empty(self) -> None:
        return None

    def pack(self, state: None) -> None:
        return None

    def take(self, key: Key, state: None, row: Arrived, clock: int) -> list[LogicOutput]:
        return []


class _OfHistory(Logic[Any]):
    """The logic of one history: it removes the history's number, which precedes each key in a shared query."""

    def __init__(self, logic: Logic[Any]) -> None:
        self.logic = logic
        self.keeps_null_keys = logic.keeps_null_keys
        for name in ("empty", "pack", "unpack", "close", "keep", "due"):
            setattr(self, name, getattr(logic, name))

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        return self.logic.in_order([_unwrapped(row) for row in rows])

    def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[LogicOutput]:
        return self.logic.take(key[1:], state, row, clock)


def _unwrapped(row: Arrived) -> Arrived:
    if row.side != ROWS:
        return row
    side, value = row.value
    return Arrived(row.timestamp, row.order, value, side)


class DispatchHop:
    """Sends the messages of each history to the next stage.

    Args:
        hops: For each definition, the function that addresses the messages of this stage (None: no messages).
        logic_of: The number of each history's definition.
    """

    def __init__(self, hops: Sequence[Hop | None], logic_of: Sequence[int]) -> None:
        self.hops = hops
        self.logic_of = logic_of

    def __call__(self, key: Key, sent: LogicOutput) -> tuple[Key, tuple[Any, ...]]:
        """Return the key of a message's receiver, and the message's content."""
        hop = self.hops[self.logic_of[key[0]]]
        assert hop is not None
        to, content = hop(key[1:], sent)
        return (key[0], *to), content


class DispatchProcessor(KeyedProcessor):
    """Processes a group of keys in a shared query. A logic's error must not end the query, because the query also runs
    other logics.

    The state is stored in pages of keys. A page contains few keys, so that most batches leave some pages unread. With
    many keys in a page, each batch would read every page.
    """

    keys_of_page = 2

    def failure(self, error: Exception) -> LogicOutput:
        """Return the change that reports an error of a logic."""
        place = getattr(self.stage.sides[0].order, "names", None)
        cause = None if place is None else [None] * len(place)
        return LogicOutput(None, None, None, None, FAILED, f"{FAILED}: {type(error).__name__}: {error}", cause)

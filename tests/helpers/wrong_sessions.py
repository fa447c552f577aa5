"""Bugs of the reference of session windows, named as the mutants of the operator on Spark that have the same bug."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamproof.reference.core.records import Dropped, Output, Record
from streamproof.reference.session_store import Session
from streamproof.reference.session_windows import Behaviour

ARRIVE, NEAR, ADVANCE = Behaviour.arrive, Behaviour.near, Behaviour.advance


def gap_exclusive(self: Behaviour, key: str, timestamp: int, edge: int) -> list[Session]:
    """Records exactly one gap apart don't merge."""
    gap, found = self.windows.gap_ms, NEAR(self, key, timestamp, edge)
    return [session for session in found if session.end > timestamp - gap and session.start < timestamp + gap]


def forward_only(self: Behaviour, key: str, timestamp: int, edge: int) -> list[Session]:
    """A session grows forward only."""
    return [session for session in NEAR(self, key, timestamp, edge) if session.start <= timestamp]


def forgets_between_batches(self: Behaviour) -> list[Output]:
    """State is not carried over a cut."""
    self.store.sessions.clear()
    self.store.segments.clear()
    return ADVANCE(self)


def repeats_dropped(self: Behaviour, record: Record) -> list[Output]:
    """A record at an instant that an open session already ends or starts at is dropped."""
    if record.key is not None:
        near = self.near(record.key, record.timestamp, self.windows.close_edge(self.clock.now))
        if any(record.timestamp in session.window for session in near):
            self.clock.observe(record.timestamp)
            return []
    return ARRIVE(self, record)


def shared_across_keys(self: Any, record: Record) -> list[Output]:
    """A new session also takes in the value that another key left at the same instant."""
    windows, key, at = self.windows, record.key, record.timestamp
    cache = vars(self).setdefault("cache", {})
    if key is None:
        return ARRIVE(self, record)
    self.clock.observe(at)
    near = self.near(key, at, windows.close_edge(self.clock.now))
    by = windows.aggregate
    if not near and at in cache:
        begun = by.merger(key, by.initializer(), cache[at])
        self.windows = replace(windows, aggregate=replace(by, initializer=lambda: begun))
    emitted = ARRIVE(self, record)
    self.windows = windows
    if not (emitted and isinstance(emitted[-1], Dropped)):
        bounds = [at, *(bound for session in near for bound in session.window)]
        merged = min(bounds), max(bounds)
        (cache[at],) = [one.aggregate for one in self.store.fetch(key, at, at) if one.window == merged]
    return emitted


WRONG: dict[str, tuple[str, Callable[..., Any]]] = {
    "gap_exclusive": ("near", gap_exclusive),
    "forward_only": ("near", forward_only),
    "forgets_between_batches": ("advance", forgets_between_batches),
    "repeats_dropped": ("arrive", repeats_dropped),
    "shared_across_keys": ("arrive", shared_across_keys),
}


def plant(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Plant a bug into the reference."""
    method, wrong = WRONG[name]
    monkeypatch.setattr(Behaviour, method, wrong)

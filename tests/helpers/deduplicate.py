"""An eleventh operator, registered from outside: deduplication within a time horizon.

A record is emitted unless a record of its key was emitted at most a horizon before or after it, by event time. It is
checked, mutated and shrunk like the ten, by one registration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import streamproof as sp
from streamproof.properties.registration.bindings import keyed_binding
from streamproof.properties.registration.domain import domain_of_duration
from streamproof.properties.registration.mutants import mutants_of
from streamproof.reference.core.records import Bag, Output, bag
from streamproof.spark_impl.runtime.logic import Arrived, Key, Logic, LogicOutput, changed, dropped


@dataclass(frozen=True)
class Deduplicate(sp.Definition):
    horizon_ms: int = field(metadata={"needed": 'how far apart repeats may be, such as "horizon_ms": 1000'})
    is_stream = True  # type: ignore[assignment]


def is_repeat(definition: Deduplicate, emitted: Iterable[int], timestamp: int) -> bool:
    return any(abs(timestamp - other) <= definition.horizon_ms for other in emitted)


def meaning(definition: Deduplicate, accepted: Iterable[sp.Accepted], clock: int) -> Bag:
    firsts: list[sp.Record] = []
    for record, _ in accepted:
        if not is_repeat(definition, [one.timestamp for one in firsts if one.key == record.key], record.timestamp):
            firsts.append(record)
    return bag(sp.Change(one.key, None, one.value, one.timestamp) for one in firsts)


class Behaviour:
    def __init__(self, definition: Deduplicate, clock: sp.Clock) -> None:
        self.definition, self.clock = definition, clock
        self.emitted: dict[str, list[int]] = {}

    def arrive(self, record: sp.Record) -> list[Output]:
        if record.key is None:
            return [sp.Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        if record.timestamp < self.clock.now - self.definition.horizon_ms:
            return [sp.Dropped(record.key, "late")]
        emitted = self.emitted.setdefault(record.key, [])
        if is_repeat(self.definition, emitted, record.timestamp):
            return []
        emitted.append(record.timestamp)
        return [sp.Change(record.key, None, record.value, record.timestamp)]

    def advance(self) -> list[Output]:
        return []


def register_deduplicate() -> sp.Registration:
    """Register it; the logics are local classes, for Spark's workers can't import a test's module."""

    class DeduplicateLogic(Logic[list[int]]):
        def __init__(self, definition: Any) -> None:
            self.horizon_ms = definition.horizon_ms

        def empty(self) -> list[int]:
            return []

        def pack(self, state: list[int]) -> tuple[Any, ...] | None:
            return (state,) if state else None

        def unpack(self, fields: tuple[Any, ...]) -> list[int]:
            return list(fields[0])

        def take(self, key: Key, state: list[int], row: Arrived, clock: int) -> list[LogicOutput]:
            at = row.timestamp or 0
            if at < clock - self.horizon_ms:
                return [dropped(row, "late")]
            if any(self.is_repeat(at, other) for other in state):
                return []
            state.append(at)
            return [changed(row, row.value, at)]

        def is_repeat(self, at: int, other: int) -> bool:
            return abs(at - other) <= self.horizon_ms

        def keep(self, state: list[int], emitted: int, clock: int) -> list[int]:
            return [other for other in state if other >= clock - 2 * self.horizon_ms]

        def due(self, state: list[int], clock: int) -> int | None:
            return max(min(state) + 2 * self.horizon_ms + 1, clock + 1) if state else None

    class ExclusiveHorizon(DeduplicateLogic):
        """A record exactly a horizon apart is emitted again."""

        def is_repeat(self, at: int, other: int) -> bool:
            return abs(at - other) < self.horizon_ms

    class KeptForEver(DeduplicateLogic):
        """What was emitted is never forgotten."""

        def keep(self, state: list[int], emitted: int, clock: int) -> list[int]:
            return state

    return sp.register(
        sp.Registration(
            sp.Operator("deduplicate", Deduplicate, Behaviour, meaning),
            profiles={"short": {"horizon_ms": 5}, "long": {"horizon_ms": 20}},
            space=sp.OptionSpace({"horizon_ms": (0, 1, 5, 20)}),
            domain=domain_of_duration("horizon_ms"),
            by_clock=lambda definition: True,
            without_late_data={"short": {"horizon_ms": 1000}},
            spark=keyed_binding(DeduplicateLogic, "seen array<bigint>"),
            bounded_state=lambda definition: True,
            mutants=mutants_of("deduplicate", DeduplicateLogic, "short", (ExclusiveHorizon, KeptForEver)),
        )
    )

"""The mutants of `SessionWindows.tla` as mutants of the reference.

Most mutants are bugs of a Kafka release (`docs/facts.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from ...reference.core.clocks import Clock, StreamTime
from ...reference.core.records import Change, Dropped, Key, Output, Record
from ...reference.definitions.windows import SessionWindows
from ...reference.session_store import Session
from ...reference.session_windows import Behaviour


class GapExclusive(Behaviour):
    """Records exactly one gap apart don't merge."""

    def near(self, key: Key, timestamp: int, edge: int) -> list[Session]:
        reach = self.windows.gap_ms - 1
        return self.store.fetch(key, max(timestamp - reach, edge), timestamp + reach)


class MergesOne(Behaviour):
    """If a record connects two sessions, the operator merges only the first session with the record."""

    def near(self, key: Key, timestamp: int, edge: int) -> list[Session]:
        return super().near(key, timestamp, edge)[:1]


class NoTombstone(Behaviour):
    """Merged sessions emit no tombstone."""

    def arrive(self, record: Record) -> list[Output]:
        return [one for one in super().arrive(record) if isinstance(one, Dropped) or one.value is not None]


class _ClosesEarlyWindows(SessionWindows):
    def close_edge(self, clock: int) -> int:
        return super().close_edge(clock) + 1


class ClosesEarly(Behaviour):
    """A session that ends exactly gap + grace before the clock is closed (KAFKA-8289)."""

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(_as(_ClosesEarlyWindows, windows), clock)


class _GapForgottenWindows(SessionWindows):
    def close_edge(self, clock: int) -> int:
        return clock - self.grace_ms


class GapForgotten(Behaviour):
    """A session that ends more than grace before the clock is closed (KAFKA-12718)."""

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(_as(_GapForgottenWindows, windows), clock)


def _as(kind: type[SessionWindows], windows: SessionWindows) -> SessionWindows:
    return kind(**{field.name: getattr(windows, field.name) for field in fields(windows)})


class LateKept(Behaviour):
    """A late record isn't dropped, and starts a session that is already closed."""

    def arrive(self, record: Record) -> list[Output]:
        emitted = super().arrive(record)
        if record.key is None or not emitted or not isinstance(emitted[-1], Dropped):
            return emitted
        at = record.timestamp
        self.store.put(record.key, Session(at, at, 1))
        return [*emitted[:-1], Change(record.key, (at, at), 1, at)]


class RescueForgotten(Behaviour):
    """A late record is dropped even if it would merge with an open session."""

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(replace(windows, late="own"), clock)


class _Forgets(Behaviour):
    """The base of mutants whose store deletes expired sessions; a clock advance without effect represents this step."""

    early_ms = 0

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(windows, clock)
        self.at = clock.now

    def advance(self) -> list[Output]:
        moved, self.at = self.clock.now != self.at, self.clock.now
        edge = self.windows.expiry_edge(self.clock.now) + self.early_ms
        for key in [] if moved else [*self.store.sessions]:
            for session in self.store.fetch(key, 0, edge):
                if session.end < edge:
                    self.store.remove(key, session)
        return super().advance()


class ForgetsEarly(_Forgets):
    """The store deletes sessions that end exactly the retention before the clock (Kafka Streams 4.3.1)."""

    early_ms = 1


class ClockFollows(StreamTime):
    """The clock is the last timestamp, not the largest."""

    def observe(self, timestamp: int) -> None:
        self.now = timestamp


class NullKeyMovesClock(Behaviour):
    """A record without a key moves the clock."""

    def arrive(self, record: Record) -> list[Output]:
        if record.key is None:
            self.clock.observe(record.timestamp)
        return super().arrive(record)


class EmitsAgain(Behaviour):
    """A closed session is emitted whenever the clock moves, not once."""

    def advance(self) -> list[Output]:
        super().advance()
        edge = self.windows.close_edge(self.clock.now)
        return [
            Change(key, session.window, session.aggregate, session.end)
            for key in self.store.sessions
            for session in self.store.fetch(key, 0, edge)
            if session.end < edge
        ]


class Revises(_Forgets):
    """A closed session can merge as long as the store keeps the session: the model's `Closed = "revised"`."""

    def near(self, key: Key, timestamp: int, edge: int) -> list[Session]:
        return super().near(key, timestamp, 0)


MUTANTS: Mapping[str, type[Behaviour]] = {
    "none": Behaviour,
    "gap exclusive": GapExclusive,
    "merges one": MergesOne,
    "no tombstone": NoTombstone,
    "closes early": ClosesEarly,
    "gap forgotten": GapForgotten,
    "late kept": LateKept,
    "rescue forgotten": RescueForgotten,
    "forgets early": ForgetsEarly,
    "clock follows": Behaviour,
    "null key moves clock": NullKeyMovesClock,
    "tells again": EmitsAgain,
}
"""The state machine for each value of the constant `Mutant`; "clock follows" is a clock."""

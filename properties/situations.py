"""Situations: what must have come up in some history before a law may say that it conforms.

A record counts as a session of its own, as in KIP-94: one that joins a session makes a merge of two, one that bridges
two sessions a merge of three. A record can't bridge more: open sessions of a key lie more than a gap apart, and three
of them would span more than the two gaps around a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..reference import session_windows
from ..reference.histories import History
from ..reference.play import Played, play
from ..reference.records import Dropped, Output, Record
from .operator_situations import met

SESSION_SITUATIONS = (
    "merge of two",
    "merge of three or more",
    "record inside a session",
    "exact gap",
    "gap + 1",
    "late dropped",
    "late rescued",
    "two keys",
    "empty batch",
    "same timestamp twice",
)


class _Watched(session_windows.Behaviour):
    """The reference, which also notes what it met."""

    met: Counter[str]
    seen: set[tuple[str, int]]

    def arrive(self, record: Record) -> list[Output]:
        key, timestamp, gap = record.key, record.timestamp, self.windows.gap_ms
        if key is None:
            return super().arrive(record)
        self.clock.observe(timestamp)
        edge = self.windows.close_edge(self.clock.now)
        around = self.store.fetch(key, max(timestamp - gap - 1, edge), timestamp + gap + 1)
        outputs = super().arrive(record)
        if any(isinstance(output, Dropped) for output in outputs):
            self.met["late dropped"] += 1
            return outputs
        apart = [max(session.start - timestamp, timestamp - session.end) for session in around]
        near = [session for session, distance in zip(around, apart, strict=True) if distance <= gap]
        self.met["merge of two"] += len(near) == 1 and near[0].window != (timestamp, timestamp)
        self.met["merge of three or more"] += len(near) > 1
        self.met["record inside a session"] += any(session.start < timestamp < session.end for session in near)
        self.met["exact gap"] += gap in apart
        self.met["gap + 1"] += gap + 1 in apart
        self.met["late rescued"] += timestamp < edge
        self.met["same timestamp twice"] += (key, timestamp) in self.seen
        self.seen.add((key, timestamp))
        return outputs


def situations_of(histories: Iterable[History], played: Iterable[Played] | None = None) -> Counter[str]:
    """Count in how many histories each situation came up; `played` is the reference's play of each, if at hand."""
    total: Counter[str] = Counter()
    known = None if played is None else iter(played)
    for history in histories:
        own = None if known is None else next(known)
        if history.operator != "session_windows":
            total.update(met(history, own or play(history)))
            continue
        watched: list[_Watched] = []

        def watch(windows: object, clock: object, watched: list[_Watched] = watched) -> _Watched:
            machine = _Watched(windows, clock)  # type: ignore[arg-type]
            machine.met, machine.seen = Counter(), set()
            watched.append(machine)
            return machine

        play(history, watch)
        noticed = watched[0].met
        noticed["two keys"] += len({key for key, _ in watched[0].seen}) > 1
        noticed["empty batch"] += any(not any(isinstance(line, Record) for line in batch) for batch in history.batches)
        total.update(name for name, times in noticed.items() if times)
    return total

"""Each law of session windows catches a mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from session_laws import (
    KEYS,
    SCHEDULE,
    Machine,
    closed_is_emitted_at_once,
    closed_is_final,
    closing_is_in_order,
    cuts_play_no_part,
    drops_exactly_what_is_late,
    every_accepted_record_counts_once,
    folds_to_the_meaning,
    keys_are_independent,
    open_sessions_lie_apart,
    order_plays_no_part,
    repeats_count_again,
)
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.laws.of_reference.fold_is_meaning import FoldIsMeaning
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.reference.core.clocks import Clock
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change, Dropped, Key, Output, Record
from streamproof.reference.definitions.windows import SessionWindows
from streamproof.reference.session_store import Session, SessionStore
from streamproof.reference.session_windows import Behaviour


class MutableStore(SessionStore):
    """A session store that knows its windows, for mutants to override."""

    def __init__(self, windows: SessionWindows) -> None:
        super().__init__(windows.retention_ms)
        self.windows = windows


class ExclusiveGap(MutableStore):
    """A record exactly one gap away starts a session of its own."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key, earliest_end + 1, latest_start - 1)


class LooksOnlyBack(MutableStore):
    """Sessions after an out-of-order record aren't found."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key, earliest_end, latest_start - self.windows.gap_ms)


class MergesOneNeighbour(MutableStore):
    """A bridge joins the first session and leaves the second."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key, earliest_end, latest_start)[:1]


class ForgetsToRemove(MutableStore):
    """Merged sessions stay in the store."""

    def remove(self, key: Key, session: Session) -> None:
        pass


class KeysByFirstLetter(MutableStore):
    """Keys that begin alike share their sessions."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key[:1], earliest_end, latest_start)

    def put(self, key: Key, session: Session) -> bool:
        return super().put(key[:1], session)

    def remove(self, key: Key, session: Session) -> None:
        super().remove(key[:1], session)


class RevisesTheClosed(MutableStore):
    """Closed sessions that are still stored are merged."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return super().fetch(key, min(earliest_end, latest_start - 2 * self.windows.gap_ms), latest_start)


class HidesOneTickEarly(MutableStore):
    """A session that ends exactly where the search begins is invisible, one on the close edge too."""

    def fetch(self, key: Key, earliest_end: int, latest_start: int) -> list[Session]:
        return [session for session in super().fetch(key, earliest_end, latest_start) if session.end > earliest_end]


class ForgetsTombstones(Behaviour):
    def arrive(self, record: Record) -> list[Output]:
        return [output for output in super().arrive(record) if isinstance(output, Dropped) or output.value is not None]


class TombstonesLast(Behaviour):
    def arrive(self, record: Record) -> list[Output]:
        return super().arrive(record)[::-1]


class LateAlone(Behaviour):
    """The record alone is tested, whatever the declaration says."""

    def arrive(self, record: Record) -> list[Output]:
        if record.key is not None:
            self.clock.observe(record.timestamp)
            if record.timestamp < self.windows.close_edge(self.clock.now):
                return [*self.advance(), Dropped(record.key, "late")]
        return super().arrive(record)


class TakesTheLate(Behaviour):
    """Nothing is ever dropped as late: the record starts a session of its own."""

    def arrive(self, record: Record) -> list[Output]:
        outputs = super().arrive(record)
        if Dropped(record.key, "late") in outputs:
            assert record.key is not None
            at = record.timestamp
            return [*outputs[:-1], Change(record.key, (at, at), 1, at)]
        return outputs


class DropsRepeats(Behaviour):
    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(windows, clock)
        self.seen: set[Record] = set()

    def arrive(self, record: Record) -> list[Output]:
        if record in self.seen:
            self.clock.observe(record.timestamp)
            return self.advance()
        self.seen.add(record)
        return super().arrive(record)


class ForgetsAtCuts(Behaviour):
    """The state is lost whenever the batch clock moves."""

    last = 0

    def advance(self) -> list[Output]:
        if self.clock.now != self.last:
            self.last = self.clock.now
            self.store.sessions.clear()
            self.store.segments.clear()
        return super().advance()


class Shifted(SessionWindows):
    def close_edge(self, clock: int) -> int:
        return super().close_edge(clock) + 1


class NoGap(SessionWindows):
    def close_edge(self, clock: int) -> int:
        return clock - self.grace_ms


def stored(kind: type[MutableStore]) -> Machine:
    def machine(windows: SessionWindows, clock: Clock) -> Behaviour:
        behaviour = Behaviour(windows, clock)
        behaviour.store = kind(windows)
        return behaviour

    return named(kind.__name__, machine)


def named(name: str, machine: Machine) -> Machine:
    machine.__name__ = name
    return machine


def redeclared(kind: type[SessionWindows]) -> Machine:
    def machine(windows: SessionWindows, clock: Clock) -> Behaviour:
        other = kind(
            windows.gap_ms, windows.grace_ms, windows.retention_ms, windows.aggregate, windows.emit, windows.late
        )
        return Behaviour(other, clock)

    return named(kind.__name__, machine)


class EmitsTwice(Behaviour):
    """A session that closes is emitted again at the next step."""

    again: tuple[Output, ...] = ()

    def advance(self) -> list[Output]:
        emitted = super().advance()
        before, self.again = self.again, tuple(emitted)
        return [*before, *emitted]


class EmitsLatestFirst(Behaviour):
    def advance(self) -> list[Output]:
        return super().advance()[::-1]


class EmitsOneAtATime(Behaviour):
    """Where several sessions close at once, all but the first wait for the next step."""

    def __init__(self, windows: SessionWindows, clock: Clock) -> None:
        super().__init__(windows, clock)
        self.waiting: list[Output] = []

    def advance(self) -> list[Output]:
        self.waiting += super().advance()
        emitted, self.waiting = self.waiting[:1], self.waiting[1:]
        return emitted


Law: TypeAlias = Callable[..., bool]
UPDATE: dict[str, Any] = {"gap_ms": 10, "grace_ms": 5}
CLOSE: dict[str, Any] = {**UPDATE, "emit": "close"}
LONG: dict[str, Any] = {**UPDATE, "retention_ms": 1000}
WITHOUT_LATE_DATA: dict[str, Any] = {"gap_ms": 10, "grace_ms": 1000}
LISTS: dict[str, Any] = {**WITHOUT_LATE_DATA, "aggregate": "list"}
MUTANTS_OF_LAWS: list[tuple[Law, Machine, dict[str, Any]]] = [
    (folds_to_the_meaning, stored(ExclusiveGap), UPDATE),
    (folds_to_the_meaning, stored(LooksOnlyBack), UPDATE),
    (folds_to_the_meaning, stored(MergesOneNeighbour), UPDATE),
    (folds_to_the_meaning, stored(ForgetsToRemove), UPDATE),
    (folds_to_the_meaning, stored(KeysByFirstLetter), UPDATE),
    (folds_to_the_meaning, stored(RevisesTheClosed), LONG),
    (folds_to_the_meaning, stored(HidesOneTickEarly), UPDATE),
    (folds_to_the_meaning, ForgetsTombstones, UPDATE),
    (folds_to_the_meaning, TombstonesLast, UPDATE),
    (folds_to_the_meaning, DropsRepeats, UPDATE),
    (folds_to_the_meaning, ForgetsAtCuts, UPDATE),
    (folds_to_the_meaning, redeclared(Shifted), CLOSE),
    (folds_to_the_meaning, redeclared(NoGap), CLOSE),
    (drops_exactly_what_is_late, LateAlone, UPDATE),
    (drops_exactly_what_is_late, TakesTheLate, UPDATE),
    (drops_exactly_what_is_late, stored(RevisesTheClosed), LONG),
    (drops_exactly_what_is_late, redeclared(Shifted), UPDATE),
    (drops_exactly_what_is_late, redeclared(NoGap), UPDATE),
    (order_plays_no_part, stored(LooksOnlyBack), WITHOUT_LATE_DATA),
    (order_plays_no_part, stored(MergesOneNeighbour), WITHOUT_LATE_DATA),
    (cuts_play_no_part, ForgetsAtCuts, WITHOUT_LATE_DATA),
    (repeats_count_again, DropsRepeats, LISTS),
    (keys_are_independent, stored(KeysByFirstLetter), UPDATE),
    (closed_is_final, stored(RevisesTheClosed), LONG),
    (closed_is_final, TakesTheLate, UPDATE),
    (closed_is_final, EmitsTwice, CLOSE),
    (closed_is_final, redeclared(NoGap), CLOSE),
    (closing_is_in_order, EmitsLatestFirst, CLOSE),
    (closed_is_emitted_at_once, EmitsOneAtATime, CLOSE),
    (open_sessions_lie_apart, stored(ExclusiveGap), UPDATE),
    (open_sessions_lie_apart, stored(MergesOneNeighbour), UPDATE),
    (open_sessions_lie_apart, ForgetsTombstones, UPDATE),
    (every_accepted_record_counts_once, stored(ForgetsToRemove), UPDATE),
    (every_accepted_record_counts_once, ForgetsTombstones, UPDATE),
    (every_accepted_record_counts_once, DropsRepeats, UPDATE),
]
LAWS_AND_OPTIONS = [(law, options) for law, _, options in MUTANTS_OF_LAWS]


def name_of(part: object) -> str:
    if isinstance(part, dict):
        return str(part.get("emit", "update"))
    return getattr(part, "__name__", "mutant")


def drawn_for(options: dict[str, Any]) -> Iterator[History]:
    return draw_histories(HistorySettings("session_windows", options, SCHEDULE, 20, KEYS), count=60, seed=94)


@pytest.mark.parametrize(("law", "mutant", "options"), MUTANTS_OF_LAWS, ids=name_of)
def test_the_law_kills_the_mutant(law: Law, mutant: Machine, options: dict[str, Any]) -> None:
    assert not all(law(history, mutant) for history in drawn_for(options))


@pytest.mark.parametrize(
    ("law", "options"),
    [
        (law, options)
        for index, (law, _, options) in enumerate(MUTANTS_OF_LAWS)
        if (law, options) not in LAWS_AND_OPTIONS[:index]
    ],
    ids=name_of,
)
def test_the_law_holds_for_the_reference_on_the_same_histories(law: Law, options: dict[str, Any]) -> None:
    assert all(law(history) for history in drawn_for(options))


def test_the_published_first_law_agrees_with_the_one_here() -> None:
    def caught(mutant: Machine, history: History) -> bool:
        return bool(FoldIsMeaning().differences(history, play(history, mutant), Outcome("h", Grain.END, final={})))

    assert any(caught(stored(MergesOneNeighbour), history) for history in drawn_for(UPDATE))
    assert not any(caught(Behaviour, history) for history in drawn_for(UPDATE))

"""Every schedule of small histories, breadth first, so that the first wrong result has the shortest schedule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from foreign_key_protocols import (
    DeafToInserts,
    Hashed,
    Resubscribe,
    SilentMove,
    SilentNull,
    Unchecked,
    WrittenAgain,
    with_left,
    with_right,
    written,
)
from streamproof.reference import foreign_key_protocol
from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.records import Accepted, Change, Key, Record, Value
from streamproof.reference.definitions.joins import ForeignKeyJoin
from streamproof.reference.foreign_key_join import meaning
from streamproof.reference.foreign_key_protocol import (
    Instruction,
    Left,
    Protocol,
    Response,
    Subscription,
    digest_of,
    prefix_of,
)
from streamproof.specs.replays.foreign_key_mutants import AsksTheOldKey, UnsubscribeNotSent

# Mutants: bugs that shipped (docs/facts.md).


class SilentDelete(Left):
    """A delete asks for no answer."""

    def change(self, key: Key, new: Value, timestamp: int) -> tuple[list[Subscription], list[Change]]:
        subscriptions, emitted = super().change(key, new, timestamp)
        if new is None:
            subscriptions = [one._replace(instruction=Instruction.DELETE_KEY_NO_PROPAGATE) for one in subscriptions]
        return subscriptions, emitted


class Unordered(Protocol):
    """Messages on one route overtake each other."""

    def _send(self, *messages: Subscription | Response) -> None:
        super()._send(*messages)
        for waiting in self.waiting.values():
            waiting.reverse()


# Every schedule of small histories, by breadth first, so that the first bad ending has the shortest schedule.


class Row(dict[str, Any]):
    """A left value that can stand in a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


digest_once = cache(digest_of)
LEFT_CHOICES = ("r1", "r2", None, "gone")
RIGHT_CHOICES = (("r1", "x"), ("r1", None), ("r2", "y"), ("r2", None))


class State(NamedTuple):
    protocol: Protocol
    result: tuple[Any, Any] | None
    left: Row | None
    lefts: int
    rights: int
    answered: bool
    named: bool
    path: tuple[str, ...]


class Ending(NamedTuple):
    """A state in which no message waits."""

    result: tuple[Any, Any] | None
    meant: tuple[Any, Any] | None
    subscribed_right: bool
    answered: bool
    path: tuple[str, ...]


def copied(thing: Any) -> Any:
    other = object.__new__(type(thing))
    for name, value in vars(thing).items():
        other.__dict__[name] = value.copy() if isinstance(value, (dict, set, list)) else value
    return other


def clone(protocol: Protocol, side: str) -> Protocol:
    """A copy with a side of its own, for a move that changes that side and what waits."""
    other: Protocol = copied(protocol)
    setattr(other, side, copied(getattr(protocol, side)))
    other.waiting = {route: messages.copy() for route, messages in protocol.waiting.items()}
    return other


def key_of(state: State) -> Any:
    protocol = state.protocol
    return (
        state[1:7],
        tuple(protocol.left.table.items()),
        len(protocol.left.shown),
        frozenset(protocol.right.table.items()),
        frozenset(protocol.right.subscriptions.items()),
        frozenset((route, tuple(messages)) for route, messages in protocol.waiting.items()),
    )


def folded(result: tuple[Any, Any] | None, emitted: list[Any]) -> tuple[Any, Any] | None:
    for change in emitted:
        result = None if change.value is None else tuple(change.value)
    return result


def moves(state: State, lefts: int, rights: int, unique: bool) -> Iterator[State]:
    """Every next state; r2 is named only after r1, for the two are alike."""
    protocol, result, left, done_left, done_right, answered, named, path = state
    for choice in LEFT_CHOICES if done_left < lefts else ():
        if choice == "r2" and not named:
            continue
        value = None if choice == "gone" else Row(v=done_left if unique else 0, fk=choice)
        other = clone(protocol, "left")
        result_then = folded(result, other.arrive(Record("left", "l", value, 0)))
        then = (*path, "l=∅" if value is None else f"l={value['v']}|{choice or 'null'}")
        yield State(other, result_then, value, done_left + 1, done_right, False, named or choice == "r1", then)
    for key, right in RIGHT_CHOICES if done_right < rights else ():
        if key == "r2" and not named:
            continue
        other = clone(protocol, "right")
        result_then = folded(result, other.arrive(Record("right", key, right and f"{right}{done_right}", 0)))
        then = (*path, f"{key}={right or '∅'}")
        yield State(other, result_then, left, done_left, done_right + 1, answered, True, then)
    for route, (message, *_) in protocol.waiting.items():
        other = clone(protocol, "left" if isinstance(message, Response) else "right")
        own = isinstance(message, Response) and message.digest == digest_once(left)
        result_then = folded(result, other.deliver(*route))
        yield State(other, result_then, left, done_left, done_right, answered or own, named, (*path, written(route)))


def ending(state: State) -> Ending:
    protocol = state.protocol
    rows = [Accepted(Record("right", key, value, 0), 0) for key, (value, _) in protocol.right.table.items()]
    table = meaning(protocol.join, [*rows, Accepted(Record("left", "l", state.left, 0), 0)], 0)
    meant = tuple(table["l", None][0]) if table else None
    named = None if state.left is None else state.left["fk"]
    wanted = {} if named is None else {prefix_of(named) + b"l": ("l", digest_once(state.left))}
    return Ending(state.result, meant, protocol.right.subscriptions == wanted, state.answered, state.path)


def endings(machine: type[Protocol], lefts: int, rights: int, unique: bool = True, **options: Any) -> Iterator[Ending]:
    start = machine(ForeignKeyJoin("fk", delivery="manual", **options), StreamTime())
    states = [State(start, None, None, 0, 0, True, False, ())]
    seen = {key_of(states[0])}
    for state in states:
        if not state.protocol.waiting:
            yield ending(state)
        for then in moves(state, lefts, rights, unique):
            key = key_of(then)
            if key not in seen:
                seen.add(key)
                states.append(then)


@pytest.fixture(autouse=True, scope="module")
def _hashes_are_computed_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            foreign_key_protocol,
            "digest_of",
            lambda value: digest_once(value) if isinstance(value, Row) else digest_of(value),
        )
        yield


ANSWERED: dict[str, dict[str, Any]] = {
    "left": {"join": "left"},
    "left, keep": {"join": "left", "null_foreign_key": "keep"},
    "inner, answer": {"protocol": "answer"},
}


@pytest.mark.parametrize("options", ANSWERED.values(), ids=ANSWERED)
@pytest.mark.parametrize(("lefts", "rights", "unique"), [(3, 2, True), (3, 1, False)], ids=["unique", "repeated"])
def test_every_schedule_of_a_join_that_answers_ends_in_the_meaning(
    lefts: int, rights: int, unique: bool, options: dict[str, Any]
) -> None:
    ends = list(endings(Protocol, lefts, rights, unique, **options))
    assert [end.path for end in ends if end.result != end.meant] == []
    assert [end.path for end in ends if not end.subscribed_right] == []
    assert len(ends) > 20


def test_the_inner_join_of_kip_ends_stale_only_where_no_answer_carries_the_hash_of_the_last_left_change() -> None:
    ends = list(endings(Protocol, 3, 2))
    stale = [end for end in ends if end.result != end.meant]
    assert 10 < len(stale) < len(ends) / 2
    assert [end.path for end in stale if end.answered] == []
    assert any(end.answered and end.path for end in ends)
    assert [end.path for end in ends if not end.subscribed_right] == []
    # The shortest is an update under the same key while the row goes away.
    assert stale[0].path == ("l=0|r1", "r1=x", ">r1", "r1=∅", "<r1/l", "l=1|r1", "<r1/l", ">r1")


# The same search finds the bugs: a search that nothing breaks would show nothing.


MUTANTS: dict[str, tuple[type[Protocol], dict[str, Any]]] = {
    "no hash check": (with_left(Unchecked), {"join": "left"}),
    "routes without order": (Unordered, {"join": "left"}),
    "KAFKA-18713": (with_left(AsksTheOldKey), {"join": "left"}),
    "KAFKA-9244, new hash": (with_right(Resubscribe, Hashed), {"join": "left"}),
    "a silent move, left": (with_left(SilentMove), {"join": "left"}),
    "a silent move, inner": (with_left(SilentMove), {"protocol": "answer"}),
    "a silent delete": (with_left(SilentDelete), {"join": "left"}),
    "a silent null key": (with_left(SilentNull), {"join": "left"}),
    "deaf to inserts": (with_left(DeafToInserts), {"join": "left"}),
    "KAFKA-15303": (with_left(WrittenAgain), {"join": "left"}),
}


def first_wrong(machine: type[Protocol], **options: Any) -> Ending:
    return next(end for end in endings(machine, 2, 1, **options) if end.result != end.meant)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_search_kills_a_mutant_by_the_result(name: str) -> None:
    machine, options = MUTANTS[name]
    assert first_wrong(machine, **options).path


def test_a_missing_unsubscribe_shows_in_the_subscriptions_alone() -> None:
    # KAFKA-9244: the hash check hides it
    ends = list(endings(with_left(UnsubscribeNotSent), 2, 2, join="left"))
    assert [end.path for end in ends if end.result != end.meant] == []
    shortest = next(end.path for end in ends if not end.subscribed_right)
    assert shortest == ("l=0|r1", "l=1|r2", ">r1", ">r2", "<r1/l", "<r2/l")

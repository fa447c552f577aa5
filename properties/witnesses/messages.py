"""The waiting messages of a history with manual delivery, on a witness and on the protocol's model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ...reference.core.history import Cut, History
from ...reference.core.play import play
from ...reference.core.records import Change, Key, Output, Record
from ...reference.foreign_key_protocol import Protocol, Response, Route, Subscription
from ..outcomes.outcomes import Difference, Outcome, differences

T = TypeVar("T")


class WaitingMessage(NamedTuple):
    """A waiting message: its receiver, its instruction (subscription) or right value (response), and its timestamp
    (ms).
    """

    key: Key
    content: Any
    timestamp: int


Waiting: TypeAlias = Mapping[Route, tuple[WaitingMessage, ...]]


@dataclass
class Staged:
    """The outcome of a history with manual delivery.

    Attributes:
        outcome: The outcome, by arrival.
        waiting: The waiting messages after each arrival, oldest first.
    """

    outcome: Outcome
    waiting: list[Waiting] = field(default_factory=list)


def staged_by_protocol(history: History) -> Staged:
    """Run a history on the reference's protocol; return its outcome, and the waiting messages after each arrival."""
    after: list[Waiting] = []

    class Watched(Protocol):
        def arrive(self, record: Record) -> list[Output]:
            return self.noted(super().arrive(record))

        def deliver(self, channel: str, foreign_key: Key, key: Key | None) -> list[Change]:
            return self.noted(super().deliver(channel, foreign_key, key))

        def advance(self) -> list[Output]:
            return self.noted(super().advance())

        def noted(self, emitted: T) -> T:
            after.append({route: tuple(map(_message, messages)) for route, messages in self.waiting.items()})
            return emitted

    played = play(history, Watched)
    # `after` has one entry more than the history has lines: the state at the end.
    waits = [waiting for line, waiting in zip(history.lines, after, strict=False) if not isinstance(line, Cut)]
    return Staged(Outcome.of_play(history.name, played), waits)


def _message(message: Subscription | Response) -> WaitingMessage:
    content = message.instruction.value if isinstance(message, Subscription) else message.value
    return WaitingMessage(message.key, content, message.timestamp)


def staged_differences(history: History, staged: Staged, expected: Staged | None = None) -> list[Difference]:
    """Return a witness's differences from the reference's protocol, in its output or in its waiting messages.

    Args:
        history: The history.
        staged: The witness's outcome.
        expected: The protocol's outcome, if already known.
    """
    expected = staged_by_protocol(history) if expected is None else expected
    found = differences(expected.outcome, staged.outcome)
    for arrival, (ours, theirs) in enumerate(zip(expected.waiting, staged.waiting, strict=True)):
        for route in sorted(ours.keys() | theirs.keys(), key=str):
            if ours.get(route) != theirs.get(route):
                left, right = ([*messages.get(route, ())] for messages in (ours, theirs))
                found.append(Difference(arrival, left, right, " ".join(filter(None, route)), history.name))
    return found

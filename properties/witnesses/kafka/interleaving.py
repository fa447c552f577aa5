"""Runs the foreign-key join on Kafka's own processors, in a test driver, with any order of its messages.

The test driver forwards every message immediately, so it can't show races. This module removes the topics of
subscriptions and responses from the driver's map of read topics. So their messages become output, which waits in this
process. When this process sends a message to the message's topic, the driver forwards the message. Histories with
separate keys share a driver. One round trip executes a step of all these histories.

Source: `docs/facts.md`, "Kafka Streams, observed"; `foreignkeyjoin.SubscriptionWrapperSerde`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from ....reference.core.errors import BadInput
from ....reference.core.history import Cut, Delivery, History, Line
from ....reference.core.play import Entry
from ....reference.core.records import Change, Key, Record, Value
from ....reference.foreign_key_protocol import Instruction
from ...outcomes.outcomes import Grain, Outcome
from ...registration.kafka import Kafka
from ...registration.key_space import owner, prefixed_key
from ...registration.registration import Registration, registration_of
from ..messages import Staged, Waiting, WaitingMessage
from .builder import KafkaDialect
from .jvm import KafkaJvm, kafka_jvm
from .playing import DRIVER, INPUTS, OUTPUT, playing_held, topology_of

COHORT = 2000
"""The maximum number of histories per driver; a driver keeps the records of its changelogs until its end."""
INSTRUCTIONS = (
    Instruction.DELETE_KEY_NO_PROPAGATE,
    Instruction.DELETE_KEY_AND_PROPAGATE,
    Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE,
    Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE,
)
"""The instructions, by the number in a subscription's second byte."""
HASH_BYTES = 16
HASH_IS_NULL = 0x80
"""The bit of a message's first byte that is set if the message contains no hash."""

KafkaRoute: TypeAlias = tuple[str, Key | None, Key | None]
"""A route as in a history; its foreign key is None for a subscription without a key, and for its response."""
PipedIn: TypeAlias = tuple[str, str | None, str | None, int]
"""A row to send to the driver: the topic, and the record's fields as in `Captured`."""


class Captured(NamedTuple):
    """A record of the driver: key and value as texts with one Latin-1 character for each byte, and the timestamp
    (ms).
    """

    key: str | None
    value: str | None
    timestamp: int


class Overtaking(NamedTuple):
    """A delivery of a message, and the number of messages that it overtakes on its route; only messages without a key
    overtake.
    """

    delivery: Delivery
    before: int


ScriptStep: TypeAlias = Line | Overtaking
DeliveryScript: TypeAlias = Callable[[Collection[KafkaRoute]], ScriptStep | None]
"""A function from the routes with waiting messages to the next line, or None at the end."""


def written(lines: Iterable[ScriptStep], completes: bool = False) -> DeliveryScript:
    """Return the script of the given lines; with `completes`, the script finally delivers all waiting messages."""
    remaining = iter(lines)

    def following(waiting: Collection[KafkaRoute]) -> ScriptStep | None:
        line = next(remaining, None)
        return _delivery(next(iter(waiting))) if line is None and completes and waiting else line

    return following


class ScriptBranch:
    """A script: a history's changes in order, with deliveries between the changes.

    Args:
        history: The history; its deliveries are ignored.
        choices: The number of the chosen line at each step, among the possible next lines.
    """

    def __init__(self, history: History, choices: tuple[int, ...] = ()) -> None:
        self.history, self.choices = history, choices
        self.records = deque(history.records)
        self.widths: list[int] = []

    def __call__(self, waiting: Collection[KafkaRoute]) -> Line | None:
        """Return the chosen line: the next change, if there is one, or a delivery."""
        following: list[Line] = [*list(self.records)[:1], *map(_delivery, waiting)]
        if not following:
            return None
        step = len(self.widths)
        line = following[self.choices[step] if step < len(self.choices) else 0]
        self.widths.append(len(following))
        if isinstance(line, Record):
            self.records.popleft()
        return line

    def others(self) -> Iterator[ScriptBranch]:
        """Yield the branches that differ from this branch at a step without a given choice."""
        for step in range(len(self.choices), len(self.widths)):
            taken = (*self.choices, *(0 for _ in range(step - len(self.choices))))
            for other in range(1, self.widths[step]):
                yield ScriptBranch(self.history, (*taken, other))


def _delivery(route: KafkaRoute) -> Delivery:
    return Delivery(*route)  # type: ignore[arg-type]  # of a route without key, which no history names


@dataclass
class HeldPlay:
    """A history on a shared driver: its script, and its outcome.

    Attributes:
        script: Chooses the next line.
        history: The history, with the operator and the options.
        is_strict: Whether a delivery from an empty route is refused, and not ignored.
        is_watched: Whether to record the waiting messages after each arrival.
        keyless_waits: Whether a subscription without a key, which a left join sends for a row without a foreign key,
            has a separate route. If false, the subscription is delivered with the old key's subscription, or
            immediately without such a subscription.
        lines: The played lines.
        entries: The outputs.
        waiting: After each arrival, the waiting messages, if requested.
    """

    script: DeliveryScript
    history: History
    is_strict: bool = True
    is_watched: bool = False
    keyless_waits: bool = False
    lines: list[ScriptStep] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    waiting: list[Mapping[KafkaRoute, tuple[WaitingMessage, ...]]] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """The outcome."""
        return Outcome(self.history.name, Grain.ARRIVAL, self.entries, knows_dropped=False)


def play_held(
    version: str, histories: Sequence[History], dialect: KafkaDialect, strict: bool = True, watched: bool = False
) -> list[Staged]:
    """Run histories with manual delivery; return their outcomes, and the waiting messages after each arrival.

    Args:
        version: The release.
        histories: The histories; their options may differ.
        dialect: The settings of Kafka Streams.
        strict: Whether a delivery from an empty route is refused, and not ignored.
        watched: Whether to record the waiting messages.

    Raises:
        BadInput: A history delivers from a route without waiting messages; the error contains the arrival or line.
    """
    plays = [HeldPlay(written(one.lines), one, strict, watched, dialect.keyless_waits) for one in histories]
    play_scripts(version, plays, dialect)
    return [Staged(play.outcome, [_named(waiting) for waiting in play.waiting]) for play in plays]


def every_interleaving(version: str, histories: Sequence[History], dialect: KafkaDialect) -> list[list[HeldPlay]]:
    """Run histories once for every possible order in which Kafka's messages can arrive; the changes keep their order.

    Kafka's own messages, including those without a key, determine the possible orders; no model is involved.

    Args:
        version: The release.
        histories: Histories; their deliveries are ignored.
        dialect: The settings of Kafka Streams.

    Returns:
        For each history its runs, each up to the last message.
    """
    played: list[list[HeldPlay]] = [[] for _ in histories]
    branches = [(number, ScriptBranch(history)) for number, history in enumerate(histories)]
    while branches:
        plays = [HeldPlay(branch, branch.history, keyless_waits=True) for _, branch in branches]
        play_scripts(version, plays, dialect)
        for (number, _), play in zip(branches, plays, strict=True):
            played[number].append(play)
        branches = [(number, other) for number, branch in branches for other in branch.others()]
    return played


def play_scripts(version: str, plays: Sequence[HeldPlay], dialect: KafkaDialect) -> None:
    """Run scripts of changes and deliveries; scripts of one definition share a driver. The function stores the outcomes
    in the given plays.

    Args:
        version: The release.
        plays: The plays.
        dialect: The settings of Kafka Streams.

    Raises:
        BadInput: As `play_held`.
    """
    groups: dict[Any, tuple[Registration, list[HeldPlay]]] = {}
    for play in plays:
        registration = registration_of(play.history.operator)
        groups.setdefault(registration.declare(play.history.options), (registration, []))[1].append(play)
    for definition, (registration, members) in groups.items():
        for start in range(0, len(members), COHORT):
            _play_cohort(kafka_jvm(version), registration, definition, dialect, members[start : start + COHORT])


def _play_cohort(
    jvm: KafkaJvm, registration: Registration, definition: Any, dialect: KafkaDialect, members: Sequence[HeldPlay]
) -> None:
    kafka = registration.kafka
    assert kafka is not None
    with _driver(jvm, kafka, definition, dialect) as (topics, send):
        running = [
            _Tables(number, play, registration, definition, topics).steps() for number, play in enumerate(members)
        ]
        asked = [next(steps) for steps in running]
        while any(asked):
            answers = iter(send(list(chain.from_iterable(asked))))
            asked = [steps.send([next(answers) for _ in rows]) for steps, rows in zip(running, asked, strict=True)]


def _named(waiting: Mapping[KafkaRoute, tuple[WaitingMessage, ...]]) -> Waiting:
    """Return the waiting messages on routes that a history can name."""
    return {
        (kind, foreign_key, key): queue
        for (kind, foreign_key, key), queue in waiting.items()
        if foreign_key is not None
    }


@contextmanager
def _driver(
    jvm: KafkaJvm, kafka: Kafka, definition: Any, dialect: KafkaDialect
) -> Iterator[tuple[Mapping[str, str], Callable[[list[PipedIn]], list[list[list[Captured]]]]]]:
    """Start a test driver, let the messages on its internal topics wait outside, and close the driver at the end.

    Yields:
        The topic of each channel, and a function that sends rows to the driver and returns the records that each row
            caused in the
        topics of the output, of subscriptions and of responses.
    """
    java = jvm.gateway.jvm.java
    topology, properties = topology_of(jvm, kafka, definition, dialect)
    driver = jvm.gateway.jvm.org.apache.kafka.streams.TopologyTestDriver(topology, properties)
    try:
        read_topics = java.lang.Class.forName(DRIVER).getDeclaredField("partitionsByInputTopic")
        read_topics.setAccessible(True)
        own = read_topics.get(driver)
        every = java.util.HashMap(own)
        names = list(every.keySet())
        subscriptions, responses = (
            next(name for name in names if f"-SUBSCRIPTION-{what}-" in name) for what in ("REGISTRATION", "RESPONSE")
        )
        for name in names:
            if name not in INPUTS:
                own.remove(name)
        handle = playing_held(jvm, (OUTPUT, subscriptions, responses))

        def send(rows: list[PipedIn]) -> list[list[list[Captured]]]:
            if not rows:
                return []
            arguments = jvm.gateway.new_array(java.lang.Object, 4)
            arguments[0], arguments[1], arguments[2], arguments[3] = json.dumps(rows), driver, own, every
            sent = json.loads(handle.invokeWithArguments(arguments))
            return [[[Captured(*record) for record in records] for records in row] for row in sent]

        yield {"subscription": subscriptions, "response": responses}, send
    finally:
        driver.close()


class _Held(NamedTuple):
    """A waiting message: its left key and its records; a subscription may consist of two records."""

    key: Key
    records: tuple[Captured, ...]


class _Source(NamedTuple):
    """The origin of a row for the driver: the right key of a message, if any, and the row's own key."""

    foreign_key: Key | None
    key: Key | None


class _Tables:
    """The rows of one of the histories that share a driver, which have a common prefix in their keys, and its waiting
    messages.
    """

    def __init__(
        self, number: int, play: HeldPlay, registration: Registration, definition: Any, topics: Mapping[str, str]
    ) -> None:
        assert registration.kafka is not None
        self.play, self.kafka, self.definition, self.topics = play, registration.kafka, definition, topics
        self.prefixed = partial(prefixed_key, number)
        self.renamed = partial(registration.domain.renamed, definition)
        self.held: dict[KafkaRoute, deque[_Held]] = {}  # without empty routes
        self.at_once: list[PipedIn] = []

    def steps(self) -> Generator[list[PipedIn], list[list[list[Captured]]], None]:
        """Yield the next rows to send to the driver, until the end of the history; receive the rows' outputs."""
        arrival, batch = -1, 0
        while (line := self.play.script(self.held)) is not None:
            self.play.lines.append(line)
            if isinstance(line, Cut):
                batch += 1
                continue
            arrival += 1
            source, rows = self._of(line)
            while rows:
                for emitted, subscriptions, responses in (yield rows):
                    self.play.entries += [Entry(arrival, batch, self._change(*record)) for record in emitted]
                    self._hold_subscriptions(source, subscriptions)
                    for record in responses:
                        self._hold_response(source, record)
                source, rows, self.at_once = None, self.at_once, []
            if self.play.is_watched:
                self.play.waiting.append(
                    {route: tuple(map(partial(_content, route[0]), held)) for route, held in self.held.items()}
                )
        while True:
            yield []

    def _of(self, line: ScriptStep) -> tuple[_Source | None, list[PipedIn]]:
        if isinstance(line, Record):
            key = None if line.key is None else self.prefixed(line.key)
            value = self.renamed(line.value, self.prefixed) if line.input == "left" else line.value
            text = self.kafka.sent(self.definition, line._replace(key=key, value=value))
            source = _Source(line.key if line.input == "right" else None, line.key)
            return source, [(line.input, _bytes(key), _bytes(text), line.timestamp)]
        if isinstance(line, Delivery):
            return self._handed_on(line, 0)
        if isinstance(line, Overtaking):
            return self._handed_on(*line)
        return None, []

    def _handed_on(self, delivery: Delivery, index: int) -> tuple[_Source | None, list[PipedIn]]:
        route: KafkaRoute = (delivery.channel, delivery.foreign_key, delivery.key)
        if route not in self.held:
            if not self.play.is_strict:
                return None, []
            routes = "; ".join(" ".join(filter(None, other)) for other in self.held) or "none"
            where = self.play.history.location(len(self.play.lines) - 1)
            raise BadInput(
                f"{where}: no message waits on {' '.join(filter(None, route))}: "
                f"deliver from a route with messages ({routes})"
            )
        self.held[route].rotate(-index)
        message = self.held[route].popleft()
        self.held[route].rotate(index)
        if not self.held[route]:
            del self.held[route]
        rows = [(self.topics[delivery.channel], *record) for record in message.records]
        return _Source(delivery.foreign_key, message.key), rows

    def _hold_subscriptions(self, source: _Source | None, subscriptions: Sequence[Captured]) -> None:
        last: KafkaRoute | None = None
        for record in subscriptions:
            assert source is not None
            assert source.key is not None
            foreign_key = None if record.key is None else _own(record.key)
            if foreign_key is None and not self.play.keyless_waits:
                if last is None:
                    self.at_once.append((self.topics["subscription"], *record))
                else:
                    held = self.held[last].pop()
                    self.held[last].append(held._replace(records=(*held.records, record)))
                continue
            last = ("subscription", foreign_key, None)
            self.held.setdefault(last, deque()).append(_Held(source.key, (record,)))

    def _hold_response(self, source: _Source | None, record: Captured) -> None:
        if source is None:  # its request didn't wait, so the response doesn't wait
            self.at_once.append((self.topics["response"], *record))
            return
        assert record.key is not None
        key = _own(record.key)
        self.held.setdefault(("response", source.foreign_key, key), deque()).append(_Held(key, (record,)))

    def _change(self, key: str | None, value: str | None, timestamp: int) -> Change:
        assert key is not None
        own = _own(key)
        if value is None:
            return Change(own, None, None, timestamp)
        left, right = self.kafka.read(self.definition, own, utf8_of(value))
        return Change(own, None, [self.renamed(left, unprefixed), right], timestamp)


def _bytes(text: str | None) -> str | None:
    return None if text is None else text.encode().decode("latin-1")


def utf8_of(characters: str) -> str:
    """Decode a UTF-8 text that has one Latin-1 character for each byte."""
    return characters.encode("latin-1").decode()


def _own(key: str) -> Key:
    return unprefixed(utf8_of(key))


def unprefixed(key: Key) -> Key:
    """Return a key of the shared driver without the prefix of the key's history."""
    owned = owner(key)
    assert owned is not None
    return owned[1]


def _content(channel: str, held: _Held) -> WaitingMessage:
    """Return the content of a message: a subscription's instruction, or a response's right value."""
    (_, value, timestamp), *more = held.records
    assert value is not None
    if channel == "response":
        return WaitingMessage(held.key, response_of(value)[1], timestamp)
    # The old key's subscription requests no response, and the message without a key requests a response: together they
    # request the old key's response.
    asks = Instruction.DELETE_KEY_AND_PROPAGATE if more else INSTRUCTIONS[ord(value[1])]
    return WaitingMessage(held.key, asks.value, timestamp)


def response_of(characters: str) -> tuple[bytes | None, Value]:
    """Read `{hash is null, version}{hash}{right value}`: return the hash, and the value."""
    content = characters.encode("latin-1")
    start = 1 if content[0] & HASH_IS_NULL else 1 + HASH_BYTES
    return content[1:start] or None, json.loads(content[start:]) if content[start:] else None

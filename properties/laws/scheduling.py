"""Schedules of message delivery: drawing, coverage goals, and the base class of laws about schedules."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...reference.core.clocks import StreamTime
from ...reference.core.history import Delivery, History
from ...reference.core.records import Record
from ...reference.foreign_key_protocol import digest_of
from ..registration.registration import registration_of
from ..witnesses.messages import Staged
from ..witnesses.spark.witness import QueryWitness
from .base import OWN, BrokenCase, Comparison, Law, LawResult, violations
from .case import Case

TRIES = 3
"""The number of schedules that the shrinker tries for a history."""
GOALS = (
    "an answer that came too late",
    "a left row changed while its answer waited",
    "a right row changed while messages waited",
    "a route overtaken",
)


class ScheduledLaw(Law):
    """A law about schedules of message delivery; for a history without deliveries, the shrinker tries several
    schedules.
    """

    needs = "protocol"
    reason = "its registration has no message protocol, because it sends no messages"

    def cases_of(self, history: History) -> list[Case]:
        """Return the history itself if it has deliveries; otherwise return the history under a few schedules, always
        the same.
        """
        if any(isinstance(line, Delivery) for line in history.lines):
            return [Case(history)]
        return [Case(scheduled(history, random.Random(f"{number} {history.to_text()}"))) for number in range(TRIES)]


class StagedLaw(ScheduledLaw):
    """A law that compares a witness with the protocol's model, message by message."""

    def stage(self, histories: Sequence[History], witness: QueryWitness) -> Sequence[Staged]:
        """Return the outcome of each history, and the messages that are still undelivered at the end."""
        raise NotImplementedError

    def compared(self, history: History, staged: Staged, result: LawResult) -> Comparison:
        """Compare a witness's outcome with the protocol's outcome; count the divergences that explain differences in
        `result`.
        """
        raise NotImplementedError

    def judge_staged(
        self, histories: Sequence[History], staged: Sequence[Staged], result: LawResult
    ) -> Iterator[BrokenCase]:
        """Judge each history, the shortest first."""
        result.judged += len(histories)
        for history, one in sorted(zip(histories, staged, strict=True), key=lambda pair: len(pair[0].lines)):
            yield from violations([history], [self.compared(history, one, result)])

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Run the histories again, and judge each history."""
        histories, unnoted = [case.history for case in cases], LawResult(self)
        staged = self.stage(histories, witness)
        return [self.compared(*pair, unnoted) for pair in zip(histories, staged, strict=True)]


def protocol_of(history: History) -> Any:
    """Return a new model of the messages of a history's operator."""
    registration = registration_of(history.operator)
    assert registration.protocol is not None
    return registration.protocol.model(registration.declare(history.options), StreamTime())


def scheduled(history: History, generator: random.Random) -> History:
    """Return a history with explicit deliveries, by a random schedule that delivers every message."""
    manual = replace(history, options={**history.options, "delivery": "manual"})
    protocol = protocol_of(manual)
    records = history.records
    lines: list[Record | Delivery] = []
    while records or protocol.waiting:
        if records and (not protocol.waiting or generator.random() < 0.4):
            record = records.pop(0)
            lines.append(record)
            protocol.arrive(record)
        else:
            delivery = Delivery(*generator.choice(list(protocol.waiting)))
            lines.append(delivery)
            protocol.deliver(*delivery)
    return manual.with_lines(lines)


def goals_met(history: History) -> Counter[str]:
    """Count how often a history meets each goal about schedules of delivery."""
    protocol = protocol_of(history)
    return Counter(goal for line in history.lines for goal in _met(protocol, line))


def _met(protocol: Any, line: object) -> Iterator[str]:
    """Process a line of a history, and return the names of the goals that the line meets."""
    if isinstance(line, Record):
        routes = protocol.waiting
        if line.input == "left" and any(key == line.key for channel, _, key in routes if channel == "response"):
            yield "a left row changed while its answer waited"
        if line.input == "right" and any(line.key == foreign_key for _, foreign_key, _ in routes):
            yield "a right row changed while messages waited"
        protocol.arrive(line)
    elif isinstance(line, Delivery):
        if next(iter(protocol.waiting)) != tuple(line):
            yield "a route overtaken"
        if line.channel == "response":
            message = protocol.waiting[line.channel, line.foreign_key, line.key][0]
            if digest_of(protocol.left.table.get(message.key)) != message.digest:
                yield "an answer that came too late"
        protocol.deliver(*line)

"""The law of the foreign-key join in three queries: whatever the schedule, each step does what the protocol does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ..reference.clocks import StreamTime
from ..reference.foreign_key_protocol import Protocol, digest_of
from ..reference.histories import Delivery, History
from ..reference.operators import operator_named
from ..reference.records import Record
from .check import hash_of
from .draws import Shape, draw_histories
from .laws import Law
from .oracle import scheduled_history
from .shapes import SCHEDULE, SHAPES

OPERATOR = "foreign_key_join"
ARRIVALS = 8
SITUATIONS = (
    "an answer that came too late",
    "a left row changed while its answer waited",
    "a right row changed while messages waited",
    "a route overtaken",
)
SCHEDULES = Law(
    "schedules",
    "in three queries, whatever waits how long, each step tells and leaves waiting what the protocol does",
    SITUATIONS,
)


def draw_scheduled(count: int, seed: int) -> list[History]:
    """Draw histories with a random schedule of delivery, of every definition of the foreign-key join in turn."""
    drawn: list[History] = []
    for name, options in SHAPES[OPERATOR].items():
        shape = Shape(options, SCHEDULE, operator=OPERATOR, arrivals=ARRIVALS)
        histories = draw_histories(shape, max(1, count // len(SHAPES[OPERATOR])), hash_of(seed, f"{name}, scheduled"))
        for history in histories:
            scheduled = scheduled_history(history, random.Random(hash_of(seed, history.to_text())))
            drawn.append(replace(scheduled, name=f"{history.name} {name}"))
    return drawn


def schedule_situations(history: History) -> Counter[str]:
    """Count what of a schedule came up in a history."""
    definition = operator_named(OPERATOR).declare(history.options)
    protocol = Protocol(definition, StreamTime())
    return Counter(name for line in history.lines for name in _met(protocol, line))


def _met(protocol: Protocol, line: object) -> Iterator[str]:
    """Take a line, and tell which situations it brings up."""
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

"""Draws random histories as lists of moves; a move describes a record relative to earlier records or to the clock.

Uniformly random timestamps would almost never be exactly one gap after a session, or exactly at the end of a window. A
move therefore consists of a starting point (an earlier record, or an edge such as a window's end) and a distance. A
move is a tuple of small integers; moves with smaller integers are simpler.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.records import Record
from ..registration.domain import CHOICES
from ..registration.registration import registration_of
from .cohorts import agreed, with_clock_advances
from .values import KEY_SETS, PLAIN, SMALL, VALUE_KINDS, keys_named, kind_named, taken_like

Integer: TypeAlias = Callable[[int, int], int]
"""Draws an integer between two bounds, inclusive."""

SCHEDULE = (30, 38, 75, 90)
"""The clock (ms) after every batch of a random history without a drawn schedule."""
KINDS = 13


class Move(NamedTuple):
    """A record described relative to earlier records; all fields are small integers, and 0 is the simplest value.

    The last two fields choose between several inputs, and between several forms of values.
    """

    kind: int
    back: int
    jitter: int
    key: int
    value: int
    cuts: int
    side: int = 0
    choice: int = 0


@dataclass(frozen=True)
class HistorySettings:
    """The settings that the histories of a cohort share.

    Attributes:
        operator: The operator's name.
        options: The operator's options, as in a history file.
        schedule: The clock (ms) after every batch; no record of the batch has a larger timestamp.
        arrivals: The largest number of records of a history.
        keys: The keys to draw from; the first key is drawn most often.
        null_keys: Whether to draw records without a key too; a history with a record without a key can't share a query.
        kind: The name of the kind of values for the inputs that accept this kind; other inputs use the first kind that
            they accept.
        key_set: The name of the set of keys; a set other than `PLAIN` replaces all keys, including keys in values.
    """

    operator: str
    options: Mapping[str, Any]
    schedule: tuple[int, ...]
    arrivals: int = 20
    keys: tuple[str, ...] = ("a", "b", "c")
    null_keys: bool = False
    kind: str = SMALL
    key_set: str = PLAIN

    @property
    def is_plain(self) -> bool:
        """Whether the fields `side` and `choice` of moves have no effect for this operator."""
        return registration_of(self.operator).domain.is_plain and not self.null_keys

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of the kinds of values that at least one input accepts."""
        domain, definition = registration_of(self.operator).domain, operator_named(self.operator).declare(self.options)
        taken = {name for side in definition.inputs for name in domain.kinds(definition, side)}
        return tuple(name for name in VALUE_KINDS if name in taken)


def integers(generator: random.Random) -> Integer:
    """Return a function like the generator's `randint`, which draws the same integers three times as fast."""
    bits = generator.getrandbits

    def integer(least: int, most: int) -> int:
        count = most - least + 1
        width = count.bit_length()
        drawn = bits(width)
        while drawn >= count:
            drawn = bits(width)
        return least + drawn

    return integer


def draw_move(integer: Integer, plain: bool = True) -> Move:
    """Draw a move; in a plain move, `side` and `choice` are 0."""
    key = integer(0, 9)
    cut = integer(0, 9)
    return Move(
        kind=integer(0, KINDS - 1),
        back=integer(0, 4),
        jitter=integer(0, 12),
        key=0 if key < 6 else 1 if key < 9 else 2,
        value=integer(0, 3),
        cuts=0 if cut < 7 else 1 if cut < 9 else 2,
        side=0 if plain else integer(0, 1),
        choice=0 if plain else integer(0, CHOICES - 1),
    )


def history_of(settings: HistorySettings, moves: Sequence[Move], name: str = "history") -> History:
    """Convert moves to a history with the clock schedule of the settings; every list of moves is valid.

    Args:
        settings: The settings of the history.
        moves: The moves; the function ignores moves beyond the settings' `arrivals`.
        name: The history's name.
    """
    domain = registration_of(settings.operator).domain
    definition = operator_named(settings.operator).declare(settings.options)
    times = _Times(domain.distances(definition), domain.edges(definition) or (0,), domain.reach(definition))
    taken = {side: domain.kinds(definition, side) for side in definition.inputs}
    like = taken_like(settings.kind)
    kinds = {side: kind_named(settings.kind if like in names else names[0]) for side, names in taken.items()}
    replacing = None if settings.key_set == PLAIN else keys_named(settings.key_set)
    named = dict(zip(domain.named, replacing or domain.named, strict=False))
    batches: list[list[Record]] = [[] for _ in settings.schedule]
    arrived: list[Record] = []
    batch = 0
    for move in moves[: settings.arrivals]:
        batch = min(batch + move.cuts, len(settings.schedule) - 1)
        latest = settings.schedule[batch]
        oldest = None
        if move.kind in (1, 10) and domain.takes_until_forgotten and batch:
            over = settings.schedule[batch - 1] - domain.lateness_horizon(definition)
            oldest = min((one for one in arrived if one.timestamp > over), key=lambda one: one.timestamp, default=None)
        near = oldest or (arrived[-1 - move.back % len(arrived)] if arrived else None)
        beside = latest if near is None else near.timestamp
        side = definition.inputs[move.side % len(definition.inputs)]
        keys = replacing or domain.keys(side, settings.keys)
        small = move.value % domain.variety[side] if side in domain.variety else move.value
        value = kinds[side].of(small, len(arrived))
        value = domain.value(definition, side, value, move.choice, beside)
        value = domain.renamed(definition, value, named.__getitem__) if replacing else value
        timestamp = max(0, min(_timestamp(move, times, settings.schedule, batch, beside), latest))
        record = Record(side, keys[move.key % len(keys)], value, timestamp)
        if near is not None and (oldest or move.kind in (2, 3, 4, 5, 6)) and near.key in keys:
            record = record._replace(key=near.key)
        if settings.null_keys and move.choice == CHOICES // 2:
            record = record._replace(key=None)
        if near is not None and move.kind == 10 and near.timestamp <= latest:
            record = near
        batches[batch].append(record)
        arrived.append(record)
    lines = with_clock_advances(batches, settings.schedule)
    return agreed(History(settings.operator, settings.options, lines, "batch", name))


class _Times(NamedTuple):
    """The distances between records, the edges and the reach of a definition (ms), as `Domain` defines them."""

    distances: tuple[int, ...]
    edges: tuple[int, ...]
    reach: int


def _timestamp(move: Move, times: _Times, schedule: Sequence[int], batch: int, beside: int) -> int:
    """Return the timestamp (ms) of a move's record: near another record, or at an edge such as a window's end."""
    latest, clock = schedule[batch], schedule[batch - 1] if batch else 0
    distance = times.distances[move.jitter % len(times.distances)]
    edge, by = times.edges[move.jitter // 3 % len(times.edges)], move.jitter % 3 - 1
    later = schedule[min(batch + move.back, len(schedule) - 1)]
    match move.kind:
        case 0:
            return latest * move.jitter // 12
        case 2:
            return beside + distance
        case 3:
            return beside + distance + 1
        case 4:
            return beside - distance
        case 5:
            return beside - distance - 1
        case 6:
            return beside + move.jitter % max(distance, 1)
        case 7:
            return clock - edge + by
        case 8:
            return clock - max(times.edges) - move.jitter
        case 9:
            return latest - move.jitter
        case 11:
            return later - edge + by
        case 12:
            return min(latest, later) - move.jitter * times.reach // 12
    return beside


def draw_histories(settings: HistorySettings, count: int, seed: int, mixed: bool = False) -> Iterator[History]:
    """Draw histories of exactly `settings.arrivals` records, with the names `h0`, `h1` and so on.

    The cuts of a history are uniformly random, so that some histories have records in all batches, and others have
    empty batches.

    Args:
        settings: The shared settings.
        count: The number of histories.
        seed: The seed; the same seed draws the same histories.
        mixed: Whether the histories use all kinds of values and sets of keys by turns, instead of those in the
            settings; other draws stay the same.
    """
    generator, is_plain = random.Random(seed), settings.is_plain
    integer = integers(generator)
    varied = _each_varied(settings, seed) if mixed else repeat(settings)
    for number, own in zip(range(count), varied, strict=False):
        moves = [draw_move(integer, is_plain)._replace(cuts=0) for _ in range(settings.arrivals)]
        for _ in range(len(settings.schedule) - 1):
            index = generator.randrange(settings.arrivals)
            moves[index] = moves[index]._replace(cuts=moves[index].cuts + 1)
        yield history_of(own, moves, f"h{number}")


def _each_varied(settings: HistorySettings, seed: int) -> Iterator[HistorySettings]:
    generator = random.Random(f"{seed} mixed")
    kinds, key_sets = _in_turn(settings.kinds or (SMALL,), generator), _in_turn(tuple(KEY_SETS), generator)
    while True:
        yield replace(settings, kind=next(kinds), key_set=next(key_sets))


def _in_turn(names: Sequence[str], generator: random.Random) -> Iterator[str]:
    """Yield names endlessly; all names occur in a random order before any is repeated."""
    while True:
        yield from generator.sample(names, len(names))


def under_stream_time(history: History) -> History:
    """Return a history with only its records, under stream time, as Kafka Streams runs it."""
    return replace(history, lines=tuple(history.records), clock="stream_time")

"""Shrinking in cohorts: each round tries all the smaller candidates in one query.

A Spark query costs seconds whether it carries one candidate or a thousand. So a round doesn't bisect: it tries
everything that is one step simpler at once, and once every choice of up to three of the records too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import combinations
from string import ascii_lowercase

from ...reference.core.errors import BadInput
from ...reference.core.history import CUT, History, Line
from ...reference.core.records import Key, Record, Value
from ..generators.cohorts import clock_schedule, record_batches, with_clock_advances
from ..generators.simpler import key_size, simpler_keys, simpler_values, simplest_value, value_size
from ..registration.registration import registration_of

Fails = Callable[[Sequence[History]], Sequence[bool]]
InBatch = tuple[int, Record]
"""The index of a batch, and a record in it."""

SMALL = 3
MANY = 24


def size(history: History) -> tuple[int, int, int, int, int, int, str]:
    """Return a history's size: its records, then its lines, batches, timestamps, values and keys."""
    records = history.records
    return (
        len(records),
        len(history.lines),
        sum(number * len(batch) for number, batch in enumerate(record_batches(history))),
        sum(record.timestamp for record in records),
        sum(value_size(record.value) for record in records),
        sum(key_size(record.key) for record in records),
        "".join(record.key or "" for record in records),
    )


def shrinking(history: History) -> Generator[list[History], Sequence[bool], History]:
    """Yield lists of candidates, be sent which of them fail, and return the smallest history that fails.

    All candidates keep the clock schedule, and so share a cohort, with those of other histories of that schedule too.
    """
    best = history
    thorough_done = False
    while True:
        thorough = not thorough_done and SMALL < len(best.records) <= MANY
        thorough_done = thorough_done or thorough
        distinct = {repr(candidate.lines): candidate for candidate in _candidates(best, thorough)}
        limit = size(best)
        candidates = sorted((other for other in distinct.values() if size(other) < limit), key=size)
        if not candidates:
            return best
        failing = [candidate for candidate, fails in zip(candidates, (yield candidates), strict=True) if fails]
        if not failing:
            return best
        best = min(failing, key=size)


def shrink(history: History, fails: Fails, rounds: int = 8, at_once: int = 0) -> History:
    """Shrink one history.

    Args:
        history: The history, which fails.
        fails: Returns of each of a round's candidates whether it fails.
        rounds: How many rounds at the most.
        at_once: How many candidates of a round are asked about at the most, spread evenly; 0 for all.
    """

    def some(candidates: Sequence[Sequence[History]]) -> list[list[bool]]:
        (of_one,) = candidates
        asked = of_one[:: -(-len(of_one) // at_once)] if at_once and of_one else of_one
        failing = {id(candidate) for candidate, bad in zip(asked, fails(asked), strict=True) if bad}
        return [[id(candidate) in failing for candidate in of_one]]

    return shrink_together([history], some, rounds)[0]


def shrink_together(
    histories: Sequence[History],
    fails: Callable[[Sequence[Sequence[History]]], Sequence[Sequence[bool]]],
    rounds: int = 8,
) -> list[History]:
    """Shrink several histories in lock-step, so that one query serves a round of all of them.

    Args:
        histories: The histories, each of which fails.
        fails: Is given each history's candidates, none for one that is done; returns of each whether it fails.
        rounds: How many rounds at the most.
    """
    best = list(histories)
    running = {index: shrinking(history) for index, history in enumerate(histories)}
    asked: list[list[History]] = [[] for _ in histories]
    for index in list(running):
        asked[index] = _advance(running, best, index, None)
    for _ in range(rounds):
        if not any(asked):
            break
        answers = fails(asked)
        for index in list(running):
            failing = [candidate for candidate, bad in zip(asked[index], answers[index], strict=True) if bad]
            if failing:
                best[index] = min(failing, key=size)
            asked[index] = _advance(running, best, index, answers[index])
    return best


def _advance(
    running: dict[int, Generator[list[History], Sequence[bool], History]],
    best: list[History],
    index: int,
    answer: Sequence[bool] | None,
) -> list[History]:
    try:
        return next(running[index]) if answer is None else running[index].send(answer)
    except StopIteration as done:
        best[index] = done.value
        del running[index]
        return []


def without_clock_advances(history: History) -> History:
    """Return the history as one would write it by hand: no clock advances, no cut at its ends.

    Its own records move the clock, so it may behave differently: it counts only when it fails too.
    """
    batches = record_batches(history)
    while batches and not batches[-1]:
        batches.pop()
    while batches and not batches[0]:
        batches.pop(0)
    lines: list[Line] = []
    for number, batch in enumerate(batches):
        lines += [CUT] if number else []
        lines += batch
    return history.with_lines(lines)


def trimmed(history: History) -> History:
    """Return the history without the batches after its last record."""
    batches = record_batches(history)
    while len(batches) > 1 and not batches[-1]:
        batches.pop()
    return history.with_lines(with_clock_advances(batches, clock_schedule(history)[: len(batches)]))


def _candidates(history: History, thorough: bool) -> Iterator[History]:
    schedule = clock_schedule(history)
    paced = len(history.lines) > len(history.records)  # else its records alone move the clock
    records = [(number, record) for number, batch in enumerate(record_batches(history)) for record in batch]

    def built(chosen: Sequence[InBatch]) -> History:
        batches: list[list[Record]] = [[] for _ in schedule]
        for number, record in chosen:
            batches[number].append(record)
        if not paced:
            return history.with_lines(record for _, record in chosen)
        return history.with_lines(with_clock_advances(batches, schedule))

    if thorough:
        for count in range(1, SMALL + 1):
            yield from (built(chosen) for chosen in combinations(records, count))
    for width in (len(records) // 2, len(records) // 4, 2, 1):
        for start in range(0, len(records), max(width, 1)):
            yield built(records[:start] + records[start + width :])
    for index, (number, record) in enumerate(records):
        for simpler in _simpler(number, record, schedule):
            yield built([*records[:index], simpler, *records[index + 1 :]])
    yield from (built(simpler) for simpler in _Contents(history).simpler(records))
    least = min((record.timestamp for _, record in records), default=0)
    for down in {least, least // 2, 1}:
        if 0 < down <= least:
            yield built([(number, record._replace(timestamp=record.timestamp - down)) for number, record in records])
    yield from map(built, _sooner(records, schedule))


def _sooner(records: Sequence[InBatch], schedule: Sequence[int]) -> Iterator[list[InBatch]]:
    """Yield the records in earlier batches, all of them and down by as much time, so that none lies after its clock."""
    numbers, times = [number for number, _ in records], [record.timestamp for _, record in records]
    first, least = min(numbers, default=0), min(times, default=0)
    together = [[0] * len(records)] if any(numbers) else []
    for moved in (*together, *([number - back for number in numbers] for back in {first, 1} if 0 < back <= first)):
        needed = max(time - schedule[number] for number, time in zip(moved, times, strict=True))
        for down in {max(0, needed), least}:
            if needed <= down <= least:
                yield [
                    (number, record._replace(timestamp=record.timestamp - down))
                    for number, (_, record) in zip(moved, records, strict=True)
                ]


def _simpler(number: int, record: Record, schedule: Sequence[int]) -> Iterator[InBatch]:
    for timestamp in {0, record.timestamp // 2, record.timestamp - 10, record.timestamp - 1}:
        if 0 <= timestamp < record.timestamp:
            yield (number, record._replace(timestamp=timestamp))
    if record.key not in (None, "a"):
        yield (number, record._replace(key="a"))
    for earlier in range(number):
        if record.timestamp <= schedule[earlier]:
            yield (earlier, record)


class _Contents:
    """The keys and values of a history's records, and how they become simpler.

    A key that values name (a foreign key, a group) is a key: it changes with all records that have it.
    """

    def __init__(self, history: History) -> None:
        registration = registration_of(history.operator)
        self.definition = registration.declare(history.options)
        self.renamed = registration.domain.renamed

    def simpler(self, records: Sequence[InBatch]) -> Iterator[list[InBatch]]:
        """Yield the records with simpler values: all of them, or one; and with simpler keys: all of them, or one."""
        yield [(number, self._valued(record, simplest_value(record.value))) for number, record in records]
        for index, (number, record) in enumerate(records):
            for value in simpler_values(record.value):
                simpler = self._valued(record, value)
                if simpler is not record:
                    yield [*records[:index], (number, simpler), *records[index + 1 :]]
        keys = self._keys(records)
        yield self._rekeyed(records, dict(zip(keys, ascii_lowercase, strict=False)))
        for key in keys:
            for simpler_key in simpler_keys(key):
                if simpler_key not in keys:
                    yield self._rekeyed(records, {key: simpler_key})

    def _valued(self, record: Record, value: Value) -> Record:
        """Return the record with another value, which names the same keys; as it was, if the operator refuses that."""
        keys = iter(self._named(record.value))
        other = record._replace(value=self.renamed(self.definition, value, lambda _: next(keys)))
        try:
            self.definition.check(other)
        except BadInput:
            return record
        return other

    def _named(self, value: Value) -> list[Key]:
        found: list[Key] = []

        def noted(key: Key) -> Key:
            found.append(key)
            return key

        self.renamed(self.definition, value, noted)
        return found

    def _keys(self, records: Sequence[InBatch]) -> list[Key]:
        keys = [key for _, record in records for key in (record.key, *self._named(record.value)) if key is not None]
        return list(dict.fromkeys(keys))

    def _rekeyed(self, records: Sequence[InBatch], renaming: Mapping[Key, Key]) -> list[InBatch]:
        def renamed(key: Key) -> Key:
            return renaming.get(key, key)

        return [
            (
                number,
                record._replace(
                    key=None if record.key is None else renamed(record.key),
                    value=self.renamed(self.definition, record.value, renamed),
                ),
            )
            for number, record in records
        ]

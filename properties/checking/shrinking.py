"""Shrink an operator's history: the measure of size, and smaller candidates, which keep the history's heartbeats.

If histories have the same heartbeats, and so the same clock schedule, their candidates share a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from string import ascii_lowercase

from ...reference.core.errors import BadInput
from ...reference.core.history import ClockAdvance, History
from ...reference.core.records import Key, Record, Value
from ..generators.cohorts import agreed, clock_schedule, record_batches, with_clock_advances, with_cuts
from ..generators.shrinking import Shrinker, fewer
from ..generators.simpler import key_size, simpler_keys, simpler_values, simplest_value, value_size
from ..registration.registration import registration_of

IN_TWO_STEPS = 2000
"""The largest number of candidates in a round after two simplifications of the history."""
InBatch = tuple[int, Record]
"""A record of a history, with the index of its batch."""


def size(history: History) -> tuple[int, int, int, int, int, int, str]:
    """Return the size of a history: the numbers of records, lines and batches, then timestamps, values and keys."""
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


def without_clock_advances(history: History) -> History:
    """Return the history as a person would write it: without clock advances, and without cuts at the start and the end.

    Without clock advances, only records move the clock, and the output may change, so the caller must check that the
    history still fails.
    """
    batches = record_batches(history)
    while batches and not batches[-1]:
        batches.pop()
    while batches and not batches[0]:
        batches.pop(0)
    return history.with_lines(with_cuts(batches))


def trimmed(history: History) -> History:
    """Return the history without the batches after the last record."""
    batches = record_batches(history)
    while len(batches) > 1 and not batches[-1]:
        batches.pop()
    return ended_after(history, len(batches) - 1)


def ended_after(history: History, batch: int) -> History:
    """Return the history without the batches after a given batch."""
    batches = record_batches(history)[: batch + 1]
    return history.with_lines(with_clock_advances(batches, clock_schedule(history)[: len(batches)]))


def _candidates(history: History, thorough: bool) -> Iterator[History]:
    schedule = clock_schedule(history)
    advances = [[line for line in batch if isinstance(line, ClockAdvance)] for batch in history.batches]
    records = [(number, record) for number, batch in enumerate(record_batches(history)) for record in batch]

    def built(chosen: Sequence[InBatch]) -> History:
        batches: list[list[Record]] = [[] for _ in schedule]
        for number, record in chosen:
            batches[number].append(record)
        lines = with_cuts([[*batch, *after] for batch, after in zip(batches, advances, strict=True)])
        return agreed(history.with_lines(lines))

    yield from map(built, fewer(records, thorough))
    for index, (number, record) in enumerate(records):
        for simpler in _simpler(number, record, schedule):
            yield built([*records[:index], simpler, *records[index + 1 :]])
    yield from (built(simpler) for simpler in _Contents(history).simpler(records))
    least = min((record.timestamp for _, record in records), default=0)
    for down in {least, least // 2, 1}:
        if 0 < down <= least:
            yield built([(number, record._replace(timestamp=record.timestamp - down)) for number, record in records])
    yield from map(built, _sooner(records, schedule))


def _in_two_steps(history: History, thorough: bool) -> Iterator[History]:
    """Yield the results of one simplification step and, unless `thorough`, of two steps, which saves a third of the
    rounds.
    """
    once = [*_candidates(history, thorough)]
    yield from once
    if not thorough:
        smaller = [one for one in once if size(one) < size(history)]
        yield from islice(chain.from_iterable(_candidates(one, thorough=False) for one in smaller), IN_TWO_STEPS)


_IN_STEPS, _IN_TWO_STEPS = Shrinker(size, _candidates), Shrinker(size, _in_two_steps)
shrink_together = _IN_STEPS.shrink_together
"""With many histories at once, all candidates share a query, and two simplifications would yield too many
candidates.
"""


def shrink(
    history: History, fails: Callable[[Sequence[History]], Sequence[bool]], rounds: int = 8, at_once: int = 0
) -> History:
    """Return the smallest failing history found, by `Shrinker.shrink`, with two simplifications a round if all
    candidates fit.
    """
    return (_IN_STEPS if at_once else _IN_TWO_STEPS).shrink(history, fails, rounds, at_once)


def _sooner(records: Sequence[InBatch], schedule: Sequence[int]) -> Iterator[list[InBatch]]:
    """Yield the records moved to earlier batches, with timestamps that are all earlier, so that no record is ahead of
    the clock.
    """
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
    """Simplifies the keys and values of a history's records.

    If a value contains a key (a foreign key or a group), this key changes together with all equal keys.
    """

    def __init__(self, history: History) -> None:
        registration = registration_of(history.operator)
        self.definition = registration.declare(history.options)
        self.renamed = registration.domain.renamed

    def simpler(self, records: Sequence[InBatch]) -> Iterator[list[InBatch]]:
        """Yield the records with simpler values, in all records or in one record, and then with simpler keys."""
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
        """Return the record with another value that contains the same keys; return the record itself if the operator
        refuses the value.
        """
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

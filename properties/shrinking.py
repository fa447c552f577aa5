"""Shrinking in cohorts: each round tries all the smaller candidates in one query.

A Spark query costs seconds whether it carries one candidate or a thousand. So a round doesn't bisect: it tries
everything that is one step simpler at once, and once every choice of up to three of the records too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import combinations

from ..reference.histories import CUT, History, Line
from ..reference.records import Record
from .cohorts import clock_schedule, with_heartbeats
from .laws import record_batches

Fails = Callable[[Sequence[History]], Sequence[bool]]
Placed = tuple[int, Record]

SMALL = 3
MANY = 24


def size(history: History) -> tuple[int, int, int, int, int, str]:
    """What smaller means: fewer records, then fewer lines, earlier batches, smaller timestamps, values and keys."""
    records = history.records
    return (
        len(records),
        len(history.lines),
        sum(number * len(batch) for number, batch in enumerate(record_batches(history))),
        sum(record.timestamp for record in records),
        sum(abs(record.value) if isinstance(record.value, int) else 1 for record in records),
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


def shrink(history: History, fails: Fails, rounds: int = 8) -> History:
    """Shrink one history: ask `fails` for each round's candidates, and stop after so many rounds."""
    return shrink_together([history], lambda candidates: [fails(of_one) for of_one in candidates], rounds)[0]


def shrink_together(
    histories: Sequence[History],
    fails: Callable[[Sequence[Sequence[History]]], Sequence[Sequence[bool]]],
    rounds: int = 8,
) -> list[History]:
    """Shrink several histories in lock-step, so that one query serves a round of all of them.

    `fails` gets each history's candidates (none for one that is done) and says of each whether it fails.
    """
    best = list(histories)
    running = {place: shrinking(history) for place, history in enumerate(histories)}
    asked: list[list[History]] = [[] for _ in histories]
    for place in list(running):
        asked[place] = _advance(running, best, place, None)
    for _ in range(rounds):
        if not any(asked):
            break
        answers = fails(asked)
        for place in list(running):
            failing = [candidate for candidate, bad in zip(asked[place], answers[place], strict=True) if bad]
            if failing:
                best[place] = min(failing, key=size)
            asked[place] = _advance(running, best, place, answers[place])
    return best


def _advance(
    running: dict[int, Generator[list[History], Sequence[bool], History]],
    best: list[History],
    place: int,
    answer: Sequence[bool] | None,
) -> list[History]:
    try:
        return next(running[place]) if answer is None else running[place].send(answer)
    except StopIteration as done:
        best[place] = done.value
        del running[place]
        return []


def without_heartbeats(history: History) -> History:
    """The history as one would write it by hand: no heartbeats, no cut at its ends.

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
    """The history without the batches after its last record."""
    batches = record_batches(history)
    while len(batches) > 1 and not batches[-1]:
        batches.pop()
    return history.with_lines(with_heartbeats(batches, clock_schedule(history)[: len(batches)]))


def _candidates(history: History, thorough: bool) -> Iterator[History]:
    schedule = clock_schedule(history)
    paced = len(history.lines) > len(history.records)  # else its records alone move the clock
    placed = [(number, record) for number, batch in enumerate(record_batches(history)) for record in batch]

    def built(chosen: Sequence[Placed]) -> History:
        batches: list[list[Record]] = [[] for _ in schedule]
        for number, record in chosen:
            batches[number].append(record)
        if not paced:
            return history.with_lines(record for _, record in chosen)
        return history.with_lines(with_heartbeats(batches, schedule))

    if thorough:
        for count in range(1, SMALL + 1):
            yield from (built(chosen) for chosen in combinations(placed, count))
    for width in (len(placed) // 2, len(placed) // 4, 2, 1):
        for start in range(0, len(placed), max(width, 1)):
            yield built(placed[:start] + placed[start + width :])
    for place, (number, record) in enumerate(placed):
        for simpler in _simpler(number, record, schedule):
            yield built([*placed[:place], simpler, *placed[place + 1 :]])
    least = min((record.timestamp for _, record in placed), default=0)
    for down in {least, least // 2, 1}:
        if 0 < down <= least:
            yield built([(number, record._replace(timestamp=record.timestamp - down)) for number, record in placed])


def _simpler(number: int, record: Record, schedule: Sequence[int]) -> Iterator[Placed]:
    for timestamp in {0, record.timestamp // 2, record.timestamp - 10, record.timestamp - 1}:
        if 0 <= timestamp < record.timestamp:
            yield (number, record._replace(timestamp=timestamp))
    if record.value != 0 and isinstance(record.value, int):
        yield (number, record._replace(value=0))
    if record.key not in (None, "a"):
        yield (number, record._replace(key="a"))
    for earlier in range(number):
        if record.timestamp <= schedule[earlier]:
            yield (earlier, record)

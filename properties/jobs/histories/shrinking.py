"""Shrinking a job's history in cohorts: each round tries all the smaller candidates in one query.

A Spark query costs seconds whether it carries one candidate or a thousand. So a round tries everything that is one step
simpler at once, once every choice of up to three of the rows too, and then what the round before has found, together.
All candidates keep the clock schedule, and stay within what was drawn from: a user's own values, keys and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import combinations
from typing import Any, NamedTuple

import pyarrow as pa

from ...generators.simpler import key_size, simpler_values, value_size
from ..model import Arrival, JobHistory, Row, from_microseconds, microseconds
from .drawing import MS, time_of, time_us_of
from .inputs import ResolvedInput
from .values import kinds, plain_values

Fails = Callable[[Sequence[JobHistory]], Sequence[bool]]

SMALL = 3
MANY = 24
UNITS_US: Sequence[int] = (MS, 1_000_000, 60_000_000, 600_000_000, 3_600_000_000)
"""A millisecond, a second, a minute, ten, an hour: the more of them a time is a whole number of, the simpler it is."""
PLAIN_KEYS: Sequence[str] = ("a", "b", "c", "d", "e", "f")


class _Placed(NamedTuple):
    """A row, its input, and the index of the batch that it is in."""

    batch: int
    input: str
    row: Row


Size = tuple[int, int, int, int, int, int, int, int, str]


def size(history: JobHistory, inputs: Sequence[ResolvedInput]) -> Size:
    """Return a history's size: rows, batches with rows, how late these are, times, keys, values; smaller is simpler."""
    return _Steps(history, inputs).size(_placed(history))


def shrink(
    history: JobHistory,
    inputs: Sequence[ResolvedInput],
    fails: Fails,
    rounds: int = 8,
    delay_us: int | None = None,
) -> JobHistory:
    """Shrink one history.

    Args:
        history: The history, which fails.
        inputs: What its rows were drawn from.
        fails: Returns of each of a round's candidates whether it fails.
        rounds: How many rounds at the most.
        delay_us: Where no row may be late, the delay of the watermark in microseconds.
    """
    return shrink_together([history], inputs, fails, rounds, delay_us)[0]


def shrink_together(
    histories: Sequence[JobHistory],
    inputs: Sequence[ResolvedInput],
    fails: Fails,
    rounds: int = 8,
    delay_us: int | None = None,
) -> list[JobHistory]:
    """Shrink several histories in lock-step, so that one query serves a round of all of them.

    Args:
        histories: The histories, each of which fails.
        inputs: What their rows were drawn from.
        fails: Returns of each of a round's candidates, of all histories, whether it fails.
        rounds: How many rounds at the most.
        delay_us: Where no row may be late, the delay of the watermark in microseconds.
    """
    best = list(histories)
    running = {index: _shrinking(history, inputs, delay_us) for index, history in enumerate(histories)}
    asked = {index: next(steps) for index, steps in running.items()}
    for _ in range(rounds):
        asked = {index: candidates for index, candidates in asked.items() if candidates}
        if not asked:
            break
        answers = list(fails([candidate for candidates in asked.values() for candidate in candidates]))
        following = {}
        for index, candidates in asked.items():
            mine, answers = answers[: len(candidates)], answers[len(candidates) :]
            if any(mine):
                best[index] = candidates[mine.index(True)]  # the smallest one, for they come in order of size
            following[index] = running[index].send(mine)
        asked = following
    return best


def _shrinking(
    history: JobHistory, inputs: Sequence[ResolvedInput], delay_us: int | None
) -> Generator[list[JobHistory], Sequence[bool], None]:
    """Yield lists of candidates, smallest first, and be sent which of them fail; at the end an empty list."""
    best, thorough_done, found = _placed(history), False, list[list[_Placed]]()
    steps = _Steps(history, inputs)
    while True:
        thorough = not thorough_done and SMALL < len(best) <= MANY
        thorough_done = thorough_done or thorough
        limit = steps.size(best)
        distinct = {}
        for rows in (*found, *steps.candidates(best, thorough)):
            of_rows = steps.size(rows)
            if of_rows < limit and steps.is_allowed(rows, delay_us):
                distinct[of_rows] = rows
        candidates = [distinct[of_rows] for of_rows in sorted(distinct)]
        answers = yield [steps.history(rows) for rows in candidates]
        failing = [rows for rows, fails in zip(candidates, answers, strict=True) if fails]
        if not failing:
            break
        found = _together(best, failing)
        best = failing[0]
    yield []


def _placed(history: JobHistory) -> list[_Placed]:
    return [_Placed(number, name, row) for number, batch in enumerate(history.batches) for name, row in batch]


def _together(rows: Sequence[_Placed], failing: Sequence[Sequence[_Placed]]) -> list[list[_Placed]]:
    """Return the rows with what single candidates have changed in them, all of it, and of each half of them."""
    same = [candidate for candidate in failing if len(candidate) == len(rows)]
    half = len(same) // 2
    return [_merged(rows, some) for some in (same, same[:half], same[half:]) if len(some) > 1]


def _merged(rows: Sequence[_Placed], candidates: Sequence[Sequence[_Placed]]) -> list[_Placed]:
    merged = list(rows)
    for candidate in candidates:
        for index, (before, after) in enumerate(zip(rows, candidate, strict=True)):
            if before.input != after.input:
                continue
            if before.batch != after.batch and merged[index].batch == before.batch:
                merged[index] = merged[index]._replace(batch=after.batch)
            changed = {
                name: value
                for name, value in after.row.items()
                if value != before.row[name] and merged[index].row[name] == before.row[name]
            }
            merged[index] = merged[index]._replace(row={**merged[index].row, **changed})
    return sorted(merged, key=lambda placed: placed.batch)


class _Steps:
    """What is simpler than the rows of a history."""

    def __init__(self, history: JobHistory, inputs: Sequence[ResolvedInput]) -> None:
        self.original, self.clock = history, history.clock
        self.inputs = {given.name: given for given in inputs}
        self.sources = {given.name: given.source for given in inputs}
        times = [time_us_of(self.sources[name], row) for name, row in history.arrivals]
        self.start_us = (history.clock or times or [0])[0]
        around = from_microseconds(self.start_us - self.start_us % UNITS_US[-1])
        self.plainest = {
            given.name: {
                column.name: found[0][0] if (found := kinds(column.type, around)) else None
                for column in given.source.schema
            }
            for given in inputs
        }

    def history(self, rows: Sequence[_Placed]) -> JobHistory:
        """Return a history of the rows, under the clock schedule of the original one."""
        batches: list[list[Arrival]] = [[] for _ in self.original.batches]
        for number, name, row in rows:
            batches[number].append(Arrival(name, row))
        return self.original.with_batches(batches)

    def time_us(self, placed: _Placed) -> int:
        """Return a row's event time in microseconds since 1970."""
        return time_us_of(self.sources[placed.input], placed.row)

    def is_allowed(self, rows: Sequence[_Placed], delay_us: int | None) -> bool:
        """Return whether no row is later than its batch's clock, nor, where a delay is given, late."""
        horizons: list[int | None] = [None] * len(self.original.batches)
        if self.clock:
            if any(self.time_us(placed) > self.clock[placed.batch] for placed in rows):
                return False
            horizons[1:] = self.clock[:-1]
        else:
            for number in range(1, len(horizons)):
                before = [self.time_us(placed) for placed in rows if placed.batch < number]
                horizons[number] = max(before, default=None)
        if delay_us is None:
            return True
        return all(
            (horizon := horizons[placed.batch]) is None or self.time_us(placed) > horizon - delay_us for placed in rows
        )

    def size(self, rows: Sequence[_Placed]) -> Size:
        """Return the size of rows, of which no two that differ have the same."""
        times = [self.time_us(placed) for placed in rows]
        keys, values = set(), 0
        for _, name, row in rows:
            source = self.sources[name]
            for column, value in row.items():
                if column in source.key:
                    keys.add((column, repr(value), _key_size(value)))
                elif column != source.time:
                    values += self._value_size(name, column, value)
        return (
            len(rows),
            len({placed.batch for placed in rows}),
            sum(placed.batch for placed in rows),
            sum(map(_roughness, times)) + len(set(times)),
            len(keys),
            sum(of for _, _, of in keys),
            values,
            sum(abs(time - self.start_us) for time in times),
            repr([(placed.batch, placed.input, sorted(placed.row.items(), key=repr)) for placed in rows]),
        )

    def _value_size(self, name: str, column: str, value: Any) -> int:
        if value is None:
            return 2
        if isinstance(value, Decimal):
            digits = value.normalize().as_tuple().exponent
            return value_size(float(value)) + (max(0, -digits) if isinstance(digits, int) else 0)
        if isinstance(value, (date, time, timedelta, bytes)):
            return 0 if value == self.plainest[name][column] else 3
        return value_size(value)

    def candidates(self, rows: list[_Placed], thorough: bool) -> Iterator[list[_Placed]]:
        """Yield the rows one step simpler, in each way; and where it is thorough, every choice of up to three."""
        if thorough:
            for count in range(1, SMALL + 1):
                yield from map(list, combinations(rows, count))
        for width in {len(rows) // 2, len(rows) // 4, 2, 1} - {0}:
            for first in range(0, len(rows), width):
                yield [*rows[:first], *rows[first + width :]]
        yield from self._sooner(rows)
        yield from self._of_times(rows)
        yield from self._of_keys(rows)
        yield from self._of_values(rows)

    def _sooner(self, rows: list[_Placed]) -> Iterator[list[_Placed]]:
        """Yield the rows in earlier batches: one, all from a batch on, or all in the first.

        Their times stay, move as the clock and the watermark do, or all move down.
        """
        used = sorted({placed.batch for placed in rows})
        yield from self._moved(rows, {number: used.index(number) for number in used})
        for number in used:
            for earlier in range(number):
                yield from self._moved(rows, {number: earlier})
                yield from self._moved(rows, {other: other - number + earlier for other in used if other >= number})
        for index, placed in enumerate(rows):
            for earlier in range(placed.batch):
                for us in dict.fromkeys((self.time_us(placed), *self._times_after_move(placed, earlier))):
                    simpler = self._timed(placed, us)._replace(batch=earlier)
                    yield sorted([*rows[:index], simpler, *rows[index + 1 :]], key=lambda of: of.batch)

    def _times_after_move(self, placed: _Placed, earlier: int) -> Iterator[int]:
        """Yield times that are to the clock of an earlier batch, or of the one before it, as they were in theirs."""
        us = self.time_us(placed)
        if self.clock:
            yield us + self.clock[earlier] - self.clock[placed.batch]
            if earlier:
                yield us + self.clock[earlier - 1] - self.clock[placed.batch - 1]

    def _moved(self, rows: Sequence[_Placed], to: Mapping[int, int]) -> Iterator[list[_Placed]]:
        """Yield the rows in other batches: with their times, with times moved as the clock, or all moved down alike."""
        moved = [placed._replace(batch=to.get(placed.batch, placed.batch)) for placed in rows]
        moved.sort(key=lambda placed: placed.batch)
        yield moved
        if self.clock:
            with_clock = []
            for before in rows:
                number = to.get(before.batch, before.batch)
                us = self.time_us(before) + self.clock[number] - self.clock[before.batch]
                with_clock.append(self._timed(before, us)._replace(batch=number))
            yield sorted(with_clock, key=lambda placed: placed.batch)
            down = max((self.time_us(placed) - self.clock[placed.batch] for placed in moved), default=0)
            for unit in (1, UNITS_US[-2]):
                if down > 0:
                    by = _whole(down, unit, up=1)
                    yield [self._timed(placed, self.time_us(placed) - by) for placed in moved]

    def _of_times(self, rows: list[_Placed]) -> Iterator[list[_Placed]]:
        """Yield the rows with simpler times: whole units, all of them or one; or another row's time."""
        times = [self.time_us(placed) for placed in rows]
        for unit in UNITS_US:
            for up in (0, 1):
                yield [self._timed(placed, _whole(us, unit, up)) for placed, us in zip(rows, times, strict=True)]
            # The same distances between them, from a whole unit on.
            down = min(times, default=0) % unit
            yield [self._timed(placed, us - down) for placed, us in zip(rows, times, strict=True)]
        for index, (placed, us) in enumerate(zip(rows, times, strict=True)):
            found = {_whole(us, unit, up) for unit in UNITS_US for up in (0, 1)} | set(times)
            # Just beside another one's is simpler than somewhere.
            found |= {time + by for time in times for by in (MS, -MS)} if us % UNITS_US[1] else set()
            for other in found - {us}:
                yield [*rows[:index], self._timed(placed, other), *rows[index + 1 :]]

    def _timed(self, placed: _Placed, us: int) -> _Placed:
        source = self.sources[placed.input]
        return placed._replace(row={**placed.row, source.time: time_of(source, us)})

    def _of_keys(self, rows: list[_Placed]) -> Iterator[list[_Placed]]:
        """Yield the rows with simpler keys, the same in all rows that have them: all of them, one, or one as another.

        Keys of the user's own become others of them.
        """
        families: dict[str, dict[str, Any]] = {}
        for _, name, row in rows:
            for column in self.sources[name].key:
                families.setdefault(self._family(name, column), {})[repr(row[column])] = row[column]
        choices = {family: self._key_choices(family) for family in families}
        yield self._rekeyed(
            rows,
            {
                (family, value): simple
                for family, values in families.items()
                for value, simple in zip(values, choices[family] or (), strict=False)
            },
        )
        for family, values in families.items():
            found = choices[family]
            if found is None:
                continue
            for value in values:
                for simple in (*found[: len(values) + 1], *values.values()):
                    if repr(simple) != value:
                        yield self._rekeyed(rows, {(family, value): simple})
                        for index, placed in enumerate(rows):
                            one = self._rekeyed([placed], {(family, value): simple})
                            yield [*rows[:index], *one, *rows[index + 1 :]]

    def _family(self, name: str, column: str) -> str:
        """Return what key columns have in common whose values meet: their type, and the column or its position."""
        source = self.sources[name]
        kind = source.schema.field(column).type
        everywhere = all(column in other.key for other in self.sources.values())
        return (
            f"{column if everywhere else source.key.index(column)} {'integer' if pa.types.is_integer(kind) else kind}"
        )

    def _key_choices(self, family: str) -> list[Any] | None:
        """Return keys to choose from, the simplest first; None where they must stay, being parts of a user's own."""
        alike = [
            (given, column)
            for given in self.inputs.values()
            for column in given.source.key
            if self._family(given.name, column) == family
        ]
        for given, _ in alike:
            if given.keys:
                return [key for (key,) in given.keys] if len(given.source.key) == 1 else None
        for given, column in alike:
            if column in given.pools:
                return sorted(given.pools[column], key=lambda value: (_key_size(value), repr(value)))
        kind = alike[0][0].source.schema.field(alike[0][1]).type
        if pa.types.is_integer(kind):
            return list(range(1, 1 + len(PLAIN_KEYS)))
        return list(PLAIN_KEYS) if pa.types.is_string(kind) else []

    def _rekeyed(self, rows: Sequence[_Placed], renaming: Mapping[tuple[str, str], Any]) -> list[_Placed]:
        rekeyed = []
        for placed in rows:
            changed = {}
            for column in self.sources[placed.input].key:
                named = (self._family(placed.input, column), repr(placed.row[column]))
                if named in renaming:
                    changed[column] = renaming[named]
            rekeyed.append(placed._replace(row={**placed.row, **changed}))
        return rekeyed

    def _of_values(self, rows: list[_Placed]) -> Iterator[list[_Placed]]:
        """Yield the rows with simpler values: the simplest in all rows, in a column, in a row; then one by one."""
        simpler = [
            {
                column: list(self._simpler(placed.input, column, placed.row[column]))
                for column in self._values_of(placed)
            }
            for placed in rows
        ]
        simplest = [{column: found[0] for column, found in of_row.items() if found} for of_row in simpler]

        def valued(chosen: Sequence[Mapping[str, Any]]) -> list[_Placed]:
            return [placed._replace(row={**placed.row, **values}) for placed, values in zip(rows, chosen, strict=True)]

        yield valued(simplest)
        for column in dict.fromkeys(column for of_row in simplest for column in of_row):
            yield valued([{column: of_row[column]} if column in of_row else {} for of_row in simplest])
        for index, of_row in enumerate(simpler):
            only = [of if number == index else {} for number, of in enumerate(simplest)]
            yield valued(only)
            for column, found in of_row.items():
                for value in found:
                    yield valued([{column: value} if number == index else {} for number in range(len(rows))])

    def _values_of(self, placed: _Placed) -> list[str]:
        """Return the columns whose values may become simpler: those of a sample's rows stay as they are."""
        given = self.inputs[placed.input]
        names = [name for name in given.source.schema.names if name not in (given.source.time, *given.source.key)]
        return [name for name in names if name in given.pools] if given.sample else names

    def _simpler(self, name: str, column: str, value: Any) -> Iterator[Any]:
        """Yield values of a column that are simpler, the simplest first; of the user's own, where there are some."""
        given = self.inputs[name]
        limit = self._value_size(name, column, value)
        if column in given.pools:
            pool = sorted(given.pools[column], key=lambda other: self._value_size(name, column, other))
            yield from (other for other in pool if self._value_size(name, column, other) < limit)
            return
        kind = given.source.schema.field(column).type
        for other in self._steps(value, kind, self.plainest[name][column]):
            try:
                (fitted,) = plain_values(pa.array([other], kind))
            except (pa.ArrowException, TypeError, ValueError):
                continue
            if self._value_size(name, column, fitted) < limit:
                yield fitted

    def _steps(self, value: Any, kind: pa.DataType, plainest: Any) -> Iterator[Any]:
        if value is None:
            if pa.types.is_string(kind):
                yield ""
            elif isinstance(plainest, (bool, int, float, Decimal)):
                yield type(plainest)(0)
            elif isinstance(plainest, list):
                yield []
            yield plainest
        elif isinstance(value, Decimal):
            yield from (Decimal(0), Decimal(int(value)), abs(value), Decimal(1))
        elif isinstance(value, (date, time, timedelta, bytes)):
            yield plainest
        elif pa.types.is_map(kind):
            yield {}
            yield from ({key: item} for key, item in value.items())
        else:
            yield from simpler_values(value)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                yield from (1, -1)


def _whole(us: int, unit: int, up: int) -> int:
    """Return a time down to a whole unit, or up to the next."""
    return us - us % unit + (unit if up and us % unit else 0)


def _roughness(us: int) -> int:
    """Return of how many units a time is no whole number."""
    return sum(us % unit != 0 for unit in UNITS_US)


def _key_size(value: Any) -> int:
    if isinstance(value, str):
        return key_size(value)
    if isinstance(value, int):
        # Of numbers 1 is the simplest key, then 2.
        return value if value > 0 else 10 - 2 * value
    if isinstance(value, datetime):
        return _roughness(microseconds(value if value.tzinfo else value.replace(tzinfo=UTC)))
    return 1000 if value is None else len(repr(value))

"""Shrink a job's history: the size of a history, simpler candidates, and combinations of failing candidates.

All candidates have the clock schedule of the history, and contain only values, keys and rows that could have been
drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from ...shrinking import Deadline, Shrinker, fewer
from ...simpler import key_size, simpler_values, value_size
from .. import debezium
from ..forms.rows import Row, from_microseconds, microseconds
from ..inputs import ResolvedInput
from ..key_spaces import key_family
from ..model import Arrival, JobHistory, Source, Unreadable
from ..values import kinds, plain_values
from .drawing import MS, are_copies

UNITS_US: Sequence[int] = (MS, 1_000_000, 60_000_000, 600_000_000, 3_600_000_000)
"""A millisecond, a second, a minute, ten minutes, an hour (µs): a time that more of these units divide is simpler."""
PLAIN_KEYS: Sequence[str] = ("a", "b", "c", "d", "e", "f")


class _Placed(NamedTuple):
    """A row with its input, the index of its batch and, for an unreadable record, the fault."""

    batch: int
    input: str
    row: Row
    fault: str = ""


_Rows = list[_Placed]
Size = tuple[int, int, int, int, int, int, int, int, str]


def size(history: JobHistory, inputs: Sequence[ResolvedInput]) -> Size:
    """Return the size of a history: rows, batches with rows, batch indexes, times, keys, values; smaller is simpler."""
    return _Steps(history, inputs).size(_placed(history))


def shrink(
    history: JobHistory,
    inputs: Sequence[ResolvedInput],
    fails: Callable[[Sequence[JobHistory]], Sequence[bool]],
    rounds: int = 8,
    delay_us: int | None = None,
    deadline: Deadline | None = None,
) -> JobHistory:
    """Return the smallest failing history found; see `Shrinker.shrink`.

    Args:
        history: The failing history.
        inputs: The inputs of the history's rows.
        fails: A function that takes a round's candidates, the smallest first, and returns for each candidate whether it
            fails.
        rounds: The maximum number of rounds.
        delay_us: The watermark's delay (µs) if no row may be late; None if rows may be late.
        deadline: The time after which no round starts.
    """
    rows, steps = _placed(history), _Steps(history, inputs, delay_us)
    smallest = Shrinker(steps.size, steps.candidates, steps.combined).shrink(
        rows, lambda candidates: fails([*map(steps.history, candidates)]), rounds, deadline=deadline
    )
    return history if smallest is rows else steps.history(smallest)


def _placed(history: JobHistory) -> _Rows:
    rows = [_Placed(number, name, row) for number, batch in enumerate(history.batches) for name, row in batch]
    last = len(history.batches) - 1
    return [*rows, *(_Placed(min(one.batch, last), one.input, one.row, one.fault) for one in history.unreadable)]


def _replaced(rows: _Rows, index: int, placed: _Placed) -> _Rows:
    return [*rows[:index], placed, *rows[index + 1 :]]


def _in_order(rows: Iterable[_Placed]) -> _Rows:
    return sorted(rows, key=lambda placed: placed.batch)


def _merged(rows: _Rows, candidates: Sequence[_Rows]) -> _Rows:
    merged = list(rows)
    for candidate in candidates:
        for index, (before, after) in enumerate(zip(rows, candidate, strict=True)):
            if (before.input, before.fault) != (after.input, after.fault):
                continue
            batch, row = merged[index].batch, dict(merged[index].row)
            for name, value in after.row.items():
                if row[name] == before.row[name] != value:
                    row[name] = value
            merged[index] = before._replace(batch=after.batch if batch == before.batch else batch, row=row)
    return _in_order(merged)


class _Steps:
    """The simplification steps for the rows of a history, under the history's clock schedule."""

    def __init__(self, history: JobHistory, inputs: Sequence[ResolvedInput], delay_us: int | None = None) -> None:
        self.original, self.sources = history, {given.name: given.source for given in inputs}
        self.inputs = {given.name: given for given in inputs}
        self.times = _Times(history, self.sources, delay_us)
        self.keys = _Keys(inputs)
        self.values = _Values(inputs, self.times.start_us)

    def history(self, rows: _Rows) -> JobHistory:
        """Return a history of the rows, with the clock schedule of the original."""
        batches: list[list[Arrival]] = [[] for _ in self.original.batches]
        for number, name, row, fault in rows:
            if not fault:
                batches[number].append(Arrival(name, row))
        unreadable = tuple(Unreadable(*placed) for placed in rows if placed.fault)
        return replace(self.original.with_batches(batches), unreadable=unreadable)

    def size(self, rows: _Rows) -> Size:
        """Return the size of a list of rows as a tuple; different lists have different sizes."""
        times = [self.times.of(placed) for placed in rows]
        keys, values = set(), 0
        for _, name, row, _ in rows:
            source = self.sources[name]
            for column, value in row.items():
                if column in source.key:
                    keys.add((column, repr(value), _key_size(value)))
                elif column != source.time or value is None:
                    values += self.values.size(name, column, value)
        return (
            len(rows),
            len({placed.batch for placed in rows}),
            sum(placed.batch for placed in rows),
            sum(map(_roughness, times)) + len(set(times)),
            len(keys),
            sum(of for _, _, of in keys),
            values,
            sum(abs(time - self.times.start_us) for time in times),
            repr([(*placed._replace(row={}), sorted(placed.row.items(), key=repr)) for placed in rows]),
        )

    def candidates(self, rows: _Rows, thorough: bool) -> Iterator[_Rows]:
        """Yield the result of each simplification step; if `thorough`, also every subset of at most three rows."""
        of_times = chain(self.times.sooner(rows), self.times.simpler(rows))
        simpler = chain(fewer(rows, thorough), of_times, self.keys.simpler(rows), self.values.simpler(rows))
        return filter(self.are_allowed, simpler)

    def combined(self, rows: _Rows, failing: Sequence[_Rows]) -> Iterator[_Rows]:
        """Yield the rows with the changes of all failing candidates, and of each half of the candidates."""
        same = [candidate for candidate in failing if len(candidate) == len(rows)]
        half = len(same) // 2
        merged = [_merged(rows, some) for some in (same, same[:half], same[half:]) if len(some) > 1]
        return filter(self.are_allowed, merged)

    def are_allowed(self, rows: _Rows) -> bool:
        """Return whether rows could have been drawn: their times are allowed, and rows of the same event are copies."""
        rows = [placed for placed in rows if not placed.fault]
        return self.times.are_allowed(rows) and are_copies(((name, row) for _, name, row, _ in rows), self.inputs)


class _Times:
    """Simplifies the event times and the batches of rows."""

    def __init__(self, history: JobHistory, sources: Mapping[str, Source], delay_us: int | None) -> None:
        self.clock, self.batches = history.clock, len(history.batches)
        self.sources, self.delay_us = sources, delay_us
        times = [time for name, row in history.arrivals if (time := sources[name].time_us_of(row)) is not None]
        self.start_us = (history.clock or times or [0])[0]

    def of(self, placed: _Placed) -> int:
        """Return the event time of a row (µs); the start of the history for a row without event time."""
        time = self.sources[placed.input].time_us_of(placed.row)
        return self.start_us if time is None else time

    def has_time(self, placed: _Placed) -> bool:
        return placed.row[self.sources[placed.input].time] is not None

    def are_allowed(self, rows: _Rows) -> bool:
        """Return whether no row is later than its batch's clock and, if a delay is given, no row is late.

        The changes of each row of a table must also be in time order, as in a log.
        """
        for source in filter(lambda source: source.is_change_log, self.sources.values()):
            if not debezium.are_in_order(source, [placed.row for placed in rows if placed.input == source.name]):
                return False
        rows = [placed for placed in rows if self.has_time(placed)]
        if self.clock and any(self.of(placed) > self.clock[placed.batch] for placed in rows):
            return False
        if self.delay_us is None:
            return True
        reached: Sequence[int | None] = self.clock
        if not self.clock:
            times = [(placed.batch, self.of(placed)) for placed in rows]
            reached = [
                max((us for number, us in times if number <= last), default=None) for last in range(self.batches)
            ]
        horizons = [None, *reached[:-1]]
        return all(
            (horizon := horizons[placed.batch]) is None or self.of(placed) > horizon - self.delay_us for placed in rows
        )

    def sooner(self, rows: _Rows) -> Iterator[_Rows]:
        """Yield the rows in earlier batches: one row, one batch, all rows from a batch on, or all batches without gaps.

        The times of the moved rows stay the same, change like the clock or the watermark, or all decrease by the same
        amount.
        """
        used = sorted({placed.batch for placed in rows})
        yield from self._moved(rows, {number: used.index(number) for number in used})
        for number in used:
            for earlier in range(number):
                yield from self._moved(rows, {number: earlier})
                yield from self._moved(rows, {other: other - number + earlier for other in used if other >= number})
        for index, placed in enumerate(rows):
            for earlier in range(placed.batch):
                for us in dict.fromkeys((self.of(placed), *self._times_after_move(placed, earlier))):
                    yield _in_order(_replaced(rows, index, self._timed(placed, us, earlier)))

    def _times_after_move(self, placed: _Placed, earlier: int) -> Iterator[int]:
        """Yield times in an earlier batch at the same distance from that batch's clock, or from the clock before."""
        us = self.of(placed)
        if self.clock:
            yield us + self.clock[earlier] - self.clock[placed.batch]
            if earlier:
                yield us + self.clock[earlier - 1] - self.clock[placed.batch - 1]

    def _moved(self, rows: _Rows, to: Mapping[int, int]) -> Iterator[_Rows]:
        """Yield the rows in other batches: with the same times, times moved with the clock, or all times decreased."""
        moved = _in_order(placed._replace(batch=to.get(placed.batch, placed.batch)) for placed in rows)
        yield moved
        if self.clock:
            by = {number: self.clock[to.get(number, number)] - self.clock[number] for number in range(self.batches)}
            yield _in_order(
                self._timed(placed, self.of(placed) + by[placed.batch], to.get(placed.batch)) for placed in rows
            )
            down = max((self.of(placed) - self.clock[placed.batch] for placed in moved), default=0)
            for unit in (1, UNITS_US[-2]) if down > 0 else ():
                yield [self._timed(placed, self.of(placed) - _whole(down, unit, up=1)) for placed in moved]

    def simpler(self, rows: _Rows) -> Iterator[_Rows]:
        """Yield the rows with simpler times: whole units for all rows or one row, or the time of another row."""
        times = [self.of(placed) for placed in rows]
        for unit in UNITS_US:
            for up in (0, 1):
                yield [self._timed(placed, _whole(us, unit, up)) for placed, us in zip(rows, times, strict=True)]
            # Move all times by the same amount, so that the earliest time is a whole unit.
            down = min(times, default=0) % unit
            yield [self._timed(placed, us - down) for placed, us in zip(rows, times, strict=True)]
        for index, (placed, us) in enumerate(zip(rows, times, strict=True)):
            if not self.has_time(placed):
                yield _replaced(rows, index, self._timed(placed, us, given=True))
                continue
            found = {_whole(us, unit, up) for unit in UNITS_US for up in (0, 1)} | set(times)
            # Try times 1 ms from another row's time, which are simpler than unrelated times.
            found |= {time + by for time in times for by in (MS, -MS)} if us % UNITS_US[1] else set()
            for other in found - {us}:
                yield _replaced(rows, index, self._timed(placed, other))

    def _timed(self, placed: _Placed, us: int, batch: int | None = None, *, given: bool = False) -> _Placed:
        """Return a row at another time, and in `batch` if given; with `given`, a row without a time gets a time."""
        source = self.sources[placed.input]
        row = {**placed.row, source.time: source.time_of(us)} if given or self.has_time(placed) else placed.row
        return placed._replace(batch=placed.batch if batch is None else batch, row=row)


class _Keys:
    """Simplifies the keys of rows; equal keys change together."""

    def __init__(self, inputs: Sequence[ResolvedInput]) -> None:
        self.inputs = {given.name: given for given in inputs}
        sources = [given.source for given in inputs]
        self.families = {
            (source.name, column): key_family(source, column, sources) for source in sources for column in source.key
        }

    def simpler(self, rows: _Rows) -> Iterator[_Rows]:
        """Yield the rows with simpler keys: all keys simplified, one key simplified, or one key replaced by another.

        Equal keys change together. The user's own keys are replaced only by other keys of the user.
        """
        families: dict[str, dict[str, Any]] = {}
        for _, name, row, _ in rows:
            for column in self.inputs[name].source.key:
                families.setdefault(self.families[name, column], {})[repr(row[column])] = row[column]
        choices = {family: self._key_choices(family) for family in families}
        plainest: dict[tuple[str, str], Any] = {}
        for family, values in families.items():
            named = [(family, value) for value in values]
            plainest.update(zip(named, choices[family] or (), strict=False))
        yield self._rekeyed(rows, plainest)
        for family, values in families.items():
            found = choices[family]
            if found is None:
                continue
            for value in values:
                for simple in (*found[: len(values) + 1], *values.values()):
                    if repr(simple) != value:
                        rekeyed = self._rekeyed(rows, {(family, value): simple})
                        yield rekeyed
                        yield from (_replaced(rows, index, one) for index, one in enumerate(rekeyed))

    def _key_choices(self, family: str) -> list[Any] | None:
        """Return the keys that may replace a key, the simplest first; None if the user's own keys must stay."""
        alike = [(self.inputs[name], column) for (name, column), of in self.families.items() if of == family]
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

    def _rekeyed(self, rows: _Rows, renaming: Mapping[tuple[str, str], Any]) -> _Rows:
        rekeyed = []
        for placed in rows:
            row = dict(placed.row)
            for column in self.inputs[placed.input].source.key:
                named = (self.families[placed.input, column], repr(row[column]))
                row[column] = renaming.get(named, row[column])
            rekeyed.append(placed._replace(row=row))
        return rekeyed


class _Values:
    """Simplifies the values of rows."""

    def __init__(self, inputs: Sequence[ResolvedInput], start_us: int) -> None:
        self.inputs = {given.name: given for given in inputs}
        around = from_microseconds(start_us - start_us % UNITS_US[-1])
        self.plainest: dict[tuple[str, str], Any] = {}
        for given in inputs:
            for column in given.source.schema:
                found = kinds(column.type, around)
                self.plainest[given.name, column.name] = found[0][0] if found else None

    def size(self, name: str, column: str, value: Any) -> int:
        """Return the size of a value in a column of an input; a simpler value is smaller."""
        if value is None:
            return 2
        if isinstance(value, Decimal):
            digits = value.normalize().as_tuple().exponent
            return value_size(float(value)) + (max(0, -digits) if isinstance(digits, int) else 0)
        if isinstance(value, (date, time, timedelta, bytes)):
            return 0 if value == self.plainest[name, column] else 3
        return value_size(value)

    def simpler(self, rows: _Rows) -> Iterator[_Rows]:
        """Yield the rows with the simplest values everywhere, in a column or in a row; then with one simpler value."""
        simpler = []
        for _, name, row, _ in rows:
            columns = self.inputs[name].drawn_columns
            simpler.append({column: list(self._of_column(name, column, row[column])) for column in columns})
        simplest = [{column: found[0] for column, found in of_row.items() if found} for of_row in simpler]

        def valued(chosen: Sequence[Mapping[str, Any]]) -> _Rows:
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

    def _of_column(self, name: str, column: str, value: Any) -> Iterator[Any]:
        """Yield simpler values of a column, the simplest first; only from the user's own values, if given."""
        given = self.inputs[name]
        limit = self.size(name, column, value)
        if column in given.pools:
            pool = sorted(given.pools[column], key=lambda other: self.size(name, column, other))
            yield from (other for other in pool if self.size(name, column, other) < limit)
            return
        kind = given.source.schema.field(column).type
        for other in self._steps(value, kind, self.plainest[name, column]):
            try:
                (fitted,) = plain_values(pa.array([other], kind))
            except (pa.ArrowException, TypeError, ValueError):
                continue
            if self.size(name, column, fitted) < limit and given.taken((fitted,)):
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
    """Round a time down to a whole unit, or up to the next unit."""
    return us - us % unit + (unit if up and us % unit else 0)


def _roughness(us: int) -> int:
    """Return how many of the units `UNITS_US` don't divide a time; fewer mean a simpler time."""
    return sum(us % unit != 0 for unit in UNITS_US)


def _key_size(value: Any) -> int:
    if isinstance(value, str):
        return key_size(value)
    if isinstance(value, int):
        # Positive numbers are simpler than zero and negative numbers, and small numbers than large ones.
        return value if value > 0 else 10 - 2 * value
    if isinstance(value, datetime):
        return _roughness(microseconds(value))
    return 1000 if value is None else len(repr(value))

"""Random histories of a job: few rows, whose times differ by the durations in the job, exactly or nearly.

All histories of a call have the same clock schedule, so that they can share a query. No row has an event time after the
clock at the end of its batch.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate, combinations
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from .. import debezium
from ..forms.payloads import NULL, faults_of
from ..forms.rows import Row, microseconds
from ..inputs import ResolvedInput
from ..key_spaces import key_family, key_space, why_alone
from ..model import Arrival, JobHistory, Unreadable
from ..values import ColumnValues, drawn_kind
from .constants import near_constants

MS = 1000
"""A millisecond in microseconds."""
DISTANCES_US: Sequence[int] = (60_000_000, 600_000_000, 3_600_000_000)
"""A minute, ten minutes, an hour (µs): the distances between times for a job without known durations."""
BASES: Sequence[datetime] = (
    # in Berlin, during the hour that the end of summer time repeats; in New York, shortly before midnight
    datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    datetime(2024, 3, 10, 7, 30, tzinfo=UTC),  # just after the start of summer time in New York
    datetime(2024, 7, 15, 12, tzinfo=UTC),
    datetime(2024, 3, 31, 1, 30, tzinfo=UTC),  # just after the start of summer time in Berlin
    datetime(2024, 2, 29, 0, 10, tzinfo=UTC),
    datetime(2024, 11, 3, 6, 30, tzinfo=UTC),  # in the hour that the end of summer time repeats in New York
    datetime(2025, 1, 1, 0, 10, tzinfo=UTC),
)
"""The start times of histories, in the order of seeds; each is shortly after midnight in some time zone."""
ZONES: Sequence[str] = ("UTC", "Europe/Berlin", "America/New_York")
OFFSETS_US: Sequence[int] = (*[0] * 10, *[MS, -MS] * 4, 1, -1)
"""The offsets (µs) of times from an edge, such as the end of a window: mostly 0, sometimes 1 ms, rarely 1 µs."""
ROWS: Sequence[int] = (1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12)
"""The numbers of rows of a history to choose from; two in five histories have at most three rows."""

FEW = 4
"""The largest number of different values of a column in a history."""


def draw_histories(
    inputs: Sequence[ResolvedInput],
    distances_us: Sequence[int],
    count: int,
    seed: int,
    batches: int = 5,
    late: bool = True,
    delay_us: int = 0,
    timeouts_us: Sequence[int] = (),
    edges_us: Sequence[tuple[int, int]] = (),
) -> list[JobHistory]:
    """Draw histories with the same clock schedule, and with the names `h0`, `h1` and so on.

    Args:
        inputs: The job's inputs.
        distances_us: The durations on which the job's output may depend (µs); by default a minute, ten minutes and an
            hour.
        count: The number of histories.
        seed: The same seed draws the same histories; consecutive seeds start on different days.
        batches: The number of batches in a history.
        late: Whether rows may arrive behind the watermark.
        delay_us: The watermark's delay (µs), the largest of several.
        timeouts_us: The processing-time timeouts (µs), if the job uses processing time.
        edges_us: The times at which windows end, if known, each as a window size and an offset (µs since 1970).
    """
    generator = random.Random(f"{seed} of a job")
    grain_us = grain_of(inputs)
    distances = sorted({up(distance, grain_us) for distance in (*distances_us, delay_us) if distance > 0})
    distances = distances or sorted({up(distance, grain_us) for distance in DISTANCES_US})
    start = start_of(seed)
    if timeouts_us:
        clock = draw_clock_of_timeouts(generator, microseconds(start), timeouts_us, batches, grain_us)
    else:
        clock = draw_clock(generator, microseconds(start), distances, batches, delay_us, grain_us, edges_us)
    drawer = _Drawer(inputs, distances, clock, late, delay_us, start)
    sources = [given.source for given in inputs]
    drawn = [debezium.in_order(drawer.history(generator, f"h{number}"), sources) for number in range(count)]
    drawn = [near_constants(one, inputs, delay_us, f"{seed} of the constants of {one.name}") for one in drawn]
    drawn = [with_flaws(history, inputs, f"{seed} of the flaws of {history.name}") for history in drawn]
    return [_with_copies(history, drawer) for history in drawn]


def start_of(seed: int) -> datetime:
    """Return the start time of a seed's histories."""
    return BASES[seed % len(BASES)]


def grain_of(inputs: Sequence[ResolvedInput]) -> int:
    """Return the precision of the clock (µs): the coarsest precision of an input's event times."""
    return max(given.source.grain_us for given in inputs)


def up(time_us: int, grain_us: int) -> int:
    """Round a time up to a multiple of the precision."""
    return -(-time_us // grain_us) * grain_us


def are_copies(rows: Iterable[tuple[str, Row]], inputs: Mapping[str, ResolvedInput]) -> bool:
    """Return whether all rows with the same identity are copies of each other."""
    first: dict[tuple[str, str], Row] = {}
    identified = ((name, row) for name, row in rows if inputs[name].identity)
    return all(
        repr(first.setdefault((name, inputs[name].identity_of(row)), row)) == repr(row) for name, row in identified
    )


def _with_copies(history: JobHistory, drawer: _Drawer) -> JobHistory:
    """Return a history in which rows with equal identity are copies; if rows must not be late, late copies are left
    out.

    Args:
        history: The history.
        drawer: The drawer of the history.
    """
    inputs = {given.name: given for given in drawer.inputs}
    if not any(given.identity for given in drawer.inputs):
        return history
    first: dict[tuple[str, str], Arrival] = {}
    batches: list[list[Arrival]] = []
    for batch, horizon in zip(history.batches, drawer.horizons, strict=True):
        batches.append([])
        for drawn in batch:
            given, arrival = inputs[drawn.input], drawn
            if given.identity:
                arrival = first.setdefault((drawn.input, given.identity_of(drawn.row)), drawn)
            time_us = given.source.time_us_of(arrival.row)
            is_late = horizon is not None and time_us is not None and time_us <= horizon
            if arrival is drawn or drawer.late or not is_late:
                batches[-1].append(arrival)
    return history.with_batches(batches)


def with_flaws(history: JobHistory, inputs: Sequence[ResolvedInput], seed: str) -> JobHistory:
    """Return a history with missing event times and unreadable records, as often as the inputs declare."""
    by_name = {given.name: given for given in inputs}
    if not any(given.null_times or given.malformed or given.null_values for given in inputs):
        return history
    generator = random.Random(seed)
    batches: list[list[Arrival]] = []
    unreadable: list[Unreadable] = []
    for number, batch in enumerate(history.batches):
        batches.append([])
        for arrival in batch:
            given, row = by_name[arrival.input], arrival.row
            unreadable += _unreadable(generator, given, number, row)
            timeless = generator.random() < given.null_times
            batches[-1].append(Arrival(arrival.input, {**row, given.source.time: None}) if timeless else arrival)
    return replace(history.with_batches(batches), unreadable=tuple(unreadable))


def _unreadable(generator: random.Random, given: ResolvedInput, batch: int, row: Row) -> Iterator[Unreadable]:
    """Yield the unreadable records that arrive together with a row, as often as the input declares."""
    encoding = given.source.encoding
    if encoding is None or encoding.format is None:
        return
    readable = max(0.05, 1 - given.malformed - given.null_values)
    faults = faults_of(encoding.value, not encoding.is_records_time and encoding.place is None)
    for share, named in ((given.malformed, faults), (given.null_values, (NULL,))):
        if generator.random() < share / readable:
            yield Unreadable(batch, given.name, row, generator.choice(named))


def draw_clock(
    generator: random.Random,
    base_us: int,
    distances: Sequence[int],
    batches: int,
    delay_us: int = 0,
    grain_us: int = 1,
    edges_us: Sequence[tuple[int, int]] = (),
) -> tuple[int, ...]:
    """Draw a clock schedule: the largest event time by the end of each batch (µs since 1970).

    One step of the schedule moves the watermark exactly to an edge, and one step to 1 ms before an edge. Edges are
    times at which windows
    end: `edges_us`; by default, the multiples of the largest of `distances`. Other steps move the clock by more than
    the largest of `distances`, by about a distance, or by at most 1 ms. Each step is a multiple of `grain_us`, which
    replaces 1 ms if it is longer.
    """
    beside = max(MS, grain_us)

    def near() -> int:
        return max(0, generator.choice(distances) + generator.choice((0, beside, -beside)))

    others = [distance for distance in distances if distance != delay_us] or distances
    size = others[-1]
    # Draw an offset, because hopping windows and windows with a start offset end between multiples of their size.
    offset = generator.choice([other for other in others if other < size] * 3 + [0] * len(others))
    steps = ["edge", "before edge", "far", "near", "still"][:batches]
    steps += [generator.choice(("edge", "before edge", "near", "near", "far")) for _ in range(batches - len(steps))]
    generator.shuffle(steps)
    # With `available_now`, the last two steps take effect in the same batch, so the last but one mustn't be at an edge.
    while batches > 2 and "edge" in steps[-2]:
        generator.shuffle(steps)
    clock, schedule = base_us - base_us % grain_us, []
    for step in steps:
        match step:
            case "edge" | "before edge":
                before = beside if step == "before edge" else 0
                if edges_us:
                    size, offset = generator.choice(edges_us)
                clock += (delay_us + offset - before - clock) % size
            case "far":
                clock += distances[-1] + near()
            case "near":
                clock += near()
            case "still":
                clock += generator.choice((0, beside))
        clock -= clock % grain_us
        schedule.append(clock)
    return tuple(schedule)


def draw_clock_of_timeouts(
    generator: random.Random, base_us: int, timeouts_us: Sequence[int], batches: int, grain_us: int = 1
) -> tuple[int, ...]:
    """Draw a clock schedule in which batches are each timeout, 1 ms less, and 1 ms more apart.

    `grain_us` replaces 1 ms if it is longer. The other batches follow the batch before without a delay.
    """
    beside = max(MS, grain_us)
    steps = [timeout_us + by for timeout_us in timeouts_us for by in (0, -beside, beside)]
    steps += [generator.choice((0, beside)) for _ in range(batches - 1 - len(steps))]
    generator.shuffle(steps)
    return tuple(accumulate(steps, initial=base_us - base_us % grain_us))


def calendar_edges(start: datetime) -> list[int]:
    """Return the midnights and clock changes of a few time zones in the day before `start` (µs since 1970)."""
    found = []
    for zone in map(ZoneInfo, ZONES):
        last = None
        for minutes in range(-24 * 60, 1, 30):
            time = start.replace(minute=start.minute // 30 * 30, second=0, microsecond=0) + timedelta(minutes=minutes)
            local = time.astimezone(zone)
            if last not in (None, (local.date(), local.utcoffset())):
                found.append(microseconds(time))
            last = (local.date(), local.utcoffset())
    return sorted(set(found))


class _Drawer:
    """Draws histories under one clock schedule."""

    def __init__(
        self,
        inputs: Sequence[ResolvedInput],
        distances: Sequence[int],
        clock: Sequence[int],
        late: bool,
        delay_us: int,
        start: datetime,
    ) -> None:
        self.inputs, self.clock, self.late = inputs, clock, late
        # In the first batch no row is late, because the watermark hasn't moved yet.
        self.horizons = [None, *(time - delay_us for time in clock[:-1])]
        self.open = [
            number for number, horizon in enumerate(self.horizons) if late or horizon is None or horizon < clock[number]
        ]
        self.sizes = distances
        self.sums = [one + other for one, other in combinations(distances, 2)] or [0]
        self.watermarks = [time - delay_us for time in clock]
        self.calendar = calendar_edges(start)
        self.contents = [Contents(given, start) for given in inputs]
        self.keys = _Keys(inputs, start)

    def history(self, generator: random.Random, name: str) -> JobHistory:
        count = generator.choice(ROWS)
        numbers = sorted(generator.choice(self.open) for _ in range(count))
        keys = self.keys.draw(generator)
        contents = [of_input.of_history(generator, len(keys)) for of_input in self.contents]
        batches: list[list[Arrival]] = [[] for _ in self.clock]
        arrived: list[Arrival] = []
        times: list[int] = []
        for number in numbers:
            arrival = self._repeated(generator, number, arrived, times) if arrived else None
            if arrival is None:
                index = generator.randrange(len(self.inputs))
                source = self.inputs[index].source
                time = self._time(generator, number, times, source.grain_us)
                which = generator.randrange(len(keys))
                row = contents[index](which)
                row.update(zip(source.key, keys[which][index], strict=True))
                row[source.time] = source.time_of(time)
                arrival = Arrival(source.name, {column: row[column] for column in source.schema.names})
                times.append(time)
            arrived.append(arrival)
            batches[number].append(arrival)
        return JobHistory(tuple(map(tuple, batches)), tuple(self.clock), name)

    def _repeated(
        self, generator: random.Random, number: int, arrived: Sequence[Arrival], times: list[int]
    ) -> Arrival | None:
        """With probability 1/8, return an earlier arrival that arrives again, unless the repetition would be late and
        must not be.
        """
        if generator.random() >= 0.125:
            return None
        index = generator.randrange(len(arrived))
        horizon = self.horizons[number]
        if horizon is not None and times[index] <= horizon and not (self.late and generator.random() < 0.3):
            return None
        times.append(times[index])
        return arrived[index]

    def _time(self, generator: random.Random, number: int, times: Sequence[int], grain_us: int) -> int:
        """Draw an event time, at most the batch's clock; a quarter of the times are late, if rows may be late."""
        beside = max(MS, grain_us)
        clock, horizon = self.clock[number], self.horizons[number]
        is_late = horizon is not None and self.late and generator.random() < 0.25
        if horizon is not None and horizon >= clock:
            is_late = True
        for _ in range(8):
            time = self._edge(generator, number, times) + generator.choice(OFFSETS_US) * (beside // MS)
            time -= time % grain_us
            if time <= clock and (horizon is None or (time <= horizon) == is_late):
                return time
        if horizon is None:
            return clock - generator.choice((0, *self.sizes))
        if is_late:
            time = min(clock, horizon - generator.choice((0, beside, *self.sizes)))
            return time - time % grain_us
        return max(up(horizon + 1, grain_us), clock - generator.choice((0, beside)))

    def _edge(self, generator: random.Random, number: int, times: Sequence[int]) -> int:
        """Draw a time at one of the job's durations from an earlier row, or from a watermark, a window's end or a
        midnight.
        """
        if times and generator.random() < 0.55:
            return generator.choice((times[-1], generator.choice(times))) + self._shift(generator, 0.2)
        clock = self.clock[number]
        match generator.randrange(16):
            case 0 | 1 | 2 if (horizon := self.horizons[number]) is not None:
                # Also draw times near the previous batch's watermark, which decides on lateness with `available_now`.
                before = self.horizons[number - 1]
                return (horizon if before is None or generator.random() < 0.6 else before) + self._shift(generator, 0.5)
            case 3 | 4:
                return generator.choice(self.watermarks) + self._shift(generator, 0.3)
            case 5 | 6 | 7 | 8:
                return clock - clock % generator.choice(self.sizes) + self._shift(generator, 0.3)
            case 9 if self.calendar:
                return generator.choice(self.calendar) + self._shift(generator, 0.7)
            case 10 | 11:
                return self.clock[max(0, number - 1)] + self._shift(generator, 0.3)
        return clock + self._shift(generator, 0.3)

    def _shift(self, generator: random.Random, none: float) -> int:
        """Draw the distance between two times: 0 with the probability `none`, otherwise one of the job's durations or a
        sum of two.
        """
        drawn = generator.random()
        if drawn < none:
            return 0
        of = self.sums if drawn > 0.9 else self.sizes
        return generator.choice((1, -1)) * generator.choice(of)


class Contents:
    """The possible values of an input's columns, except for event time and key."""

    def __init__(self, given: ResolvedInput, start: datetime) -> None:
        self.kinds = {name: given.kinds_of(name, start) for name in given.drawn_columns}
        nullable = [column.name for column in given.source.schema if column.nullable]
        texts = [column.name for column in given.source.schema if pa.types.is_string(column.type)]
        # A text column of the identity is never null, because it must contain the history's number as a prefix.
        of_events = () if {*given.source.key} <= {*given.identity} else {*texts} & {*given.identity}
        pooled = (*given.pools, *of_events)
        self.nullable = [name for name in given.drawn_columns if name in nullable and name not in pooled]
        # Keep the sample's rows with the same key together: each drawn key gets the rows of one key of the sample.
        self.by_key: dict[str, list[Row]] = defaultdict(list)
        for row in given.sample:
            self.by_key[repr(given.source.key_of(row))].append(row)

    def of_history(self, generator: random.Random, keys: int) -> Callable[[int], dict[str, Any]]:
        """Return a function that draws a row without event time and key, given the index of the key."""
        nullable = self.nullable if generator.random() < 0.5 else []
        chosen = {name: _few(generator, found) for name, found in self.kinds.items()}
        rows = [generator.choice(list(self.by_key.values())) for _ in range(keys)] if self.by_key else []

        def row(key: int) -> dict[str, Any]:
            drawn = dict(generator.choice(rows[key])) if rows else {}
            for name, kind in chosen.items():
                drawn[name] = None if name in nullable and generator.random() < 0.25 else generator.choice(kind)
            return drawn

        return row


def _few(generator: random.Random, found: Sequence[ColumnValues]) -> ColumnValues:
    """Draw one of several sets of values, and at most a few values of the set, so that equal values occur."""
    kind = drawn_kind(generator, found)
    return kind if len(kind) <= FEW else tuple(generator.sample(kind, FEW))


class _Keys:
    """Draws the keys of a history, for all inputs together.

    Key columns of different inputs with the same name, or else the same position, get the same values, so that rows
    match in joins.
    """

    def __init__(self, inputs: Sequence[ResolvedInput], start: datetime) -> None:
        sources = [given.source for given in inputs]
        self.real = next((given.keys for given in inputs if given.keys), ())
        self.inputs = inputs
        self.columns: list[list[tuple[str, bool]]] = []
        self.kinds: dict[str, Sequence[ColumnValues]] = {}
        # The column that contains the history's number is never null, nor is a key of a single column.
        carriers = {} if why_alone(inputs) else key_space(sources).columns
        for given in inputs:
            named = []
            several = len(given.source.key) > 1
            for column in given.source.key:
                family, field = key_family(given.source, column, sources), given.source.schema.field(column)
                pool = given.pools.get(column)
                if pool is not None or family not in self.kinds:
                    self.kinds[family] = [pool] if pool is not None else given.keys_of(column, start)
                takes_null = several and pool is None and field.nullable
                named.append((family, takes_null and carriers.get(given.name) != column))
            self.columns.append(named)

    def draw(self, generator: random.Random) -> list[list[tuple[Any, ...]]]:
        """Draw one to three keys of a history; each key has a tuple of values for every input."""
        count = generator.choice((1, 1, 1, 2, 2, 3))
        chosen = {family: drawn_kind(generator, found) for family, found in self.kinds.items()}
        return [self._one(generator, chosen) for _ in range(count)]

    def _one(self, generator: random.Random, chosen: Mapping[str, ColumnValues]) -> list[tuple[Any, ...]]:
        values = {family: generator.choice(kind) for family, kind in chosen.items()}
        null = generator.random() < 0.1
        key = [
            tuple(None if takes_null and null else values[family] for family, takes_null in columns)
            for columns in self.columns
        ]
        for index, given in enumerate(self.inputs):
            real = given.keys or (self.real if self.real and len(self.real[0]) == len(given.source.key) else ())
            if real:
                key[index] = generator.choice(real)
        return key


def closed(history: JobHistory, by_us: int) -> JobHistory:
    """Return a history with an additional empty batch, which advances the clock by `by_us` microseconds."""
    return replace(history, batches=(*history.batches, ()), clock=(*history.clock, history.clock[-1] + by_us))

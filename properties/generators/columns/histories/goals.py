"""The coverage goals of a job's histories, and the goals that histories cover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from .. import debezium
from ..formatting import duration
from ..forms.payloads import NULL
from ..forms.rows import Row
from ..inputs import ResolvedInput
from ..model import JobHistory, Source
from .drawing import BASES, MS, Contents, grain_of

LATE = "a row behind the watermark"
DUPLICATE = "a row that comes twice"
DISORDER = "rows out of order within a batch"
EMPTY_BATCH = "a batch without rows"
EQUAL_TIMES = "equal event times"
APART = ("times exactly {} apart", "times {1} less than {0} apart", "times {1} more than {0} apart")
SILENT = tuple(f"no rows of a key for {of}" for of in ("exactly {}", "{1} less than {0}", "{1} more than {0}"))
KEYS = "more than one key"
ROWS_ON = "rows on input {}"
NULL_IN = "null in {} of input {}"
MALFORMED = "a malformed record on input {}"
NULL_VALUE = "a record of a null value on input {}"
UPDATED = "an update of a row on input {}"
DELETED = "a delete of a row on input {}"
AGAIN = "a row that comes back after its delete on input {}"


def goals(
    inputs: Sequence[ResolvedInput], distances_us: Sequence[int], late: bool = True, timeouts_us: Sequence[int] = ()
) -> list[str]:
    """Return the names of the coverage goals of histories; `covered` uses the same names."""
    sources, grain_us = [given.source for given in inputs], grain_of(inputs)
    named = [goal for timeout in timeouts_us for goal, _ in _goals_of_distance(timeout, grain_us, SILENT)]
    named += [LATE] if late else []
    named += [DUPLICATE, DISORDER, EMPTY_BATCH, EQUAL_TIMES]
    for distance in distances_us:
        named += [goal for goal, gap in _goals_of_distance(distance, grain_us) if gap % grain_us == 0]
    named += [KEYS] if any(source.key for source in sources) else []
    named += [ROWS_ON.format(source.name) for source in sources]
    for given in inputs:
        named += [NULL_IN.format(column, given.name) for column in Contents(given, BASES[0]).nullable]
        named += [NULL_IN.format(given.source.time, given.name)] * (given.null_times > 0)
        named += [MALFORMED.format(given.name)] * (given.malformed > 0)
        named += [NULL_VALUE.format(given.name)] * (given.null_values > 0)
        if given.source.is_change_log:
            deletes = [DELETED.format(given.name), AGAIN.format(given.name)]
            named += [UPDATED.format(given.name), *(deletes if given.deletes else [])]
    return named


def _goals_of_distance(distance_us: int, grain_us: int, words: Sequence[str] = APART) -> list[tuple[str, int]]:
    """Return the goals for a duration, each with the exact distance between rows, or silence of a key, that covers the
    goal (µs).
    """
    beside = max(MS, grain_us)
    gaps = zip(words, (0, -beside, beside), strict=True)
    return [(text.format(duration(distance_us), duration(beside)), distance_us + by) for text, by in gaps]


def covered(
    histories: Sequence[JobHistory],
    sources: Sequence[Source],
    distances_us: Sequence[int],
    delay_us: int = 0,
    timeouts_us: Sequence[int] = (),
) -> set[str]:
    """Return the coverage goals that histories cover, and further a goal for each column with a null.

    Args:
        histories: The histories.
        sources: The job's inputs.
        distances_us: The durations on which the job's output may depend (µs).
        delay_us: The watermark's delay (µs), the largest of several.
        timeouts_us: The timeouts of processing time (µs).
    """
    found: set[str] = set()
    gaps: set[int] = set()
    silences: set[int] = set()
    by_name = {source.name: source for source in sources}
    for history in histories:
        found.update(_covered_by(history, by_name, delay_us, gaps))
        silences.update(_silences(history, by_name) if timeouts_us else ())
    grain_us = max(source.grain_us for source in sources)
    for of, words, met in ((distances_us, APART, gaps), (timeouts_us, SILENT, silences)):
        named = (both for distance in of for both in _goals_of_distance(distance, grain_us, words))
        found.update(goal for goal, gap in named if gap in met)
    return found


def _silences(history: JobHistory, sources: Mapping[str, Source]) -> Iterator[int]:
    """Yield the silences of keys (µs): the times from a key's last rows to each later batch, until the key has rows
    again.
    """
    since: dict[str, int] = {}
    clock = history.clock or [1_000 * time_ms for time_ms in history.times_ms([*sources.values()])]
    for time, batch in zip(clock, history.batches, strict=True):
        came = {repr(sources[name].key_of(row)) for name, row in batch}
        yield from (time - last for key, last in since.items() if key not in came)
        since |= dict.fromkeys(came, time)


def _covered_by(history: JobHistory, sources: Mapping[str, Source], delay_us: int, gaps: set[int]) -> Iterator[str]:
    keys, rows = set(), set()
    times: list[int] = []
    clock = None
    for number, batch in enumerate(history.batches):
        in_batch = [time for arrival in batch if (time := sources[arrival.input].time_us_of(arrival.row)) is not None]
        if not batch:
            yield EMPTY_BATCH
        if in_batch != sorted(in_batch):
            yield DISORDER
        if clock is not None:
            gaps.update(clock - time for time in in_batch)
            if any(time <= clock - delay_us for time in in_batch):
                yield LATE
        seen = max([*times, *in_batch], default=None)
        clock = history.clock[number] if history.clock else seen
        times += in_batch
        for name, row in batch:
            yield ROWS_ON.format(name)
            keys.add(repr(sources[name].key_of(row)))
            rows.add(repr((name, row)))
            for column, value in row.items():
                if value is None:
                    yield NULL_IN.format(column, name)
    distinct = sorted(set(times))
    gaps.update(later - earlier for earlier, later in combinations(distinct, 2))
    for source in sources.values():
        if source.is_change_log:
            yield from _covered_changes(source, [row for name, row in history.arrivals if name == source.name])
    if len(distinct) < len(times):
        yield EQUAL_TIMES
    if len(rows) < len(history.arrivals):
        yield DUPLICATE
    for one in history.unreadable:
        yield (NULL_VALUE if one.fault == NULL else MALFORMED).format(one.input)
    if len(keys) > 1:
        yield KEYS


def _covered_changes(source: Source, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the coverage goals of a table's changes: updates, deletes, and inserts after a delete."""
    was_deleted: dict[str, bool] = {}
    for row in rows:
        key, deleted = repr(source.key_of(row)), bool(row[debezium.DELETED])
        before = was_deleted.get(key)
        if before is False:
            yield (DELETED if deleted else UPDATED).format(source.name)
        if before is True and not deleted:
            yield AGAIN.format(source.name)
        was_deleted[key] = deleted

"""Run a job's history in a separate query, without its cohort: only the history's rows move the watermark.

In a cohort, the watermark follows the clock schedule, independent of a history's own rows. In a separate query,
additional rows of another key move the watermark. These rows may change the job's output, so the caller must run the
history again to see whether it still fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from ..forms.rows import from_microseconds
from ..inputs import ResolvedInput
from ..model import Arrival, JobHistory
from ..values import key_kinds
from .drawing import are_copies


class Push(NamedTuple):
    """Additional rows, which move the watermark at a position of a history.

    Attributes:
        batch: The index of a nonempty batch, or -1 for the position before all batches.
        times_us: The times (µs since 1970) of the additional rows: the first row is in this batch, each further row in
            a separate batch after it.
        inputs: The inputs on which none of the history's own rows has reached the last of the times.
    """

    batch: int
    times_us: tuple[int, ...]
    inputs: frozenset[str]


def without_clock(history: JobHistory) -> JobHistory:
    """Return a history without its clock schedule: only its own rows move the watermark, and no batch is empty."""
    used = [number for number, batch in enumerate(history.batches) if batch]
    unreadable = tuple(one._replace(batch=sum(number < one.batch for number in used)) for one in history.unreadable)
    return replace(
        history, batches=tuple(history.batches[n] for n in used) or ((),), clock=(), unreadable=unreadable, numbers=()
    )


def standing_alone(
    history: JobHistory,
    inputs: Sequence[ResolvedInput],
    first: int | None = None,
    *,
    sooner: bool = False,
) -> list[JobHistory]:
    """Return histories without a clock schedule whose own rows cause the watermarks of a given history, the shortest
    first.

    One of the histories contains only the rows of the given history. The other histories contain additional rows of
    another key, which move the watermark where the history's own rows don't: before the first batch, between two
    batches, or at the end. None of the histories contains two different rows with the same identity.

    Args:
        history: The history.
        inputs: The inputs of the history's rows.
        first: The index of the first batch with a different output; the history ends there.
        sooner: Whether a history may end, or the watermark may move, one batch sooner. With the trigger
            `available_now`, a batch closes windows by the previous batch's clock, and drops late rows by the clock of
            the batch before.
    """
    lengths = [len(history.batches) if first is None else first + 1]
    lengths += [first] if sooner and first and not history.batches[first] else []
    found = []
    for length in lengths:
        ended = history.first(length)
        rows = _pushing_rows(ended, inputs)
        for pushes in product(*([None, *options] for options in _pushes(ended, inputs, sooner))):
            found.append(_pushed(ended, inputs, [push for push in pushes if push], rows))
    by_name = {given.name: given for given in inputs}
    distinct = {repr(alone.batches): alone for alone in found if are_copies(alone.arrivals, by_name)}
    return sorted(distinct.values(), key=lambda alone: (len(alone.arrivals), len(alone.batches)))


def _pushes(history: JobHistory, inputs: Sequence[ResolvedInput], sooner: bool) -> list[list[Push]]:
    """Return, for each position at which the watermark may have to move, the possible `Push`es."""
    sources = {given.name: given.source for given in inputs}
    largest = dict.fromkeys(sources, 0)
    used = [number for number, batch in enumerate(history.batches) if batch]
    pushes = []
    for index, number in enumerate([-1, *used], -1):
        for name, row in history.batches[number] if index >= 0 else ():
            largest[name] = max(largest[name], sources[name].time_us_of(row) or 0)
        is_last = index + 1 == len(used)
        following = len(history.clock) if is_last else used[index + 1]
        times = history.clock[max(number, 0) : following][-2 if sooner and not is_last else -1 :]
        behind = frozenset(name for name in largest if times and largest[name] < times[-1])
        if behind:
            pushes.append([Push(index, some, behind) for some in dict.fromkeys((times[-1:], times))])
    return pushes


def _pushed(
    history: JobHistory, inputs: Sequence[ResolvedInput], pushes: Sequence[Push], rows: Mapping[str, Mapping[str, Any]]
) -> JobHistory:
    def arrivals(push: Push, time_us: int) -> tuple[Arrival, ...]:
        return tuple(
            Arrival(given.name, {**rows[given.name], given.source.time: given.source.time_of(time_us)})
            for given in inputs
            if given.name in push.inputs
        )

    batches: list[tuple[Arrival, ...]] = []
    used = [number for number, batch in enumerate(history.batches) if batch]
    moved = {}
    for index, number in enumerate([-1, *used], -1):
        moved[number], batch = len(batches), history.batches[number] if index >= 0 else ()
        pushed = [arrivals(push, time_us) for push in pushes if push.batch == index for time_us in push.times_us]
        batches.append((*batch, *(pushed[0] if pushed else ())))
        batches += pushed[1:]
    unreadable = tuple(
        one._replace(batch=moved[max(number for number in moved if number <= one.batch)]) for one in history.unreadable
    )
    return without_clock(replace(history.with_batches(batches), unreadable=unreadable))


def _pushing_rows(history: JobHistory, inputs: Sequence[ResolvedInput]) -> dict[str, dict[str, Any]]:
    """Return, for each input, a row that moves the watermark: the simplest row, if possible with a key that the history
    lacks.
    """
    around = from_microseconds(history.clock[0] if history.clock else 0)
    keys_of = {given.name: given.source.key_of for given in inputs}
    taken = {repr(value) for name, row in history.arrivals for value in keys_of[name](row)}
    rows = {}
    for given in inputs:
        row = dict(given.sample[0] if given.sample else {given.source.time: None})
        for name in given.drawn_columns:
            found = given.kinds_of(name, around)
            row[name] = found[0][0] if found else None
        others = [key for key in given.keys if not any(repr(part) in taken for part in key)] or list(given.keys)
        for position, name in enumerate(given.source.key):
            if others:
                row[name] = others[0][position]
                continue
            values = given.pools.get(name) or key_kinds(given.source.schema.field(name).type, around)[0]
            row[name] = next((value for value in values if repr(value) not in taken), values[-1])
        rows[given.name] = {name: row[name] for name in given.source.schema.names}
    return rows

"""Cohorts: many histories in one Spark query. Each history has its own keys, and all histories have the same clock
schedule.

Spark's watermark is global to a query, so a cohort has one clock schedule: the clock's value after every batch. A row
with a reserved key moves the watermark as scheduled, and each history contains the schedule as heartbeats.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from ...reference.core.errors import BadInput
from ...reference.core.history import CUT, ClockAdvance, History, Line
from ...reference.core.operator import operator_named
from ...reference.core.play import Entry
from ...reference.core.records import Change, Dropped, Record
from ..registration.bindings import Field
from ..registration.key_space import WATERMARK_DRIVER, owner, prefixed_key
from ..registration.registration import registration_of


@dataclass(frozen=True)
class Cohort:
    """Histories of one operator with the same options and the same clock schedule.

    Attributes:
        operator: The operator's name.
        options: The operator's options; durations in ms.
        schedule: The clock (ms) after every batch.
        histories: The histories, each with one batch for every value of the schedule.
    """

    operator: str
    options: Mapping[str, Any]
    schedule: tuple[int, ...]
    histories: tuple[History, ...]


def clock_schedule(history: History, by_null_keys: bool = False) -> tuple[int, ...]:
    """Return the batch clock (ms) after each batch of a history.

    Args:
        history: The history.
        by_null_keys: Whether records without a key move the clock too.
    """
    schedule, largest = [], 0
    for batch in history.batches:
        for line in batch:
            if isinstance(line, ClockAdvance) or (isinstance(line, Record) and (by_null_keys or line.key is not None)):
                largest = max(largest, line.timestamp)
        schedule.append(largest)
    return tuple(schedule)


def clock_before(history: History, batch: int) -> int:
    """Return the batch clock (ms) during a batch: the clock's value after the previous batch."""
    return clock_schedule(history)[batch - 1] if batch else 0


def record_batches(history: History) -> list[list[Record]]:
    """Return the records of each batch."""
    return [[line for line in batch if isinstance(line, Record)] for batch in history.batches]


def with_cuts(batches: Sequence[Sequence[Line]]) -> tuple[Line, ...]:
    """Return the lines of a history: the lines of each batch, with a cut between two batches."""
    lines: list[Line] = []
    for number, batch in enumerate(batches):
        lines += [CUT] if number else []
        lines += batch
    return tuple(lines)


def with_clock_advances(batches: Sequence[Sequence[Record]], schedule: Sequence[int]) -> tuple[Line, ...]:
    """Return the lines of a history under a clock schedule: each batch's records, a heartbeat, a cut."""
    return with_cuts([[*batch, ClockAdvance(clock)] for batch, clock in zip(batches, schedule, strict=True)])


def agreed(history: History) -> History:
    """Return a history whose values the operator accepts in combination, as `Domain.agreed` ensures."""
    agree = registration_of(history.operator).domain.agreed
    if agree is None:
        return history
    left = iter(agree(operator_named(history.operator).declare(history.options), history.records))
    return history.with_lines([next(left) if isinstance(line, Record) else line for line in history.lines])


def moved_by_records(history: History) -> History:
    """Return a history in which only records move the clock: no heartbeat is later than the records of its batch.

    Every second batch contains no heartbeat. Each other batch with records contains a heartbeat 1 ms before the largest
    timestamp of those records.
    """
    batches: list[list[Line]] = []
    for number, records in enumerate(record_batches(history)):
        batches.append([*records])
        if number % 2 and records:
            batches[-1].append(ClockAdvance(max(0, max(record.timestamp for record in records) - 1)))
    return history.with_lines(with_cuts(batches))


def moved_by_one_each(histories: Sequence[History], generator: Random) -> list[History]:
    """Return a cohort's histories in which exactly one record of each batch has the clock schedule's timestamp.

    By turns, if the batch contains such a record, the record is from the last input, has no value, or is from the first
    input.
    """
    inputs = operator_named(histories[0].operator).declare(histories[0].options).inputs
    wishes = generator.sample([inputs[-1], None, inputs[0]], 3)
    schedule, batches = clock_schedule(histories[0]), [record_batches(history) for history in histories]
    for number, clock in enumerate(schedule):
        own = [batch[number] for batch in batches]
        for batch in own:
            batch[:] = [one._replace(timestamp=min(one.timestamp, max(0, clock - 1))) for one in batch]
        places = [(of, at) for of, batch in enumerate(own) for at, one in enumerate(batch) if one.key is not None]
        wish = wishes[number % len(wishes)]
        wished = [(of, at) for of, at in places if wish == (own[of][at].input if wish else own[of][at].value)]
        if places:
            of, at = generator.choice(wished or places)
            own[of][at] = own[of][at]._replace(timestamp=clock)
    return [
        agreed(history.with_lines(with_clock_advances(of_history, schedule)))
        for history, of_history in zip(histories, batches, strict=True)
    ]


def cohorts_of(histories: Sequence[History], null_keys_alone: bool = True) -> list[tuple[Cohort, list[int]]]:
    """Group histories into cohorts, each of which can share a query; return each cohort with the indexes of its
    histories.

    A history with a null key is alone in its cohort, because a null key can't contain the history's number. With
    `null_keys_alone=False`, a history with a null key may share a cohort.
    """
    groups: dict[Any, list[int]] = defaultdict(list)
    for index, history in enumerate(histories):
        alone = index if null_keys_alone and any(record.key is None for record in history.records) else -1
        options = tuple(sorted((name, repr(value)) for name, value in history.options.items()))
        groups[history.operator, options, history.clock, clock_schedule(history), alone].append(index)
    return [
        (
            Cohort(operator, histories[indexes[0]].options, schedule, tuple(histories[index] for index in indexes)),
            indexes,
        )
        for (operator, _, _, schedule, _), indexes in groups.items()
    ]


def one_cohort(histories: Sequence[History]) -> Cohort:
    """Combine histories into a cohort.

    Raises:
        ValueError: The histories have different operators, options, clocks or clock schedules.
    """
    cohorts = cohorts_of(histories)
    if len(cohorts) != 1:
        raise ValueError(f"{len(histories)} histories make {len(cohorts)} cohorts, not one")
    return cohorts[0][0]


def pack(cohort: Cohort, fields: Sequence[Field]) -> list[pa.Table]:
    """Convert a cohort to a table for each batch.

    Returns: Tables with the columns key (string; `00042|a`), timestamp (bigint, ms), order (bigint, the order of
        arrival in the whole cohort), input (string), and the fields' columns.

    Raises:
        BadInput: A value doesn't fit its column.
    """
    tables, order = [], 0
    first_input = operator_named(cohort.operator).declare(cohort.options).inputs[0]
    batches_of = [history.batches for history in cohort.histories]
    for number, clock in enumerate(cohort.schedule):
        keys: list[str | None] = [WATERMARK_DRIVER]
        inputs = [first_input]
        timestamps = [clock]
        # Give the reserved key's row a value of the column's type, because an aggregate could refuse null.
        columns: list[list[Any]] = [[field.for_driver] for field in fields]
        for index, batches in enumerate(batches_of):
            prefixed = partial(prefixed_key, index)
            for line in batches[number]:
                if isinstance(line, Record):
                    keys.append(None if line.key is None else prefixed(line.key))
                    inputs.append(line.input)
                    timestamps.append(line.timestamp)
                    for field, column in zip(fields, columns, strict=True):
                        column.append(field.of(line, prefixed))
        arrived = pa.array(range(order, order + len(keys)), pa.int64())
        order += len(keys)
        table = {
            "key": _column(number, "key", keys, pa.string()),
            "timestamp": pa.array(timestamps, pa.int64()),
            "order": arrived,
            "input": pa.array(inputs, pa.string()),
        }
        for field, column in zip(fields, columns, strict=True):
            table[field.name] = _column(number, field.name, column, field.type)
        tables.append(pa.table(table))
    return tables


def _column(batch: int, name: str, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        raise BadInput(
            f"batch {batch}: a {name} doesn't fit the type {kind}: {error}; use smaller numbers and whole text"
        ) from None


def unpack(cohort: Cohort, entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return the output entries of each history, with the history's own keys; entries of the reserved key are
    left out.
    """
    by_history: list[list[Entry]] = [[] for _ in cohort.histories]
    for entry in entries:
        key = entry.output.key
        if key is None:
            by_history[0].append(entry)
        elif (owned := owner(key)) is not None:
            index, own = owned
            output = entry.output
            mine = Dropped(own, output.reason) if isinstance(output, Dropped) else Change(own, *output[1:])
            by_history[index].append(Entry(entry.arrival, entry.batch, mine))
    return by_history

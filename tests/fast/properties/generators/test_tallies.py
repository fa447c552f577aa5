"""How often draws have what may matter: a release that draws something seldom, or no longer, shows here.

STREAMPROOF_GOLDEN=write writes tests/golden/draws.json anew: the numbers of histories that have each feature.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

import pytest
from paths import GOLDEN
from streamproof.properties.generators.columns.histories import drawing
from streamproof.properties.generators.columns.histories.drawing import start_of
from streamproof.properties.generators.columns.inputs import Input, ResolvedInput
from streamproof.properties.generators.columns.model import JobHistory
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.generators.schedules import draw_schedule
from streamproof.properties.registration.registration import registration_of
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.operator import OPERATORS, operator_named
from streamproof.reference.core.records import Record

TALLY = GOLDEN / "draws.json"
MINUTE_US = 60_000_000
DISTANCES_US, DELAY_US = (10 * MINUTE_US, 45 * MINUTE_US), 15 * MINUTE_US
NAMED_US = {
    **{
        f"{sign}{name}": by * us
        for sign, by in (("+", 1), ("-", -1))
        for name, us in {"1 µs": 1, "1 ms": 1_000}.items()
    },
    "0": 0,
}
NAMED_US |= {
    f"{sign}{name}{more}": by * us + (0 if more == "" else NAMED_US[more])
    for sign, by in (("+", 1), ("-", -1))
    for name, us in {"10 min": 10, "15 min": 15, "45 min": 45, "25 min": 25, "55 min": 55, "60 min": 60}.items()
    for us in (us * MINUTE_US,)
    for more in ("", "+1 ms", "-1 ms")
}
"""Distances of times, by their names: those of the job, their sums, and beside each."""
INPUTS: Mapping[str, Sequence[Input]] = {
    "a table": [
        Input(
            "user string, shop int, at timestamp, amount decimal(9,2), note string not null, tags array<string>, "
            "ratio double, day date, seen timestamp, flag boolean, place struct<x: int, y: string>",
            key=("user", "shop"),
            time="at",
            name="clicks",
            null_times=0.1,
        )
    ],
    "records": [
        Input(
            "user string, at timestamp, n bigint",
            key="user",
            name="left",
            format="kafka",
            malformed=0.1,
            null_values=0.1,
        ),
        Input("user string, seen timestamp, m tinyint", key="user", name="right", identity="m"),
    ],
}


def of_job(history: JobHistory, inputs: Sequence[ResolvedInput]) -> Iterator[str]:
    """Yield the features of a job's history."""
    sources = {given.source.name: given.source for given in inputs}
    horizons = [None, *(time - DELAY_US for time in history.clock[:-1])]
    by_us = {us: name for name, us in NAMED_US.items()}
    before: list[int] = []
    rows: list[str] = []
    yield f"rows: {len(history.arrivals)}"
    for at, batch in enumerate(history.batches):
        yield f"rows of a batch: {min(len(batch), 4)}"
        for name, row in batch:
            source = sources[name]
            yield f"input {name}"
            yield f"{name}, key: {source.key_of(row)!r}"
            for column in set(row) - {source.time, *source.key}:
                value = row[column]
                in_days = isinstance(value, datetime) or column == "day"
                yield f"{name}, {column}: {'a time' if in_days and value is not None else repr(value)}"
            if (text := repr((name, row))) in rows:
                yield "a row again"
            rows.append(text)
            if row[source.time] is None:
                yield f"{name} without a time"
                continue
            time = source.time_us(row)
            to = {"the clock": history.clock[at], "the watermark": horizons[at], "the one before": horizons[at - 1]}
            to |= {"a row": before[-1]} if before else {}
            to |= {f"edge of {us // MINUTE_US} min": time - time % us for us in DISTANCES_US}
            for other, us in to.items():
                if us is not None and time - us in by_us:
                    yield f"{other} {by_us[time - us]}"
            if horizons[at] is not None:
                yield "late" if time <= horizons[at] else "not late"
            before.append(time)
    for one in history.unreadable:
        yield f"{one.input} unreadable: {one.fault}"
    for us, later in pairwise(history.clock):
        yield f"step {by_us.get(later - us, 'of another length')}"
        for edge in DISTANCES_US:
            yield f"clock to an edge of {edge // MINUTE_US} min {by_us.get((later - DELAY_US) % edge, 'not')}"


def of_jobs(name: str) -> Counter[str]:
    inputs = resolve_all([*INPUTS[name]], 0)
    tally: Counter[str] = Counter()
    for seed in range(4):
        tally.update({f"start {start_of(seed)}": 1})
        for history in drawing.draw_histories(inputs, DISTANCES_US, 40, seed, delay_us=DELAY_US):
            tally.update({*of_job(history, inputs)})
    return tally


def of_history(history: History, schedule: Sequence[int], times: Sequence[int]) -> Iterator[str]:
    """Yield the features of an operator's history."""
    before: Record | None = None
    clock, at = 0, 0
    rows: list[Record] = []
    for line in history.lines:
        if line is CUT:
            clock, at = schedule[at], at + 1
        if not isinstance(line, Record):
            continue
        yield f"{line.input}: {line.key!r}"
        yield f"value {line.value!r}"
        yield "late" if line.timestamp < clock else "not late"
        if line in rows:
            yield "a record again"
        if before is not None:
            of_one = "of its key" if line.key == before.key else "of another"
            for distance in times:
                for by in (-1, 0, 1):
                    for sign in (1, -1):
                        if line.timestamp - before.timestamp == sign * (distance + by):
                            yield f"after the one {of_one} by {sign * distance} {by:+}"
        for distance in times:
            for by in (-1, 0, 1):
                if clock - line.timestamp == distance + by:
                    yield f"behind the clock by {distance} {by:+}"
        before = line
        rows.append(line)
    yield f"batches without a record: {sum(not batch for batch in history.batches)}"


def of_operator(operator: str) -> Counter[str]:
    tally: Counter[str] = Counter()
    registration = registration_of(operator)
    for number, options in enumerate([*registration.profiles.values()][:2]):
        definition = operator_named(operator).declare(options)
        times = {*registration.domain.distances(definition), *registration.domain.edges(definition)}
        schedule = draw_schedule(operator, options, number)
        tally.update(f"schedule: {later - time}" for time, later in pairwise(schedule))
        settings = HistorySettings(operator, options, schedule, 12, null_keys=True)
        for mixed in (False, True):
            for history in draw_histories(settings, 30, number, mixed):
                tally.update({*of_history(history, schedule, sorted(times))})
    return tally


TALLIES: dict[str, Callable[[], Counter[str]]] = {
    **{name: lambda name=name: of_jobs(name) for name in INPUTS},  # type: ignore[misc]
    **{operator: lambda operator=operator: of_operator(operator) for operator in OPERATORS},  # type: ignore[misc]
}
FEW = 5
"""Features of fewer histories come and go."""


@pytest.mark.parametrize("name", TALLIES)
def test_draws_have_each_feature_at_least_half_as_often_as_ever(name: str) -> None:
    found = TALLIES[name]()
    if os.environ.get("STREAMPROOF_GOLDEN") == "write":
        known = json.loads(TALLY.read_text()) if TALLY.exists() else {}
        known[name] = {feature: count for feature, count in sorted(found.items()) if count >= FEW}
        TALLY.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
    before = json.loads(TALLY.read_text())[name]
    seldom = {
        feature: f"{found[feature]} of {count}" for feature, count in before.items() if 2 * found[feature] < count
    }
    assert seldom == {}
    assert len(before) > 20

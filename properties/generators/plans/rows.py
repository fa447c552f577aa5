"""Draw the rows of a plan's inputs: many histories in one query, with the same schedule of clock rows.

The times of rows are at, or next to, the edges of the plan's windows, delays and bounds. A clock row is an ordinary
input row with the history -1, so a filter below the watermark may drop it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....reference.spark.aggregates import Row
from ....reference.spark.execution import Batch
from ....reference.spark.groups import Groups
from ....reference.spark.plans import Aggregation, Deduplication, Join, WithWatermark
from ....reference.spark.windows import Windows
from .drawing import SECOND_US, Query

START_US = 1_767_225_600_000_000
"""2026-01-01 00:00:00 UTC, at which windows of every size start."""
MS = 1_000
CLOCK = -1
"""The history of the clock's rows."""


def durations_us(query: Query) -> list[int]:
    """Return the durations that a plan depends on (µs)."""
    found = {5 * SECOND_US, 10 * SECOND_US}
    for node in query.plan.walk():
        if isinstance(node, WithWatermark):
            found.add(node.delay_us)
        elif isinstance(node, Join):
            found |= {one for one in (node.by.before_us, node.by.after_us) if one}
        elif isinstance(node, Aggregation) and not isinstance(node.by, Groups):
            found.add(node.by.size_us if isinstance(node.by, Windows) else node.by.gap_us)
    return sorted(found - {0})


@dataclass(frozen=True)
class DrawnRows:
    """The rows of a query.

    Attributes:
        batches: The rows of each batch.
        histories: The number of histories.
        nothing_late: Whether no row is late; the last batches then close all windows and groups.
    """

    batches: tuple[Batch, ...]
    histories: int
    nothing_late: bool = False


SILENCES = (0.0, 0.4, 0.8)
"""The possible shares of batches in which some inputs contain no new data."""


def draw_rows(generator: random.Random, query: Query, histories: int, silence: float | None = None) -> DrawnRows:
    """Draw the rows of a query; the same generator state draws the same rows.

    Args:
        generator: The generator.
        query: The query.
        histories: The number of histories.
        silence: The share of batches in which an input is silent, from `SILENCES`; drawn by default.
    """
    return _Drawer(generator, query, silence).drawn(histories)


class _Drawer:
    def __init__(self, generator: random.Random, query: Query, silence: float | None) -> None:
        self.generator, self.choice, self.query = generator, generator.choice, query
        self.distances_us = durations_us(query)
        nodes = [*query.plan.walk()]
        delays = [node.delay_us for node in nodes if isinstance(node, WithWatermark)] or [0]
        self.least_us, self.most_us = min(delays), max(delays)
        # Give all rows of a history in a batch the same time: the kept duplicate's time decides when Spark forgets it.
        self.one_time = any(isinstance(node, Deduplication) and node.within_watermark for node in nodes)
        self.nothing_late = generator.random() < 0.4
        self.silence = self.choice(SILENCES) if silence is None else silence
        # If clock rows are ahead of all other rows, only they move the watermark, so dropping them changes the output.
        self.ahead_us = self.choice((0, MS, self.distances_us[0]))
        self.untimed = 0.0 if self.one_time else self.choice((0.0, 0.0, 0.1))  # the share of rows without event time

    def drawn(self, histories: int) -> DrawnRows:
        clock, open_ = self.schedule(self.choice((3, 4, 5)))
        batches: list[dict[str, list[Row]]] = [{name: [] for name in names} for names in open_]
        for number, of_inputs in enumerate(clock):
            for name, time_us in of_inputs.items():
                batches[number][name].append(_row(CLOCK, "c", time_us, None))
        for history in range(histories):
            self.history(history, clock, batches)
        for batch in batches:
            for rows in batch.values():
                self.generator.shuffle(rows)
        if self.nothing_late:
            batches += self.closing(clock)
        return DrawnRows(tuple(batches), histories, self.nothing_late)

    def schedule(self, count: int) -> tuple[list[dict[str, int]], list[list[str]]]:
        """Draw the clock rows of each batch by input, and the inputs with new data in each batch."""
        now_us, clock, open_ = START_US + 15 * SECOND_US, [], []
        first, last = self.distances_us[0], self.distances_us[-1]
        for _ in range(count):
            steps = (0, 1, MS, *self.distances_us, *self.distances_us, first + MS, 2 * last, 5 * SECOND_US)
            now_us += self.choice(steps)
            names = self.query.inputs
            if len(names) > 1 and self.generator.random() < self.silence:
                silent = self.generator.sample(names, self.generator.randint(1, len(names) - 1))
                names = [name for name in names if name not in silent]
            clock.append({name: now_us for name in names if self.generator.random() < 0.8})
            open_.append(names)
        return clock, open_

    def edges(self, clock: Sequence[dict[str, int]], ahead_us: int = 0) -> list[int]:
        """Return the candidate times of rows in a batch (µs), at least `ahead_us` before the latest clock row."""
        reached = {time for of_inputs in clock for time in of_inputs.values()} | {START_US + 15 * SECOND_US}
        most = self.most_us
        beside = [0, 1, MS, most, most - MS, most - 1, most + 1, most + MS, self.distances_us[0] - MS]
        beside += [distance + more for distance in self.distances_us for more in (0, most)]
        found = [time - distance for time in reached for distance in beside]
        return [time for time in found if time <= max(reached) - ahead_us] if ahead_us else found

    def history(self, number: int, clock: Sequence[dict[str, int]], batches: Sequence[dict[str, list[Row]]]) -> None:
        """Draw the rows of a history, and add them to the batches."""
        generator, choice = self.generator, self.choice
        keys: list[Any] = ["a", "b", *["c"] * (generator.random() < 0.3), *[None] * (generator.random() < 0.5)]
        values = (0, 1, 2, 3, None)
        pool = [choice(self.edges(clock[: at + 1])) for at in generator.sample(range(len(clock)), min(3, len(clock)))]
        lag = 1 if self.query.without_data else 2  # lateness follows the previous micro-batch's watermark
        for at, batch in enumerate(batches):
            edges = self.edges(clock[: at + 1], self.ahead_us)
            latest = max(edges)
            late_us = max(self.edges(clock[: at + 1 - lag])) - self.least_us if at >= lag else 0
            if self.nothing_late and latest <= late_us:
                continue
            one_time = self.time(choice(edges), latest, late_us)
            for rows in batch.values():
                for _ in range(choice((0, 0, 1, 1, 2, 3))):
                    time_us = choice(pool) if generator.random() < 0.5 else choice(edges)
                    time_us = one_time if self.one_time else self.time(time_us, latest, late_us)
                    untimed = generator.random() < self.untimed
                    row = _row(number, choice(keys), None if untimed else time_us, choice(values))
                    rows += [row] * (2 if generator.random() < 0.15 else 1)

    def time(self, time_us: int, latest_us: int, late_us: int) -> int:
        """Return a time at or before the clock; if `nothing_late`, the time isn't late."""
        time_us = min(time_us, latest_us)
        if self.nothing_late and time_us <= late_us:
            return max(late_us + 1, latest_us - self.choice(self.distances_us))
        return time_us

    def closing(self, clock: Sequence[dict[str, int]]) -> list[dict[str, list[Row]]]:
        """Return batches of clock rows that close all windows: one batch for each stateful operator, and two more
        batches.
        """
        now_us = max(self.edges(clock))
        after = range(1, 3 + len(self.query.stateful))
        return [
            {name: [_row(CLOCK, "c", now_us + number * 1_000 * SECOND_US, None)] for name in self.query.inputs}
            for number in after
        ]


def _row(history: int, key: Any, time_us: int | None, value: Any) -> Row:
    return {"h": history, "k": key, "ts": time_us, "v": value}

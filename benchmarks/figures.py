"""Figures: the median of repeated runs with the least and the largest, and whether a target was reached."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import linear_regression, median
from typing import Any, Literal, NamedTuple

from streamproof.reference.core.errors import BadInput


class Target(NamedTuple):
    """What a figure is to reach.

    Attributes:
        side: On which side of the bound the figure is to lie.
        bound: The bound, in the figure's unit.
        aim: Whether it is a hope rather than a promise: a miss is reported, and isn't a failure.
    """

    side: Literal["at least", "at most", "under"]
    bound: float
    aim: bool = False

    def reached_by(self, value: float) -> bool:
        """Return whether a value reaches the target."""
        match self.side:
            case "at least":
                return value >= self.bound
            case "at most":
                return value <= self.bound
            case "under":
                return value < self.bound


@dataclass(frozen=True)
class Figure:
    """One measured quantity.

    Attributes:
        name: What was measured.
        unit: The unit of the numbers: `seconds`, `histories/s`, `times`, `GiB`, …
        median: The median of the runs; of a ratio, the ratio of the two medians.
        least: The smallest run; of a ratio, the smallest that a run on each side could give.
        largest: The largest run, likewise.
        runs: How many runs there were; of a ratio, of the side with fewer.
        sizes: What each run worked on.
        target: What it is to reach, if anything.
    """

    name: str
    unit: str
    median: float
    least: float
    largest: float
    runs: int
    sizes: str
    target: Target | None = None

    @property
    def reached(self) -> bool | None:
        """Return whether the median reaches the target; None without a target."""
        return None if self.target is None else self.target.reached_by(self.median)

    @property
    def missed(self) -> bool:
        """Return whether a target that is a promise was missed."""
        return self.reached is False and self.target is not None and not self.target.aim


def figure(name: str, unit: str, runs: Sequence[float], sizes: str, target: Target | None = None) -> Figure:
    """Make a figure of one or more runs.

    Args:
        name: What was measured.
        unit: The unit of the numbers.
        runs: What each run measured.
        sizes: What each run worked on.
        target: What it is to reach, if anything.
    """
    return Figure(name, unit, median(runs), min(runs), max(runs), len(runs), sizes, target)


def ratio(name: str, above: Figure, below: Figure, target: Target | None = None) -> Figure:
    """Divide one figure by another that was measured in the same run.

    Args:
        name: What the ratio is of.
        above: The dividend.
        below: The divisor.
        target: What it is to reach, if anything.
    """
    return Figure(
        name,
        "times",
        above.median / below.median,
        above.least / below.largest,
        above.largest / below.least,
        min(above.runs, below.runs),
        above.sizes if above.sizes == below.sizes else f"{above.sizes} / {below.sizes}",
        target,
    )


def growth_exponent(points: Sequence[tuple[int, float]]) -> float:
    """Return the least-squares slope of log seconds over log rows, of points `(rows, seconds)`: 1 is linear."""
    return linear_regression([math.log(rows) for rows, _ in points], [math.log(taken) for _, taken in points]).slope


def seconds(call: Callable[[], Any]) -> float:
    """Return the wall time (s) of a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@dataclass(frozen=True)
class Setting:
    """How a benchmark is to run.

    Attributes:
        small: Divide the sizes, only to see that everything runs.
        rounds: How often each thing is measured; each benchmark's own number by default.
        progress: Called with each step.
        only: The operator to measure, such as `session_windows`; all by default.
        on: The witness to measure, `reference` or `spark`, of a benchmark that has several.
        histories: How many histories to compare at least; the benchmark's own number by default.
        seed: What the first round is drawn from.
        records: How many records to run at least; the benchmark's own number by default.
    """

    small: bool
    rounds: int | None
    progress: Callable[[str], None]
    only: str | None = None
    on: str | None = None
    histories: int | None = None
    seed: int = 1
    records: int | None = None

    def size(self, full: int, small: int) -> int:
        """Choose a size."""
        return small if self.small else full

    def times(self, full: int = 3) -> int:
        """How many rounds to measure; a small run takes one."""
        return self.rounds or (1 if self.small else full)

    def among(self, operators: Iterable[str]) -> list[str]:
        """Return the operators to measure.

        Raises:
            BadInput: The one that was asked for isn't one of them.
        """
        known = list(operators)
        if self.only is None:
            return known
        if self.only not in known:
            raise BadInput(f"unknown operator {self.only!r}: use one of {', '.join(known)}")
        return [self.only]

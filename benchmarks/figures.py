"""Figures: the median, minimum and maximum of repeated runs, and whether a target was reached."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import linear_regression, median
from typing import Any, Literal, NamedTuple

from streamproof.reference.core.errors import BadInput


class Target(NamedTuple):
    """A figure's target.

    Attributes:
        side: The direction of the target: at least or at most the bound.
        bound: The bound, in the figure's unit.
        aim: Whether the target is only a goal, so that a miss is reported but isn't a failure.
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
        median: The median of the runs; for a ratio, the ratio of the two medians.
        least: The smallest run; for a ratio, the smallest ratio of two runs.
        largest: The largest run; for a ratio, the largest ratio of two runs.
        runs: The number of runs; for a ratio, the smaller number of its two figures.
        sizes: The amount of work in each run, as text.
        target: The target of the figure, if any.
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
        """Return whether the median reaches the target, or None without a target."""
        return None if self.target is None else self.target.reached_by(self.median)

    @property
    def missed(self) -> bool:
        """Return whether a target that isn't only a goal was missed."""
        return self.reached is False and self.target is not None and not self.target.aim


def figure(name: str, unit: str, runs: Sequence[float], sizes: str, target: Target | None = None) -> Figure:
    """Return the figure of one or more runs: their median, minimum and maximum.

    Args:
        name: What was measured.
        unit: The unit of the numbers.
        runs: The measurement of each run.
        sizes: The amount of work in each run, as text.
        target: The target of the figure, if any.
    """
    return Figure(name, unit, median(runs), min(runs), max(runs), len(runs), sizes, target)


def ratio(name: str, above: Figure, below: Figure, target: Target | None = None) -> Figure:
    """Divide one figure by another from the same run.

    Args:
        name: The name of the ratio.
        above: The dividend.
        below: The divisor.
        target: The target of the figure, if any.
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
    """The settings of a benchmark.

    Attributes:
        small: Whether to reduce the sizes, only to check that everything runs.
        rounds: The number of measurements, or None for the benchmark's default.
        progress: A function that receives each step's name.
        only: The operator to measure, such as `session_windows`, or None for all operators.
        on: The witness to measure, `reference` or `spark`, for a benchmark with several.
        histories: The smallest number of histories to compare, or None for the benchmark's default.
        seed: The seed of the first round.
        records: The smallest number of records, or None for the benchmark's default.
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
        """Return the number of rounds to measure; a small run has one."""
        return self.rounds or (1 if self.small else full)

    def among(self, operators: Iterable[str]) -> list[str]:
        """Return the operators to measure.

        Raises:
            BadInput: The benchmark doesn't measure the requested operator.
        """
        known = list(operators)
        if self.only is None:
            return known
        if self.only not in known:
            raise BadInput(f"unknown operator {self.only!r}: use one of {', '.join(known)}")
        return [self.only]

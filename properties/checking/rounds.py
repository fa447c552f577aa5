"""The rounds of a check: the first round is the whole check; further rounds use other seeds until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ..generators.draws import HistorySettings
from .report import Report

RECORDS = HistorySettings.arrivals
"""The number of records in a history of the first round."""
MORE_RECORDS, MOST_RECORDS = 5, 60
"""The number of records by which a round's histories exceed those of the round before, and the largest number of
records.
"""


class TimeIsUp(Exception):
    """Raised to end a further round before its next step, because the time is up."""


@dataclass
class Work:
    """The progress of a round for each operator, in steps: a step is a sample's run, or a sample's share of a pool's
    run.

    Attributes:
        shown: The callback that receives an operator, the number of its finished steps and of all its steps, after each
            change.
        steps: The number of planned steps by operator.
        done: The number of finished steps by operator.
    """

    shown: Callable[[str, float, float], None] = lambda operator, done, steps: None
    steps: Mapping[str, float] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)

    def expect(self, steps: Mapping[str, float]) -> None:
        """Record the number of planned steps of each operator in a round."""
        self.steps, self.done = steps, {}
        for operator in steps:
            self.did(operator, 0)

    def did(self, operator: str, steps: float = 1) -> None:
        """Add a step of an operator, or a share of a step, to the finished steps."""
        self.done[operator] = self.done.get(operator, 0) + steps
        self.shown(operator, self.done[operator], self.steps.get(operator, 0))


@dataclass(frozen=True)
class Round:
    """A round of a check.

    Attributes:
        number: The number of the round, from 0.
        is_over: The function that returns whether the time is up; a further round then ends, but the first round always
            finishes.
        work: The counter of finished steps.
        found: The callback that receives a report after each new counterexample, and again after its recheck and
            shrinking.
    """

    number: int = 0
    is_over: Callable[[], bool] = lambda: False
    work: Work = field(default_factory=Work)
    found: Callable[[Report], None] = lambda report: None

    @property
    def records(self) -> int:
        """The number of records in each history of the round, without null keys and clock advances."""
        return min(RECORDS + MORE_RECORDS * self.number, MOST_RECORDS)

    @property
    def is_first(self) -> bool:
        """Whether this is the first round, which sets the coverage goals and replays the saved counterexamples."""
        return self.number == 0

    def go_on(self) -> None:
        """End a further round if the time is up.

        Raises:
            TimeIsUp: The time is up.
        """
        if not self.is_first and self.is_over():
            raise TimeIsUp


@dataclass
class Budget:
    """The time limit of a check, and the rounds that fit into it.

    Attributes:
        minutes: The time limit (min); None: a single round of any duration.
        clock: The function that returns the current time (s).
    """

    minutes: float | None = None
    clock: Callable[[], float] = field(default=time.monotonic)

    def __post_init__(self) -> None:
        self._started = self.clock()

    @property
    def elapsed(self) -> float:
        """The time since the check's start (s)."""
        return self.clock() - self._started

    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.minutes is None or self.elapsed >= 60 * self.minutes

    def rounds(
        self, work: Work | None = None, found: Callable[[Report], None] = lambda report: None
    ) -> Iterator[Round]:
        """Yield rounds until the time is up, at least one round; the rounds share `work` and `found`."""
        work = work or Work()
        number = 0
        while number == 0 or not self.is_over():
            yield Round(number, self.is_over, work, found)
            number += 1

"""TLC's output during a run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..results import ActionCounts, Phase, Progress
from .messages import MessageReader, TlcMessage

KEPT_LINES = 500
"""The largest number of lines outside messages that are kept from the start, and from the end."""

SIMULATES, COMPUTES_INITIAL = 2188, 2189
COMPUTED_INITIAL = {2190, 2191, 2269}
CHECKS_TEMPORAL, CHECKED_TEMPORAL = 2192, 2267
COUNTS, DEPTH, SIMULATED = 2199, 2194, 2210
REPORTS, REPORTS_SIMULATION = {2200, 2206}, 2209
COVERAGE_START, COVERAGE_OF_EXPRESSION, COVERAGE_OF_ACTION = 2201, {2221, 2775, 2774}, {2772, 2773}

_COUNTS = re.compile(
    r"([\d,]+) states generated(?: \([^)]*\))?, (-?[\d,]+) distinct states found(?: \([^)]*\))?, (-?[\d,]+) states left"
)
_REPORTED_DEPTH = re.compile(r"Progress\((\d+)\)")
_DEPTH = re.compile(r"search is (\d+)")
_SIMULATED = re.compile(r"([\d,]+) states (?:generated|checked)|states generated: ([\d,]+)")
_COVERED = re.compile(r"<(\S+) line .*>: (\d+)(?::(\d+))?$")


class TlcOutput:
    """TLC's output so far: its messages, the lines outside of messages, and the counts in both."""

    def __init__(self, began: float) -> None:
        self.messages: list[TlcMessage] = []
        self.coverage: dict[str, ActionCounts] = {}
        self.progress = Progress("parsing", 0.0)
        self.exit_code = 0
        self.standard_error = ""
        self._first: list[str] = []
        self._last: list[str] = []
        self._began = began
        self._searching: Phase = "searching"

    @property
    def seconds(self) -> float:
        """The time since the run began."""
        return time.monotonic() - self._began

    @property
    def lines(self) -> list[str]:
        """The lines that belong to no message; of too many lines, only the first and the last ones."""
        return self._first + self._last

    def add_line(self, line: str) -> None:
        """Store a line that belongs to no message."""
        if len(self._first) < KEPT_LINES:
            self._first.append(line)
        else:
            self._last.append(line)
            if len(self._last) > 2 * KEPT_LINES:
                del self._last[:KEPT_LINES]

    def add(self, message: TlcMessage) -> bool:
        """Add a message; return whether it reports progress."""
        code, text, phase = message.code, message.text, self.progress.phase
        if code in COVERAGE_OF_EXPRESSION:
            return False  # many, and unused
        if code in COVERAGE_OF_ACTION:
            self._cover(text)
            return False
        if code == COVERAGE_START:
            self.coverage = {}  # a report counts from the run's start, so it replaces earlier reports
            return False
        if code == SIMULATES:
            self._searching = "simulating"
        if code == COMPUTES_INITIAL:
            phase = "initial states"
        elif code in COMPUTED_INITIAL or code == CHECKED_TEMPORAL:
            phase = self._searching
        elif code == CHECKS_TEMPORAL:
            phase = "temporal properties"
        now = self.progress
        counts = _COUNTS.search(text) if code == COUNTS or code in REPORTS else None
        if counts is not None:
            generated, distinct, left = (max(0, int(number.replace(",", ""))) for number in counts.groups())
            now = replace(now, generated=generated, distinct=distinct, left_on_queue=left)
        if code in (REPORTS_SIMULATION, SIMULATED) and (simulated := _SIMULATED.search(text)):
            now = replace(now, generated=int((simulated[1] or simulated[2]).replace(",", "")))
        if code in REPORTS and (reported := _REPORTED_DEPTH.search(text)):
            now = replace(now, depth=int(reported[1]))
        if code == DEPTH and (depth := _DEPTH.search(text)):
            now = replace(now, depth=int(depth[1]))
        if code not in REPORTS and code != REPORTS_SIMULATION:
            self.messages.append(message)
        moved = phase != now.phase or now is not self.progress or code in REPORTS or code == REPORTS_SIMULATION
        if moved:
            self.progress = replace(now, phase=phase, seconds=self.seconds)
        return moved

    def ended(self, exit_code: int, standard_error: str) -> None:
        """Record how the process ended."""
        self.exit_code = exit_code
        self.standard_error = standard_error

    def tail(self, lines: int = 20) -> str:
        """Return the end of the output, for an error without other information."""
        printed = [line for message in self.messages[-5:] if message.severity for line in message.text.split("\n")]
        return "\n".join([*printed, *self.lines[-lines:], *self.standard_error.splitlines()[-lines:]][-lines:]).strip()

    def _cover(self, text: str) -> None:
        covered = _COVERED.match(text.strip())
        if covered is not None:
            # Some versions print only one number for an initial predicate.
            distinct, taken = int(covered[2]), int(covered[3] or covered[2])
            before = self.coverage.get(covered[1], ActionCounts(0, 0))
            self.coverage[covered[1]] = ActionCounts(before.distinct + distinct, before.taken + taken)


def listen(output: TlcOutput, lines: Iterable[str], progress: Callable[[Progress], None] | None) -> None:
    """Process the lines of a run as they arrive.

    Args:
        output: The output that collects the lines.
        lines: The lines.
        progress: A function that receives each progress report of TLC.
    """
    reader = MessageReader()
    for line in lines:
        said = reader.feed(line)
        if isinstance(said, str):
            output.add_line(said)
        elif said is not None and output.add(said) and progress is not None:
            progress(output.progress)
    for message in reader.rest():
        output.add(message)

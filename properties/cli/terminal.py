"""The output and the end of all commands: they print results on stdout and messages on stderr, and set the exit
code.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from ..system.progress import telling
from ..system.visible import visible

EXITS = {"conforms": 0, "violated": 1, "inconclusive": 2}
COULD_NOT_RUN = 3
STYLES = {"conforms": "green", "violated": "bold red", "inconclusive": "yellow"}


class _Console(Console):
    """A console that shows every string, and every cell of a table, without control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string in Rich's form, with invisible characters escaped, except newlines."""
        return super().render_str(visible(text, lines=True), **options)


_to_terminal = sys.stdout is not None and sys.stdout.isatty()
results = _Console(width=None if _to_terminal else 140, highlight=False, emoji=False)
messages = _Console(stderr=True, highlight=False, emoji=False)


@dataclass(frozen=True)
class StepDisplay:
    """Shows steps on stderr: on a terminal in a fixed place, otherwise with a line for each step.

    Attributes:
        bar: The table on a terminal: a row for the total, described by the current step, and a row for each separately
            counted part.
        parts: The row of each part, by the part's name.
    """

    bar: Progress | None
    parts: dict[str, TaskID] = field(default_factory=dict)

    def __call__(self, step: str) -> None:
        """Show a step that is about to start."""
        if self.bar is None:
            messages.out(step)
        else:
            self.bar.update(self.bar.task_ids[0], description=visible(step))

    def count(self, done: float, steps: float, part: str | None = None) -> None:
        """Show the numbers of finished steps and of all steps, in total or for a part; without a terminal, show
        nothing.
        """
        if self.bar is None:
            return
        row = self.bar.task_ids[0]
        if part is not None:
            row = self.parts[part] if part in self.parts else self.bar.add_task(f"  {part}")
            self.parts[part] = row
        self.bar.update(row, completed=done, total=steps)

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the steps while results are printed."""
        if self.bar is not None:
            self.bar.stop()
        try:
            yield
        finally:
            if self.bar is not None:
                self.bar.start()


def titled_table(title: str, *columns: str) -> Table:
    """Return an empty table with its title above its left edge."""
    return Table(*columns, title=title, title_justify="left")


def print_divergences(divergences: Counter[str]) -> None:
    """Print the number of histories whose difference is explained by named divergences of Kafka Streams, if any."""
    if divergences:
        named = ", ".join(f"{name} {count:,}" for name, count in divergences.most_common())
        results.print(f"Named divergences of Kafka Streams, in how many histories: {named}.", markup=False)


@contextlib.contextmanager
def logged_by(show: StepDisplay) -> Iterator[None]:
    """Show the steps of a check; without a terminal, print a line every ten seconds."""
    if show.bar is None:
        messages.file = sys.stderr  # the present stderr, because a script under test may replace it
        try:
            with telling(show):
                yield
        finally:
            messages.file = None  # type: ignore[assignment]
        return
    log, handler = logging.getLogger("streamproof"), logging.Handler()
    handler.emit = lambda record: show(record.getMessage())  # type: ignore[method-assign]
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


@contextlib.contextmanager
def steps(is_counted: bool = False) -> Iterator[StepDisplay]:
    """Show the steps of a block; at the end, remove the progress display.

    Args:
        is_counted: Whether the number of steps is known, so that a bar shows the finished share and the remaining time.
    """
    if not messages.is_terminal:
        yield StepDisplay(None)
        return
    says = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True))
    counted = (BarColumn(20), TaskProgressColumn(), TimeElapsedColumn(), "left", TimeRemainingColumn())
    with Progress(
        SpinnerColumn(),
        *((says, *counted) if is_counted else (says, TimeElapsedColumn())),
        console=messages,
        transient=True,
        expand=is_counted,
        redirect_stdout=False,  # stdout is only for results
        speed_estimate_period=600,  # a long period, because steps take from 0.1 to 30 s
    ) as bar:
        bar.add_task("starting", total=None)
        yield StepDisplay(bar)

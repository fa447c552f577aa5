"""The output and the end of all commands: results on stdout, messages on stderr, and the exit codes."""

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

from ..system.visible import visible

EXITS = {"conforms": 0, "violated": 1, "inconclusive": 2}
COULD_NOT_RUN = 3
STYLES = {"conforms": "green", "violated": "bold red", "inconclusive": "yellow"}


class _Console(Console):
    """A console on which every string, and every cell of a table, is shown without control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as Rich shows it, with what can't be seen escaped; newlines are the text's own."""
        return super().render_str(visible(text, lines=True), **options)


_to_terminal = sys.stdout is not None and sys.stdout.isatty()
results = _Console(width=None if _to_terminal else 140, highlight=False, emoji=False)
messages = _Console(stderr=True, highlight=False, emoji=False)


@dataclass(frozen=True)
class Steps:
    """Shows on stderr what is being done: on a terminal in one place, a line for each step elsewhere.

    Attributes:
        bar: The table on a terminal: a row for all, whose description is the step, and rows for parts that are counted.
        parts: By the name of a part: its row.
    """

    bar: Progress | None
    parts: dict[str, TaskID] = field(default_factory=dict)

    def __call__(self, step: str) -> None:
        """Show a step, before it starts."""
        if self.bar is None:
            messages.out(step)
        else:
            self.bar.update(self.bar.task_ids[0], description=visible(step))

    def count(self, done: float, steps: float, part: str | None = None) -> None:
        """Show how many steps are done of how many, of all or of a part; elsewhere than on a terminal nothing."""
        if self.bar is None:
            return
        row = self.bar.task_ids[0]
        if part is not None:
            row = self.parts[part] if part in self.parts else self.bar.add_task(f"  {part}")
            self.parts[part] = row
        self.bar.update(row, completed=done, total=steps)

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Make room for results that are printed in the midst of it."""
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
    """Print in how many histories named divergences of Kafka Streams explain a difference; without any nothing."""
    if divergences:
        named = ", ".join(f"{name} {count:,}" for name, count in divergences.most_common())
        results.print(f"Named divergences of Kafka Streams, in how many histories: {named}.", markup=False)


@contextlib.contextmanager
def logged_by(show: Steps) -> Iterator[None]:
    """Within it, show as a step what a check says of its progress."""
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
def steps(is_counted: bool = False) -> Iterator[Steps]:
    """Show the steps of a block; a spinner is gone after it.

    Args:
        is_counted: Whether it is said how many steps there are: then a bar shows the share that is done, and how long
            the others will take.
    """
    if not messages.is_terminal:
        yield Steps(None)
        return
    says = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True))
    counted = (BarColumn(20), TaskProgressColumn(), TimeElapsedColumn(), "left", TimeRemainingColumn())
    with Progress(
        SpinnerColumn(),
        *((says, *counted) if is_counted else (says, TimeElapsedColumn())),
        console=messages,
        transient=True,
        expand=is_counted,
        redirect_stdout=False,  # what is printed to stdout meanwhile is a result, and stays there
        speed_estimate_period=600,  # one step takes a tenth of a second, another one half a minute
    ) as bar:
        bar.add_task("starting", total=None)
        yield Steps(bar)

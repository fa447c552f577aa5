"""What all commands say and how they end: results on stdout, messages on stderr, and the exit codes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

EXITS = {"conforms": 0, "violated": 1, "inconclusive": 2}
COULD_NOT_RUN = 3
STYLES = {"conforms": "green", "violated": "bold red", "inconclusive": "yellow"}

results = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
messages = Console(stderr=True, highlight=False)


@contextlib.contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Show the present step: a spinner on a terminal, a line each elsewhere."""
    if not messages.is_terminal:
        yield lambda step: messages.print(step, markup=False, soft_wrap=True)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda step: progress.update(task, description=step)

"""What all commands say and how they end: results on stdout, messages on stderr, and the exit codes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
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


@contextlib.contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Show the present step: a spinner on a terminal, a line each elsewhere."""
    if not messages.is_terminal:
        yield lambda step: messages.print(step, markup=False, soft_wrap=True)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda step: progress.update(task, description=visible(step))

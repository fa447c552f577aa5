"""What all commands say and how they end: results on stdout, messages on stderr, and the exit codes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
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


class Steps:
    """Shows the present step on stderr: a spinner on a terminal, a line each elsewhere."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        if messages.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            # What is printed to stdout meanwhile is a result, and stays there.
            self._bar = Progress(*columns, console=messages, transient=True, redirect_stdout=False)
            self._task = self._bar.add_task("starting", total=None)

    def __call__(self, step: str) -> None:
        """Show a step, before it starts."""
        if self._bar is None:
            messages.print(step, markup=False, soft_wrap=True)
        else:
            self._bar.update(self._task, description=visible(step))

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the steps of a block; a spinner is gone after it."""
        with self._bar or contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Make room for results that are printed in the midst of it."""
        if self._bar is None:
            yield
            return
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()


@contextlib.contextmanager
def steps() -> Iterator[Steps]:
    """Show the present step; as `Steps`."""
    shown = Steps()
    with shown.shown():
        yield shown

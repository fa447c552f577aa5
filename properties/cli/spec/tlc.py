"""How the commands of `spec` run TLC: with how much memory, for how long, and with what shown meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from ..terminal import EXITS, STYLES, messages, results

if TYPE_CHECKING:
    from ....specs.pytla import Progress, Tools

from .models import ChosenModel

_QUIET_SECONDS = 30
"""How often a model's progress is printed where there is no terminal."""


def with_heap(tools: Tools, memory: int | None) -> Tools:
    """Let TLC have a heap of so many MiB, if that is given."""
    return tools if memory is None else tools._replace(options=(*tools.options, f"-Xmx{memory}m"))


@contextmanager
def inconclusive_out_of_time(one: ChosenModel) -> Iterator[None]:
    """End the command as inconclusive where TLC's time is up."""
    from ....specs.pytla import TimedOut

    try:
        yield
    except TimedOut as unfinished:
        why = escape(f"{one.name}: {unfinished}")
        results.print(f"[{STYLES['inconclusive']}]inconclusive[/] {why}", soft_wrap=True)
        raise typer.Exit(EXITS["inconclusive"]) from None


def reporter(name: str, progress: Callable[[str], None]) -> Callable[[Progress], None]:
    """Return what reports how far TLC is, for a model of that name."""
    reported = 0.0
    if messages.is_terminal:
        progress(name)

    def report(now: Progress) -> None:
        nonlocal reported
        if messages.is_terminal or now.seconds - reported >= _QUIET_SECONDS:
            reported = now.seconds
            progress(
                f"{name}: {now.phase}, {now.distinct:,} states, {now.left_on_queue:,} of them to be searched, "
                f"depth {now.depth}"
            )

    return report

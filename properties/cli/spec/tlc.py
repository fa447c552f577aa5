"""Run TLC for the commands of `spec`, with a heap size, a time limit and progress messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from ..terminal import EXITS, STYLES, messages, results

if TYPE_CHECKING:
    from ....specs.pytla import Progress, Tools

_QUIET_SECONDS = 30
"""The interval (s) between a model's progress lines if stderr isn't a terminal."""


def tools_with(memory: int | None) -> Tools:
    """Return Java and TLC, with a heap of `memory` MiB, if given.

    Raises:
        MissingTool: Java or TLC isn't on this machine; the message explains how to install it.
    """
    from ....specs.checking import find_tools

    tools = find_tools()
    return tools if memory is None else tools._replace(options=(*tools.options, f"-Xmx{memory}m"))


@contextmanager
def asking_tlc(name: str) -> Iterator[None]:
    """Convert TLC's errors to messages, and end the command as inconclusive if TLC reaches the time limit.

    Raises:
        MissingTool: The file tla2tools.jar is missing.
        StreamproofError: TLC fails for another reason.
    """
    from ....specs.checking import tlc_errors
    from ....specs.pytla import TimedOut

    with tlc_errors():
        try:
            yield
        except TimedOut as unfinished:
            why = escape(f"{name}: {unfinished}")
            results.print(f"[{STYLES['inconclusive']}]inconclusive[/] {why}", soft_wrap=True)
            raise typer.Exit(EXITS["inconclusive"]) from None


def reporter(name: str, progress: Callable[[str], None]) -> Callable[[Progress], None]:
    """Return a function that reports TLC's progress on the named model."""
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

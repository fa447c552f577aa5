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

_QUIET_SECONDS = 30
"""How often a model's progress is printed where there is no terminal."""


def tools_with(memory: int | None) -> Tools:
    """Return Java and TLC, which has a heap of so many MiB, if that is given.

    Raises:
        MissingTool: One of them isn't on this machine; the message says how to get it.
    """
    from ....specs.checking import find_tools

    tools = find_tools()
    return tools if memory is None else tools._replace(options=(*tools.options, f"-Xmx{memory}m"))


@contextmanager
def asking_tlc(name: str) -> Iterator[None]:
    """Turn what TLC can't do into a message; end the command as inconclusive where its time for a model is up.

    Raises:
        MissingTool: There is no tla2tools.jar.
        StreamproofError: Anything else that keeps TLC from an answer.
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
    """Make the function that reports TLC's progress on a model of that name."""
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

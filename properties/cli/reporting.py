"""The option `--report`, which writes a preliminary report before the run, and the full report at any end."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ...reference.core.errors import BadInput, StreamproofError
from ..system import signals
from ..system.standard_streams import output_alone
from .terminal import messages, results

if TYPE_CHECKING:
    from ..report.content import Content

RUNNING = "the command is still running, or was killed"
"""The reason in a preliminary report."""
GITHUB = ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS")


@contextmanager
def reporting(folder: Path | None, content: Callable[[str], Content], *, as_json: bool = False) -> Iterator[None]:
    """Write a report of the checks in a block, and on GitHub a summary and annotations.

    The function also writes the report before the block, so that an unwritable folder is refused at once, and a killed
    process leaves a preliminary report. If the block fails or is interrupted, the report lists the missing parts.

    Args:
        folder: The folder (None: no report).
        content: Returns the report so far; its argument is the reason of an early end, or an empty text.
        as_json: Whether to print the report as JSON at the end, and to print nothing else on standard output.

    Raises:
        BadInput: The folder can't be written.
    """
    if folder is not None:
        from ..report.writing import require_folder, write_content

        try:
            require_folder(folder)
            write_content(folder, content(RUNNING))
        except BadInput as error:
            raise BadInput(f"--report: {error}") from None
    with output_alone() if as_json else nullcontext() as print_json:
        try:
            yield
        except BaseException as error:
            try:
                _write(folder, content, _why(error), print_json)
            except StreamproofError as second:  # print this error, and raise the first
                messages.out(f"error: {second.message}", style="red")
            raise
        _write(folder, content, "", print_json)


def _write(
    folder: Path | None, content: Callable[[str], Content], ended: str, print_json: Callable[[str], None] | None
) -> None:
    on_github = any(os.environ.get(name) for name in GITHUB)
    if folder is None and not on_github and print_json is None:
        return
    said = content(ended)
    if print_json is not None:
        from ..report.writing import to_json

        print_json(to_json(said))
    if on_github:
        from ..report.github import announce

        try:
            for line in announce(said):
                results.out(line)
        except OSError as error:
            text = f"GITHUB_STEP_SUMMARY: can't be written ({error.strerror}): there is no summary"
            messages.print(text, style="yellow", markup=False)
    if folder is not None:
        from ..report.writing import write_content

        page = write_content(folder, said)
        messages.out(f"report: {page}")


def _why(error: BaseException) -> str:
    """Return the reason of a block's early end, in words."""
    if isinstance(error, KeyboardInterrupt) or signals.received():
        name = signals.received()
        return f"interrupted by {name}" if name else "interrupted"
    if isinstance(error, StreamproofError):
        return error.message
    return f"{type(error).__name__}: {error}".splitlines()[0]


def again(command: str, names: Sequence[str], **options: object) -> str:
    """Return the command line that repeats the check; options that the user didn't give are left out."""
    words = ["streamproof", *command.split(), *names]
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            if each is not None:
                words += [f"--{name.replace('_', '-')}", *([] if each is True else [str(each)])]
    return shlex.join(words)

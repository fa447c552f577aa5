"""Prepare standard output and error for use, even if they are closed, full, or a pipe without a reader.

It is an error if a result can't be written to standard output. A message that can't be written to standard error is
lost without an error.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ...reference.core.errors import StreamproofError

if TYPE_CHECKING:
    from typing_extensions import Buffer


class OutputLost(StreamproofError):
    """Standard output can't be written. `closed` means that its reader has ended, as `head` does."""

    def __init__(self, message: str, closed: bool = False) -> None:
        super().__init__(message)
        self.closed = closed


def prepare_streams() -> None:
    """Make standard output and error accept any text, and raise errors that can be handled.

    Raises:
        OutputLost: Standard output is closed, so no result could be reported.
    """
    has_output, has_error = sys.stdout is not None, sys.stderr is not None
    _open_descriptors()
    if not has_error:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    _prepare("stdout", _Output)
    _prepare("stderr", _Stream)
    if not has_output:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        raise OutputLost(
            "standard output is closed, but results are written there: open it, or redirect it to /dev/null"
        )


@contextmanager
def output_alone() -> Iterator[Callable[[str], None]]:
    """Reserve standard output for one text: all other output, also of started processes, goes to standard error.

    Yields: A function that takes the text. The text is written at the end of the block; after several calls, only the
    last text.
    """
    output, texts, kept = sys.stdout, [""], None
    output.flush()
    with suppress(OSError, ValueError):  # it may have no file descriptor
        descriptor, messages = output.fileno(), sys.stderr.fileno()
        kept = os.dup(descriptor)
        os.dup2(messages, descriptor)
    sys.stdout = sys.stderr
    try:
        yield texts.append
    finally:
        sys.stderr.flush()
        sys.stdout = output
        if kept is not None:
            os.dup2(kept, output.fileno())
            os.close(kept)
        output.write(texts[-1])
        output.flush()


def _open_descriptors() -> None:
    """Occupy the first three descriptors; otherwise the next opened file would replace a closed stream."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened == number:
                os.set_inheritable(number, True)
            else:
                os.dup2(opened, number)
                os.close(opened)


def _prepare(name: str, kind: type[_Stream]) -> None:
    stream = getattr(sys, name)
    if not isinstance(stream, io.TextIOWrapper):
        return
    if stream is not getattr(sys, f"__{name}__"):  # a program that calls `main` has replaced it
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        return
    by_line = stream.isatty() or name == "stderr"
    written = io.BufferedWriter(kind(stream.fileno()))
    setattr(sys, name, io.TextIOWrapper(written, "utf-8", "backslashreplace", line_buffering=by_line))


class _Stream(io.RawIOBase):
    """A descriptor to write to; text that can't be written is lost."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.lost = descriptor, False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor

    def isatty(self) -> bool:
        return os.isatty(self.descriptor)

    def write(self, data: Buffer, /) -> int:
        size = memoryview(data).nbytes
        if not self.lost:
            try:
                return os.write(self.descriptor, data)
            except OSError as error:
                self.lost = True  # don't try to write the text again
                self.failed(error)
        return size

    def failed(self, error: OSError) -> None:
        """Handle the first write that fails."""


class _Output(_Stream):
    def failed(self, error: OSError) -> None:
        if error.errno == errno.EPIPE:
            raise OutputLost(
                "the output was closed before all of it was written; counterexamples are on disk", closed=True
            )
        raise OutputLost(
            f"standard output can't be written ({error.strerror}): redirect it to a disk with free space; "
            "counterexamples are on disk"
        )

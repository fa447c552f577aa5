"""What a user can get wrong, told as one sentence that names the thing and the remedy."""

from __future__ import annotations


class StreamproofError(Exception):
    """Something that keeps streamproof from running; the command line prints it and exits 3.

    Attributes:
        message: What went wrong, in one line.
        details: Lines that belong to it, such as a counterexample that found no room on disk; empty for none.
    """

    def __init__(self, message: str = "", details: str = "") -> None:
        super().__init__(f"{message}\n{details}" if details else message)
        self.message, self.details = message, details


class BadInput(StreamproofError):
    """An input that can't be used: the message names the input, the line or column, and the remedy."""


class MissingTool(StreamproofError):
    """A tool that isn't on this machine: the message names it and the command that installs it."""

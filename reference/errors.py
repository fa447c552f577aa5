"""What a user can get wrong, told as one sentence that names the thing and the remedy."""

from __future__ import annotations


class StreamproofError(Exception):
    """Something that keeps streamproof from running; the command line prints it and exits 3."""


class BadInput(StreamproofError):
    """An input that can't be used: the message names the input, the line or column, and the remedy."""


class MissingTool(StreamproofError):
    """A tool that isn't on this machine: the message names it and the command that installs it."""

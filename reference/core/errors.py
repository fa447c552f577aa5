"""Errors that a user can fix: each message is one sentence that names the cause and the remedy."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

PUBLIC = __name__.partition(".")[0]
"""The module from which users import the errors; tracebacks show this module's name."""


class StreamproofError(Exception):
    """An error that keeps streamproof from running; the command line prints the message and exits with code 3.

    Attributes:
        message: The error, in one line.
        details: Further lines of the message, such as a counterexample that couldn't be saved on a full disk; empty by
            default.
    """

    __module__ = PUBLIC

    def __init__(self, message: str = "", details: str = "") -> None:
        super().__init__(f"{message}\n{details}" if details else message)
        self.message, self.details = message, details


class BadInput(StreamproofError):
    """An unusable input: the message names the input, the line or column, and the remedy."""

    __module__ = PUBLIC


class MissingTool(StreamproofError):
    """A required tool isn't installed: the message names the tool and the command that installs it."""

    __module__ = PUBLIC


def install_command(extra: str) -> str:
    """Return the command that installs an extra of streamproof, such as `specs`, into this interpreter."""
    return f"{shlex.quote(sys.executable)} -m pip install 'streamproof[{extra}]'"


def missing_spark(error: BaseException) -> MissingTool | None:
    """Return an error that says how to install PySpark, if `error` is a failed import of PySpark; otherwise None."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in ("pyspark", "py4j"):
        return MissingTool(f"this needs PySpark, which isn't installed: {install_command('spark')}")
    return None


@contextmanager
def needing_spark() -> Iterator[None]:
    """If PySpark can't be imported in the block, raise an error that says how to install PySpark.

    Raises:
        MissingTool: PySpark isn't installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (missing := missing_spark(error)) is not None:
            raise missing from None
        raise


def import_extra(module: str, extra: str, user: str) -> ModuleType:
    """Import a module that an extra of streamproof installs.

    Args:
        module: The module.
        extra: The extra.
        user: The feature that needs the module, for the message.

    Raises:
        MissingTool: The module isn't installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingTool(f"{user} needs {module}, which isn't installed: {install_command(extra)}") from None

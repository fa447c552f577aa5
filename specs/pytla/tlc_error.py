"""The error of every failed run of TLC, and the error for a text that isn't a value."""

from __future__ import annotations

from pathlib import Path


class TlcError(Exception):
    """A failed run: the message contains the location, the cause and the remedy.

    `file` is the user's file, `module` the TLA+ module; `line` and `column` count from 1. Unknown attributes are None.
    """

    def __init__(
        self,
        message: str,
        *,
        file: Path | None = None,
        module: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        where = "" if file is None and module is None else str(file or f"module {module}")
        if where and line is not None:
            where += f":{line}" if column is None else f":{line}:{column}"
        super().__init__(f"{where}: {message}" if where else message)
        self.file = file
        self.module = module
        self.line = line
        self.column = column


class ValueSyntaxError(TlcError, ValueError):
    """A text that isn't a TLC value: `line` and `column`, from 1, are the location in that text."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}", line=line, column=column)

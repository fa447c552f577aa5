"""TLC's messages, as the option `-tool` marks them on its standard output.

A message is between `@!@!@STARTMSG code:severity @!@!@` and `@!@!@ENDMSG code @!@!@`. Messages nest. Lines between
messages come from the parser and from the module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ERROR, BUG, WARNING, STATE = 1, 2, 3, 4
"""The severities; 0 means none."""

_START = re.compile(r"^(.*)@!@!@STARTMSG (-?\d+)(?::(\d+))? @!@!@$")
_END = re.compile(r"^@!@!@ENDMSG (-?\d+) @!@!@$")


@dataclass(frozen=True)
class TlcMessage:
    """A message: `text` contains the texts of its nested messages, and `parts` lists them."""

    code: int
    severity: int
    text: str
    parts: tuple[TlcMessage, ...] = ()

    def codes(self) -> set[int]:
        """The codes of this message and of its nested messages."""
        return {self.code}.union(*(part.codes() for part in self.parts))


@dataclass
class _Open:
    code: int
    severity: int
    lines: list[str] = field(default_factory=list)
    parts: list[TlcMessage] = field(default_factory=list)


class MessageReader:
    """Assembles messages from lines, which the caller passes to `feed` one by one."""

    def __init__(self) -> None:
        self._open: list[_Open] = []

    def feed(self, line: str) -> TlcMessage | str | None:
        """Process a line; return the message that it completes, the line if it is outside any message, or None."""
        if "@!@!@" in line:
            start = _START.match(line)
            if start is not None:
                if start[1] and self._open:
                    self._open[-1].lines.append(start[1])
                self._open.append(_Open(int(start[2]), int(start[3] or 0)))
                return None
            end = _END.match(line)
            if end is not None and self._open:
                return self._close()
        if not self._open:
            return line
        self._open[-1].lines.append(line)
        return None

    def rest(self) -> list[TlcMessage]:
        """The unfinished messages, which remain when TLC is killed; the innermost first."""
        found = []
        while self._open:
            message = self._close()
            if message is not None:
                found.append(message)
        return found

    def _close(self) -> TlcMessage | None:
        done = self._open.pop()
        message = TlcMessage(done.code, done.severity, "\n".join(done.lines).strip("\n"), tuple(done.parts))
        if not self._open:
            return message
        self._open[-1].parts.append(message)
        self._open[-1].lines.append(message.text)
        return None

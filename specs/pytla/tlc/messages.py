"""TLC's messages, as `-tool` marks them on its standard output.

A message is between `@!@!@STARTMSG code:severity @!@!@` and `@!@!@ENDMSG code @!@!@`. Messages nest, and other lines
are between them: the parser's, and the module's own output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ERROR, BUG, WARNING, STATE = 1, 2, 3, 4
"""The severities; 0 is none."""

_START = re.compile(r"^(.*)@!@!@STARTMSG (-?\d+)(?::(\d+))? @!@!@$")
_END = re.compile(r"^@!@!@ENDMSG (-?\d+) @!@!@$")


@dataclass(frozen=True)
class TlcMessage:
    """A message: its `text` has the texts of the messages within it, which `parts` has one by one."""

    code: int
    severity: int
    text: str
    parts: tuple[TlcMessage, ...] = ()

    def codes(self) -> set[int]:
        """The code of this message and of all within it."""
        return {self.code}.union(*(part.codes() for part in self.parts))


@dataclass
class _Open:
    code: int
    severity: int
    lines: list[str] = field(default_factory=list)
    parts: list[TlcMessage] = field(default_factory=list)


class MessageReader:
    """Puts messages together from lines: `feed` them one by one."""

    def __init__(self) -> None:
        self._open: list[_Open] = []

    def feed(self, line: str) -> TlcMessage | str | None:
        """Take a line without its end. Return the message that it completes, the line if it is outside any, or None."""
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
        """The messages that are begun and not ended, as they are when TLC is killed; the innermost first."""
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

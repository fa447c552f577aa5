"""Simulates the death of a process in a user's code, between two lines or between two written rows.

A dead process runs no more code. The simulation ends the function by an exception, and raises the exception again at
each call in the function's `finally` and `except` blocks. Only calls that close or roll back still run: the end of a
process closes and rolls back, too.
"""

from __future__ import annotations

import dis
import gc
import linecache
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ....system.ipynb import line_in
from ....system.visible import visible_path
from ...spark.failures import PlannedCrash, is_users

VISITS = 2
"""The number of times that a line counts: a loop can die before its first row, and between two rows."""

ENDS = frozenset({"close", "rollback", "release", "unlock", "disconnect", "shutdown", "stop", "cancel", "__exit__"})
"""Names of functions that close or release files, locks, connections and transactions, as a process's end does."""
MOST_DEATHS = 100
"""The limit on exceptions raised in a function that catches every exception."""
_UNWINDS = dis.opmap.get("PUSH_EXC_INFO", -1)
"""The opcode at the start of an `except` or `finally` block. Python leaks frames if a trace raises before this opcode.
"""
_LOOKS_S = 0.02
GENERATED = "<string>"
"""The file name of generated code, such as a named tuple's, whose lines aren't the user's."""


class Killed(BaseException):
    """Ends a running function; not an Exception, because user code may catch exceptions."""


class Death:
    """A simulated death within a function, raised by a trace of the function's code.

    Attributes:
        place: Where the function died, in words; empty: no death.
    """

    place = ""
    _again = 0

    def run(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function until its planned death.

        Raises:
            PlannedCrash: The function has died.
        """
        before, profile, hook = sys.gettrace(), sys.getprofile(), sys.unraisablehook
        sys.unraisablehook = lambda given: None if given.exc_type is Killed else hook(given)
        sys.settrace(self._called)
        try:
            self._call(function, *arguments)
        except Killed:
            pass
        finally:
            sys.settrace(before)
            sys.setprofile(profile)
            sys.unraisablehook = hook
        if self.place:  # test the death itself, because the function may catch every exception
            # SQLite connections in reference cycles would keep their database locked; a dead process closes its
            # connections.
            gc.collect()
            raise PlannedCrash

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        function(*arguments)

    def _called(self, frame: FrameType, event: str, given: Any) -> Any:
        """Return the trace of a function called within the traced function."""
        raise NotImplementedError

    def _die(self) -> NoReturn:
        """Raise `Killed`, and raise it again at each call in the user's `finally` and `except` blocks."""
        sys.setprofile(self._calls)
        raise Killed

    def _calls(self, frame: FrameType, event: str, given: Any) -> None:
        caller, name = frame.f_back, frame.f_code.co_name
        if event == "c_call":
            caller, name = frame, getattr(given, "__name__", "")
        is_own = frame.f_code.co_filename == __file__
        if event not in ("call", "c_call") or is_own or name in ENDS or caller is None:
            return
        if is_users(caller.f_code.co_filename) and self._again < MOST_DEATHS:
            self._again += 1
            # Python removes a trace or profile function that raises, so each of the two restores the other.
            while caller is not None:
                caller.f_trace = self._unwinding
                caller = caller.f_back
            sys.settrace(self._unwinding)
            raise Killed

    def _unwinding(self, frame: FrameType, event: str, given: Any) -> Any:
        """Restore the profile function, which raises instead of this trace, because a trace that raises here leaks
        frames.
        """
        sys.setprofile(self._calls)
        return self._unwinding


class Steps(Death):
    """Counts the lines that user code reaches, and may let the function die before a line.

    Attributes:
        last: The number of lines before the death (None: no death).
        reached: The number of lines reached so far; a repeated line counts at most twice.
    """

    def __init__(self, last: int | None = None) -> None:
        self.last, self.reached = last, 0
        self._visits: Counter[tuple[Any, int]] = Counter()

    def _called(self, frame: FrameType, event: str, given: Any) -> Any:
        path = frame.f_code.co_filename
        return self._at_line if is_users(path) and path != GENERATED else None

    def _at_line(self, frame: FrameType, event: str, given: Any) -> Any:
        if event != "line" or frame.f_code.co_code[frame.f_lasti] == _UNWINDS:
            return self._at_line
        at = frame.f_code, frame.f_lineno
        self._visits[at] += 1
        if self._visits[at] <= VISITS:
            if self.reached == self.last:
                self.place = f"before {line_of(frame, ' came again' * (self._visits[at] > 1))}"
                self._die()
            self.reached += 1
        return self._at_line


class LineError(Steps):
    """Raises an error once, before a line of the user's own code, which may handle the error as a lost connection."""

    def run(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function and trace its lines; the function's exceptions pass through."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            function(*arguments)
        finally:
            sys.settrace(before)

    def _die(self) -> NoReturn:
        raise ConnectionError(f"{PlannedCrash.__name__}: the connection is lost")


class Pause(LineError):
    """Waits once, before a line of the user's own code, and then lets the code continue.

    Args:
        last: The number of lines before the pause.
        marker: The file that the pause creates when it begins; the pause ends when a file with the same name and the
            ending `.go` exists.
    """

    def __init__(self, last: int, marker: Path) -> None:
        super().__init__(last)
        self.marker = marker

    def _die(self) -> None:  # type: ignore[override]
        self.marker.touch()
        while self.marker.exists() and not Path(f"{self.marker}.go").exists():
            time.sleep(_LOOKS_S)


def line_of(frame: FrameType, more: str = "") -> str:
    """Return the current line of a frame, in words, with its code."""
    path, number = frame.f_code.co_filename, frame.f_lineno
    code = linecache.getline(path, number, frame.f_globals).strip()
    shown = f": `{code}`" if code else ""
    return f"line {line_in(path, number)} of {visible_path(path)}{more}{shown}"


def dying_writer(writer: Any, batch_id: int, rows: int) -> Any:
    """Return a `foreach` writer that replaces the user's writer, and dies in a given micro-batch.

    The writer dies in each partition after a given number of rows, or at the end of a smaller partition. A writer that
    Spark refuses is returned unchanged.

    Args:
        writer: The user's function or object for `foreach`.
        batch_id: The number of the micro-batch.
        rows: The number of rows before the death.
    """
    process = getattr(writer, "process", writer)
    if not callable(process):
        return writer
    given = {name: getattr(writer, name, None) for name in ("open", "close")}
    message = PlannedCrash.__name__

    class DyingWriter:  # a nested class, because Spark sends nested classes to the workers by value
        def open(self, partition_id: int, epoch_id: int) -> bool:
            self.dies, self.done, self.dead = epoch_id == batch_id, 0, False
            return bool(given["open"](partition_id, epoch_id)) if given["open"] else True

        def process(self, row: Any) -> None:
            if self.dies and self.done == rows:
                self.die()
            process(row)
            self.done += 1

        def close(self, error: Any) -> None:
            if self.dies and self.done and not self.dead:
                self.die()
            if given["close"] and not self.dead:
                given["close"](error)

        def die(self) -> None:
            self.dead = True
            raise RuntimeError(message)

    return DyingWriter()

"""Lets a user's own code die in the middle of its work: between two of its lines, or between two rows that it writes.

A process that dies runs nothing more. Here an exception ends the work, and raises itself again at whatever the code's
`finally` and `except` blocks call, unless the call closes or rolls back, as the end of a process does.
"""

from __future__ import annotations

import dis
import gc
import linecache
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from ....system.ipynb import line_in
from ....system.visible import visible_path
from ...spark.failures import PlannedCrash, is_users

VISITS = 2
"""How often a line counts as a step: a loop can die before its first row, and between two rows."""

ENDS = frozenset({"close", "rollback", "release", "unlock", "disconnect", "shutdown", "stop", "cancel", "__exit__"})
"""The names of functions that do what the end of a process does to files, locks, connections and transactions."""
MOST_DEATHS = 100
"""How often a function that catches whatever is raised dies again."""
_UNWINDS = dis.opmap.get("PUSH_EXC_INFO", -1)
"""The instruction that begins an `except` or `finally` block: Python leaks frames where a trace raises before it."""
GENERATED = "<string>"
"""The file of code that the standard library generates, such as a named tuple's: it is no line of the user's."""


class Killed(BaseException):
    """Ends a function in the middle of its work; not an Exception, because the user's code may catch exceptions."""


class Death:
    """A death of a function in the middle of its work, which a trace of its code brings about.

    Attributes:
        place: Where it has died, in words; empty if it hasn't.
    """

    place = ""
    _again = 0

    def run(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function, and let it die.

        Raises:
            PlannedCrash: It has died.
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
        if self.place:  # the function may catch whatever is raised
            # A dead process has nothing open: SQLite's connections, for one, are in a cycle, and lock their database.
            gc.collect()
            raise PlannedCrash

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        function(*arguments)

    def _called(self, frame: FrameType, event: str, given: Any) -> Any:
        """Return the trace of a function that is called within it."""
        raise NotImplementedError

    def _die(self) -> NoReturn:
        """Die, and die again at each call of the user's code: its `finally` and `except` blocks call nothing."""
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
            # Python removes a trace and a profile that raise an exception: each puts the other back.
            while caller is not None:
                caller.f_trace = self._unwinding
                caller = caller.f_back
            sys.settrace(self._unwinding)
            raise Killed

    def _unwinding(self, frame: FrameType, event: str, given: Any) -> Any:
        """Watch calls again; a trace that raised an exception where Python unwinds would leak its frames."""
        sys.setprofile(self._calls)
        return self._unwinding


class Steps(Death):
    """Counts the lines of the user's own code that a function reaches, and may let it die after one of them.

    Attributes:
        last: The number of lines after which the function dies; None: it doesn't.
        reached: The number of lines that it has reached so far; a line that is reached often counts twice.
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


def line_of(frame: FrameType, more: str = "") -> str:
    """Return the line at which a frame is, in words, with its code."""
    path, number = frame.f_code.co_filename, frame.f_lineno
    code = linecache.getline(path, number, frame.f_globals).strip()
    shown = f": `{code}`" if code else ""
    return f"line {line_in(path, number)} of {visible_path(path)}{more}{shown}"


def dying_writer(writer: Any, batch_id: int, rows: int) -> Any:
    """Return a writer for `foreach` that stands for the user's, and dies in one micro-batch.

    It dies in each partition after so many rows, and before its end if there are fewer. The function or object may be
    one that Spark refuses; then it is returned as it is.

    Args:
        writer: The function or object that the user gives to `foreach`.
        batch_id: The number of the micro-batch.
        rows: The number of rows.
    """
    process = getattr(writer, "process", writer)
    if not callable(process):
        return writer
    given = {name: getattr(writer, name, None) for name in ("open", "close")}
    message = PlannedCrash.__name__

    class DyingWriter:  # within a function, so that it goes to the workers by value
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

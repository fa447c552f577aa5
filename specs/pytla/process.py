"""A Java process in a private folder, of which nothing is left however the run ends."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .tools import Tools, find_java

# No `finally` runs in a Python that is killed, so a watcher beside Java waits for the end of this Python, which it sees
# by the end of its input. Its outputs go nowhere, so that the end of Java is the end of the output.
_GUARDED = """\
exec 3<&0
"$@" </dev/null 3<&- &
java=$!
{ read _ ; : >"$PYTLA_FOLDER/orphaned" ; kill -9 $java ; } <&3 >/dev/null 2>&1 &
exec 3<&-
wait $java
code=$?
[ ! -e "$PYTLA_FOLDER/orphaned" ] || rm -rf "$PYTLA_FOLDER"
exit $code
"""

_CHUNK = 1 << 16


class TimeUp(Exception):
    """The deadline passed before the process ended."""


class JavaProcess:
    """A started Java: its lines as they come, then its exit code and what it wrote to standard error."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def lines(self, deadline: float | None) -> Iterator[str]:
        """Yield the lines of standard output as they come. Raises `TimeUp` at `deadline` (of `time.monotonic`)."""
        assert self._process.stdout is not None
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                left = None if deadline is None else deadline - time.monotonic()
                if (left is not None and left <= 0) or not selector.select(left):
                    raise TimeUp
                chunk = os.read(self._process.stdout.fileno(), _CHUNK)
                if not chunk:
                    break
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield line.decode("utf-8", "replace").removesuffix("\r")
        if rest:
            yield rest.decode("utf-8", "replace")

    def exit_code(self) -> int:
        """Wait for the end and return the exit code; that of a killed process is negative."""
        code = self._process.wait()
        return 128 - code if code > 128 and code - 128 in (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV) else code

    def standard_error(self) -> str:
        """What was written to standard error so far."""
        return (self._folder / "stderr").read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A folder of this run's own, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="pytla-", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "tmp").mkdir()
        yield Path(folder)


@contextlib.contextmanager
def started(tools: Tools, folder: Path, options: Sequence[str], arguments: Sequence[str]) -> Iterator[JavaProcess]:
    """Run TLC with `arguments` in `folder`; it is killed at the end, if it hasn't ended by then.

    Raises `MissingJava` where there is no such program.
    """
    command = [
        find_java(tools),
        "-XX:+UseParallelGC",  # TLC asks for a collector made for throughput
        "-XX:+ExitOnOutOfMemoryError",
        "-Dfile.encoding=UTF-8",
        f"-Djava.io.tmpdir={folder / 'tmp'}",  # TLC unpacks its modules there
        *tools.options,
        *options,
        "-cp",
        str(tools.jar.resolve()),
        "tlc2.TLC",
        *arguments,
    ]
    with open(folder / "stderr", "wb") as errors:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDED, "sh", *command],
            cwd=folder,
            env={**os.environ, "PYTLA_FOLDER": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield JavaProcess(process, folder)
    finally:
        # The whole group: Java and its watcher.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()

"""Run a Java process in a private folder; the process and the folder are removed however the run ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import FolderUnusable, LimitReached, TlcCrashed
from .tools import Tools, find_java

# A killed Python runs no `finally`. So a watcher process waits until the end of this Python closes its input.
# Discard the watcher's output, so that the output ends when Java ends.
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
LONGEST_LINE = 64 << 20
"""The largest size of a line of output (bytes)."""
_LAST_OF_ERRORS = 1 << 18
"""The largest size of standard error that is read, from its end (bytes)."""

PREFIX, OWNER = "pytla-", "owner"
"""The prefix of the names of private folders, before the process number, and the name of the lock file within."""

# Numbers above 128 that aren't signals are exit codes of TLC.
_SIGNALS = {
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS),
    *(signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE, signal.SIGALRM, signal.SIGTERM),
}


class TimeUp(Exception):
    """The deadline passed before the process ended."""


class JavaProcess:
    """A running Java process, with its output lines, its exit code and its standard error."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def lines(self, deadline: float | None) -> Iterator[str]:
        """Yield the lines of standard output as they arrive.

        Raises `TimeUp` at `deadline` (of `time.monotonic`), and `TlcCrashed` for a line that is too long.
        """
        assert self._process.stdout is not None
        rest = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                left = None if deadline is None else deadline - time.monotonic()
                if (left is not None and left <= 0) or not selector.select(left):
                    raise TimeUp
                chunk = os.read(self._process.stdout.fileno(), _CHUNK)
                if not chunk:
                    break
                rest += chunk
                if len(rest) > LONGEST_LINE:
                    raise TlcCrashed(
                        f"TLC prints a line of more than {LONGEST_LINE >> 20} MiB: remove the PrintT of that line, or "
                        "make the model's values smaller."
                    )
                if b"\n" not in chunk:
                    continue
                *whole, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in whole:
                    yield line.decode("utf-8", "replace").removesuffix("\r")
        if rest:
            yield rest.decode("utf-8", "replace")

    def exit_code(self) -> int:
        """Wait for the end and return the exit code, or the negative signal number if a signal ended the process."""
        code = self._process.wait()
        return 128 - code if code - 128 in _SIGNALS else code

    def standard_error(self) -> str:
        """Return standard error so far, or only its end if it is too long."""
        with (self._folder / "stderr").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_OF_ERRORS))
            return file.read().decode("utf-8", "replace")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder for this run, which is removed at the end. Folders of killed Pythons are removed first.

    Raises:
        FolderUnusable: The folder can't be made.
    """
    with contextlib.ExitStack() as stack:
        with usable_folder():
            _remove_left_behind(Path(tempfile.gettempdir()))
            named = tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(named))
            owner = stack.enter_context((folder / OWNER).open("wb"))
            fcntl.flock(owner, fcntl.LOCK_EX)
            (folder / "tmp").mkdir()
        yield folder


@contextlib.contextmanager
def usable_folder() -> Iterator[None]:
    """Convert an error in writing a run's files to `FolderUnusable`, with the folder and the remedy."""
    try:
        yield
    except OSError as error:
        try:
            place = tempfile.gettempdir()
        except OSError:
            place = "any of the temporary directories"
        raise FolderUnusable(
            f"TLC's files can't be written to {place} ({error.strerror}): let TMPDIR name a writable folder with free "
            "space."
        ) from None


def _remove_left_behind(parent: Path) -> None:
    """Remove the folders of dead processes, which a stopped machine or a killed watcher leaves behind."""
    for folder in parent.glob(f"{PREFIX}*-*"):
        process = folder.name.split("-")[1]
        with contextlib.suppress(OSError):  # another process is removing the folder, or another user owns it
            status = folder.lstat()
            if process.isdecimal() and stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                _remove_if_left(folder, int(process))


def _remove_if_left(folder: Path, process: int) -> None:
    try:
        os.kill(process, 0)
        return
    except ProcessLookupError:
        pass
    # A process in another container that shares the directory is invisible here, but holds the lock.
    with contextlib.suppress(FileNotFoundError), (folder / OWNER).open("rb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def started(
    tools: Tools, folder: Path, options: Sequence[str], arguments: Sequence[str], program: str = "tlc2.TLC"
) -> Iterator[JavaProcess]:
    """Run a program of the TLA+ tools, and kill it at the end if it is still running.

    Args:
        tools: The paths of Java and of tla2tools.jar.
        folder: The private folder of the run.
        options: Java's options, in addition to those of `tools`.
        arguments: The program's arguments.
        program: The program's class in the jar.

    Raises:
        MissingJava: The program isn't found on this machine.
        LimitReached: The system can't start more processes.
    """
    command = [
        find_java(tools),
        "-XX:+UseParallelGC",  # TLC warns about other garbage collectors
        "-XX:+ExitOnOutOfMemoryError",
        "-Dfile.encoding=UTF-8",
        f"-Djava.io.tmpdir={folder / 'tmp'}",  # TLC unpacks its modules into the directory java.io.tmpdir
        *tools.options,
        *options,
        "-cp",
        str(tools.jar.resolve()),
        program,
        *arguments,
    ]
    with contextlib.ExitStack() as stack:
        with usable_folder():
            errors = stack.enter_context((folder / "stderr").open("wb"))
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDED, "sh", *command],
                cwd=folder,
                env={**os.environ, "PYTLA_FOLDER": str(folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise LimitReached(
                f"no process can be started ({error.strerror}): end other processes, or raise the limit of this shell "
                "(`ulimit -a` shows it)."
            ) from None
    try:
        yield JavaProcess(process, folder)
    finally:
        # kill the whole process group: Java and its watcher
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()

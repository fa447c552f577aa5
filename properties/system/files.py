"""Files that are written completely or not at all: under a temporary name first, and renamed once complete.

The writing process locks the temporary file. The next process that writes into the folder removes the temporary files
of killed processes.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from .locks import hold, remove_unless_held

HIDDEN = ".writing-"
"""The prefix of the name of an incomplete file or folder."""
_FILE = re.compile(rf"{re.escape(HIDDEN)}\d+-[0-9a-f]{{8}}")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that replaces `path` when the block ends; readers see the old file or the new.

    Missing folders are created. If the block fails or is interrupted, for example on a full disk, its temporary file is
    removed, and `path` stays unchanged. If the process is killed, the next write into the folder removes the temporary
    file. Links are followed; pipes and devices are written directly.

    Raises:
        OSError: The file can't be written.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    sweep_files(path.parent)
    hidden = path.with_name(f"{HIDDEN}{os.getpid()}-{uuid.uuid4().hex[:8]}")
    try:
        with _held(hidden) as file:
            yield file
            file.flush()
            hidden.replace(path)  # while the file is locked, no other process removes it
    except BaseException:
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise


def _held(path: Path) -> TextIO:
    """Create and lock a file; try again if another process removes the file before the lock."""
    while True:
        file = path.open("x", encoding="utf-8")
        hold(file.fileno())
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def sweep_files(folder: Path) -> None:
    """Remove the incomplete files that killed processes left in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _FILE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                remove_unless_held(Path(entry.path))


def write_whole(path: Path, text: str) -> None:
    """Write a text file completely or not at all, as `whole_file` does.

    Raises:
        OSError: The file can't be written.
    """
    with whole_file(path) as file:
        file.write(text)

"""Files that are written whole or not at all: beside their place first, and renamed there once they are complete."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

HIDDEN = ".writing-"
"""How the name of a file begins that isn't whole yet."""


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Open a text file that takes the place of `path` when the block ends; readers see the old one or the new.

    Folders that are missing are made. Where the block fails or is interrupted, on a full disk for example, nothing of
    it is left, and what stood at `path` stands there still. A link is followed; a pipe or a device is written to.

    Raises:
        OSError: The file can't be written.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    hidden = path.with_name(f"{HIDDEN}{os.getpid()}-{uuid.uuid4().hex[:8]}")
    try:
        with hidden.open("x", encoding="utf-8") as file:
            yield file
        hidden.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file whole or not at all, as `whole_file` does.

    Raises:
        OSError: The file can't be written.
    """
    with whole_file(path) as file:
        file.write(text)

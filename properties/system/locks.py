"""Locks on files and folders: a process keeps a lock for its whole life, so an unlocked file has no living owner."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import stat
from pathlib import Path
from typing import Any

# Windows has no fcntl: there no file is locked, so no file is removed either.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None


def hold(descriptor: int, wait: bool = True) -> bool:
    """Lock an open file or folder until the last process that inherited it has ended; return whether this succeeded.

    Some file systems don't support locks: files on them can't be locked, so they are never removed.
    """
    if _fcntl is None:
        return False
    try:
        _fcntl.flock(descriptor, _fcntl.LOCK_EX if wait else _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_unless_held(path: Path, by: Path | None = None) -> None:
    """Remove a file or folder that no process has locked; do nothing if locking or removing fails.

    Args:
        path: The file or folder. Links, pipes and devices are neither followed nor removed.
        by: The file in the folder that a process locks; by default the folder itself is locked.
    """
    with contextlib.suppress(OSError):
        mode, by = path.lstat().st_mode, path if by is None else by
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            return
        held = os.open(by, os.O_NOFOLLOW | (os.O_RDONLY if by.is_dir() else os.O_RDWR))
        try:
            if hold(held, wait=False):
                if stat.S_ISDIR(mode):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
        finally:
            os.close(held)

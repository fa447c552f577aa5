"""Locks on files and folders: a process keeps one for as long as it lives, and what nobody locks has no owner."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import stat
from pathlib import Path
from typing import Any

# Without the module nothing is held, and so nothing is removed.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None


def hold(descriptor: int, wait: bool = True) -> bool:
    """Lock an open file or folder until the last process that has inherited it has ended; return whether that worked.

    Some file systems know no locks: nothing on them can be held, and so nothing of them is removed.
    """
    if _fcntl is None:
        return False
    try:
        _fcntl.flock(descriptor, _fcntl.LOCK_EX if wait else _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_unless_held(path: Path, by: Path | None = None) -> None:
    """Remove a file or folder that no process holds; if it is held, or can't be locked or removed, it stays.

    Args:
        path: The file or folder. A link is neither followed nor removed, nor is a pipe or a device.
        by: The file in the folder by which a process holds it; by default it is held itself.
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

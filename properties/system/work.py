"""The folder of a process's temporary files, and the removal of dead processes' folders.

Each process works in a separate folder, and keeps a lock on a file in this folder for its whole life. A process removes
its folder when it ends. If that fails, the next process removes the folder. Logs stay for `LOG_DAYS`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shutil
import socket
import stat
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from .locks import hold, remove_unless_held

LOG_DAYS = 7
"""The number of days that a process's log is kept after its last write."""

_OWNER = "owner"
_OF_PROCESS = re.compile(r"(?P<pid>\d+)-[0-9a-f]{6}")
_LOG = re.compile(r"(?:spark|kafka|kafka-broker)-\d+\.log|error-\d+\.txt")


@dataclass
class _Own:
    """The owner's process id (to distinguish forks), the folder and the lock."""

    process: int
    path: Path
    lock: int


_own: dict[Path | None, _Own] = {}
_making = threading.RLock()


def user_folder() -> Path:
    """Return this user's folder in the temporary directory, created if missing; only this user may enter it.

    Raises:
        OSError: The folder can't be created.
    """
    user = _user()
    folder = Path(tempfile.gettempdir()) / f"streamproof-{user}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    # Refuse a link, or a directory of another user, because all users can create this name in the temporary directory.
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == user:
        return folder
    return _folder_instead_of(folder)


@lru_cache
def _folder_instead_of(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix="streamproof-", dir=folder.parent))


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def own_folder(shared: Path | None = None) -> Path:
    """Return this process's own folder, created at the first use, and removed when the process ends.

    Args:
        shared: The parent folder, if other machines must see the folder; by default the user's folder in the temporary
            directory. This function first removes folders of dead processes from the parent.

    Raises:
        OSError: The folder can't be created.
    """
    with _making:
        held = _own.get(shared)
        if held is None or held.process != os.getpid() or not held.path.is_dir():
            held = _made(shared)
        return held.path


def _made(shared: Path | None) -> _Own:
    parent = user_folder() if shared is None else shared
    sweep(shared)
    prefix = "" if shared is None else _shared_prefix()
    while True:
        path = parent / f"{prefix}{os.getpid()}-{uuid.uuid4().hex[:6]}"
        path.mkdir(mode=0o700)
        # Until this process locks its file, another process may remove the folder.
        try:
            lock = os.open(path / _OWNER, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        hold(lock)
        if os.fstat(lock).st_nlink:
            break
        os.close(lock)
    if not _own:
        atexit.register(remove_own)
    _own[shared] = _Own(os.getpid(), path, lock)
    return _own[shared]


def _shared_prefix() -> str:
    """Return the prefix of the names of this machine's folders in a shared folder."""
    return f"streamproof-{re.sub(r'[^A-Za-z0-9_.]', '_', socket.gethostname())}-"


@contextlib.contextmanager
def temporary_folder(shared: Path | None = None) -> Iterator[Path]:
    """Create a folder in this process's own folder (see `own_folder`), and remove it at the end of the block.

    Raises:
        OSError: The folder can't be created.
    """
    with tempfile.TemporaryDirectory(dir=own_folder(shared), prefix="", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def remove_own(*shared: Path | None) -> None:
    """Remove this process's folders in the given folders, or all of them."""
    for parent in shared or [*_own]:
        held = _own.get(parent)
        if held is not None and held.process == os.getpid():
            del _own[parent]
            shutil.rmtree(held.path, ignore_errors=True)
            os.close(held.lock)


def sweep(shared: Path | None = None) -> None:
    """Remove the folders of dead processes, and this user's logs older than `LOG_DAYS`.

    Only streamproof's files of this user are removed: no links, no files that a living process has locked, and in a
    shared folder no files of another machine. Files that can't be removed stay.
    """
    with contextlib.suppress(OSError):
        parent = user_folder() if shared is None else shared
        prefix = "" if shared is None else _shared_prefix()
        for entry in os.scandir(parent):
            name = entry.name.removeprefix(prefix)
            if not entry.name.startswith(prefix) or entry.stat(follow_symlinks=False).st_uid != _user():
                continue
            if _OF_PROCESS.fullmatch(name) and entry.is_dir(follow_symlinks=False):
                _sweep_folder(Path(entry.path))
            elif shared is None and _LOG.fullmatch(name) and entry.is_file(follow_symlinks=False):
                _sweep_log(Path(entry.path))


def _sweep_folder(path: Path) -> None:
    if os.path.lexists(path / _OWNER):
        remove_unless_held(path, by=path / _OWNER)
    else:
        with contextlib.suppress(OSError):
            path.rmdir()  # its process died before it locked a file


def _sweep_log(path: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - path.lstat().st_mtime >= LOG_DAYS * 86_400:
            remove_unless_held(path)


def log_path(of: str) -> Path:
    """Return the path of this process's log (`spark`, `kafka` or `kafka-broker`).

    Raises:
        OSError: The user's folder can't be created.
    """
    return user_folder() / f"{of}-{os.getpid()}.log"


def open_log(path: Path) -> BinaryIO:
    """Open and lock a new log: `sweep` keeps the log while this process, or a process that inherits the lock, lives.

    Raises:
        OSError: The log can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file: Any = path.open("wb")
    hold(file.fileno(), wait=False)
    return file  # type: ignore[no-any-return]


def logs_left() -> tuple[Path, int, int]:
    """Return the folder of the logs, their number, and their size in bytes.

    Raises:
        OSError: The folder can't be created or read.
    """
    sizes = [path.lstat().st_size for path in user_folder().iterdir() if _LOG.fullmatch(path.name)]
    return user_folder(), len(sizes), sum(sizes)

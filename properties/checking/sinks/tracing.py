"""Kills a process at its n-th operation on the files of a folder: `python tracing.py N FOLDER COMMAND…`.

This script runs in its own process, because it waits for every process that it traces. It prints JSON: the number of
finished operations, and the operation at which the process was killed. The system calls of this script exist only on
Linux.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import sys
from pathlib import Path
from typing import Any

_TRACEME, _SETOPTIONS, _SYSCALL, _GET_INFO = 0, 0x4200, 24, 0x420E
_OPTIONS = 1 | 2 | 4 | 8 | 1 << 20
"""The options of ptrace: mark system calls; trace forks, vforks and clones; kill traced processes with this process."""
_ENTRY, _WALL = 1, 0x40000000
_FILE = ["write", "pwrite64", "writev", "pwritev", "ftruncate", "fsync", "fdatasync"]
_OPERATIONS = {
    "x86_64": {
        **dict(zip((1, 18, 20, 296, 77, 74, 75), _FILE, strict=True)),
        82: "rename",
        264: "renameat",
        316: "renameat2",
        87: "unlink",
        263: "unlinkat",
        86: "link",
        265: "linkat",
    },
    "aarch64": {
        **dict(zip((64, 68, 66, 70, 46, 82, 83), _FILE, strict=True)),
        38: "renameat",
        276: "renameat2",
        35: "unlinkat",
        37: "linkat",
    },
}


class _Info(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
    ]


def why_not() -> str:
    """Return the reason why this system can't trace processes; empty if it can."""
    if sys.platform != "linux" or platform.machine() not in _OPERATIONS:
        return f"only Linux traces processes, on {' and '.join(_OPERATIONS)}"
    return ""


def begin() -> None:
    """Let the parent process trace this process from now on.

    Raises:
        OSError: The operating system doesn't let processes trace each other.
    """
    if _libc().ptrace(_TRACEME, 0, None, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.kill(os.getpid(), signal.SIGSTOP)


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return libc


def main(last: int, folder: str, command: list[str]) -> dict[str, int | str]:
    """Run a command, which calls `begin`, until its n-th operation on the folder's files; if n is 0, until the command
    ends.

    Raises:
        OSError: The system can't trace processes.
    """
    libc = _libc()
    first = os.fork()
    if first == 0:
        os.execv(command[0], command)
    _, status = os.waitpid(first, 0)
    if not os.WIFSTOPPED(status):
        raise OSError(0, f"the process ended before its write: {os.waitstatus_to_exitcode(status)}")
    if libc.ptrace(_SETOPTIONS, first, None, _OPTIONS):
        os.kill(first, signal.SIGKILL)
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    operations, info, done = _OPERATIONS[platform.machine()], _Info(), 0
    libc.ptrace(_SYSCALL, first, None, None)
    while True:
        thread, status = os.waitpid(-1, _WALL)
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if thread == first:
                return {"operations": done, "exit": os.waitstatus_to_exitcode(status)}
            continue
        number = os.WSTOPSIG(status)
        if number == signal.SIGTRAP | 0x80:
            libc.ptrace(_GET_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info))
            name = operations.get(info.number) if info.op == _ENTRY else None
            if name is not None and (path := _path(thread, name, info)).startswith(folder):
                done += 1
                if done == last:
                    os.kill(first, signal.SIGKILL)
                    return {"operations": done, "killed at": f"{name} {Path(path).name}"}
            number = 0
        elif number == signal.SIGTRAP or status >> 16 or number == signal.SIGSTOP:
            number = 0  # don't deliver the first signal of a new thread or program
        libc.ptrace(_SYSCALL, thread, None, number)


def _path(thread: int, name: str, info: _Info) -> str:
    """Return the file's path in a system call; empty if unknown."""
    try:
        if name in _FILE:
            return os.readlink(f"/proc/{thread}/fd/{info.arguments[0]}")
        with open(f"/proc/{thread}/mem", "rb", 0) as memory:
            memory.seek(info.arguments[1 if name.endswith(("at", "at2")) else 0])
            text = os.fsdecode(memory.read(4096).split(b"\0")[0])
        return os.path.join(os.readlink(f"/proc/{thread}/cwd"), text)
    except OSError:
        return ""


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])))

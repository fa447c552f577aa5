"""The memory and disk space that are free for Spark, the minimum that Spark needs, and the CPU time of processes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LEAST_MEMORY_GB, ENOUGH_MEMORY_GB = 1.0, 4.0
LEAST_DISK_GB, ENOUGH_DISK_GB = 0.2, 2.0
"""With less than `LEAST…`, Spark's JVM dies or the disk fills during a check; with `ENOUGH…`, neither was observed."""


def too_small(folders: Mapping[str, Path], root: Path = Path("/")) -> str | None:
    """Return a sentence on too little memory or disk space for Spark, with the remedy; None if there is enough.

    Args:
        folders: The folders to write to, by the option or variable that names them.
        root: The root folder of the system's own files.
    """
    memory = free_memory(root)
    if memory is not None and memory < LEAST_MEMORY_GB:
        return (
            f"this machine has {memory:.1f} GB of memory left, but Spark needs at least {LEAST_MEMORY_GB:.1f} GB: end "
            f"other programs, or use a machine (or a container) with {ENOUGH_MEMORY_GB:.0f} GB"
        )
    for name, folder in folders.items():
        disk = free_disk(folder)
        if disk is not None and disk < LEAST_DISK_GB:
            return (
                f"{folder}: {1000 * disk:.0f} MB are free there, but Spark needs at least {1000 * LEAST_DISK_GB:.0f} "
                f"MB: free some space, or name another folder with {name}"
            )
    return None


def free_disk(folder: Path) -> float | None:
    """Return the free space (GB) for a folder; None if unknown."""
    with suppress(OSError):
        return shutil.disk_usage(folder).free / 1e9
    return None


def free_memory(root: Path = Path("/")) -> float | None:
    """Return the memory (GB), including swap, that processes may still use; None if unknown.

    The value is Linux's estimate for the machine, or the rest of a control group's limit (such as a container's) if
    smaller.

    Sources: proc_meminfo(5), and https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
    """
    found = [*_of_machine(root), *_of_group(root)]
    return min(found) / 1e9 if found else None


def _of_machine(root: Path) -> Iterator[float]:
    with suppress(OSError, ValueError, LookupError):
        lines = (line.split() for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines())
        kilobytes = {words[0]: int(words[1]) for words in lines}
        yield 1024 * (kilobytes["MemAvailable:"] + kilobytes.get("SwapFree:", 0))


def _of_group(root: Path) -> Iterator[float]:
    folder = root / "sys/fs/cgroup"
    with suppress(OSError, ValueError, LookupError):  # "max" isn't a number: no limit
        limit, used = (int((folder / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        lines = (line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
        cached = {words[0]: int(words[1]) for words in lines}["file"]  # Linux frees the file cache for processes
        yield limit - used + cached


class Spent(NamedTuple):
    """A duration, or a moment since the start of a clock.

    Attributes:
        seconds: The duration (s).
        cpu_seconds: The CPU time of this process and its descendants in the duration (s); 0 without /proc.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @classmethod
    def now(cls) -> Spent:
        """Return the present moment."""
        return cls(time.monotonic(), cpu_seconds(os.getpid()))

    def since(self, began: Spent) -> Spent:
        """Return the duration since an earlier moment."""
        return Spent(self.seconds - began.seconds, self.cpu_seconds - began.cpu_seconds)


NO_TIME = Spent()


def cpu_seconds(pid: int, root: Path = Path("/")) -> float:
    """Return the CPU time (s) of a process, its descendants, and their ended children; 0 without /proc.

    Source: proc_pid_stat(5)
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in (root / "proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):  # the process has ended
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            number = int(stat.parent.name)
            parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    tree, added = {pid}, {pid}
    while added:
        added = {number for number, parent in parents.items() if parent in added} - tree
        tree |= added
    return sum(ticks.get(number, 0) for number in tree) / os.sysconf("SC_CLK_TCK")

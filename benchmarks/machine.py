"""The machine on which the figures were measured."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from streamproof.reference.core.errors import MissingTool
from streamproof.specs.java import find_java

ROOT = Path(__file__).parent.parent
PACKAGES = ("pyspark", "duckdb", "pyarrow", "pandas", "numpy")


def machine() -> dict[str, object]:
    """Return the machine's cores, memory (GiB), operating system and versions."""
    try:
        java = str(find_java().version)
    except MissingTool:
        java = "none"
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": java,
        **{name: version(name) for name in PACKAGES},
        "streamproof": f"{version('streamproof')} ({_commit()})",
    }


def load_average() -> float:
    """Return the machine's load average over the last minute: runnable processes, including ours."""
    return round(os.getloadavg()[0], 2)


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = " with uncommitted changes" if git("status", "--porcelain", "--untracked-files=no") else ""
        return f"commit {git('rev-parse', '--short', 'HEAD')}{changed}"
    except (OSError, subprocess.CalledProcessError):
        return "commit unknown"

"""Measures the wall time and the memory of the gate, each command in a process of its own."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from typing import Any

from streamproof.reference.core.errors import StreamproofError

from .figures import Figure, Setting, Target, figure, seconds
from .machine import ROOT
from .memory import GIB, peaks_of

MINUTES = Target("under", 5 * 60)
MEMORY = Target("under", 3)


def run(setting: Setting) -> list[Figure]:
    """Measure `streamproof check`, and what `make check` runs after it."""
    rounds, histories = setting.times(), setting.size(2000, 50)
    checks: list[float] = []
    compares: list[float] = []
    peaks: list[float] = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as counterexamples:
            words = [
                "check",
                "--findings",
                counterexamples,
                *(["--histories", str(histories)] if setting.small else []),
            ]
            setting.progress(f"round {number + 1} of {rounds}: streamproof {shlex.join(words)}")
            checks.append(seconds(lambda words=words: peaks.append(_streamproof(*words))))  # type: ignore[misc]
        if not setting.small:
            words = ["compare", "session_windows", "--data", "flights"]
            setting.progress(f"round {number + 1} of {rounds}: streamproof {shlex.join(words)}")
            compares.append(seconds(lambda words=words: _streamproof(*words)))  # type: ignore[misc]
    sizes = f"{histories:,} histories"
    figures = [figure("streamproof check", "seconds", checks, sizes, MINUTES)]
    if all(peaks):
        figures.append(
            figure("streamproof check: driver, sum of the peaks of Python and JVM", "GiB", peaks, sizes, MEMORY)
        )
    if compares:
        both = [check + compare for check, compare in zip(checks, compares, strict=True)]
        figures += [
            figure("streamproof compare session_windows --data flights", "seconds", compares, "336,776 flights"),
            figure("make check: both", "seconds", both, f"{sizes}, 336,776 flights", MINUTES),
        ]
    return figures


def _streamproof(*words: str) -> float:
    """Run a command; return the peak memory (GiB) of its driver: its Python process and its JVM."""
    command = [sys.executable, "-m", "streamproof.properties.cli.entry", *words]
    pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipe) as process, peaks_of(process.pid) as peaks:
        printed, _ = process.communicate()
    if process.returncode:
        last = "\n".join(printed.strip().splitlines()[-5:])
        raise StreamproofError(f"streamproof {shlex.join(words)} exited {process.returncode}, not 0:\n{last}")
    return (peaks["python"] + peaks["java"]) / GIB
